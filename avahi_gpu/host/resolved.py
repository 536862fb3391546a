"""Whether systemd-resolved does mDNS of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from avahi_gpu.host.aside import aside
from avahi_gpu.host.system import System
from avahi_gpu.model import ResolvedMdns

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

RUNTIME = "/run/systemd/resolve"  # there while it runs
ASK_S = 3.0
LINKS_MAX = 64
_LINE = re.compile(r"(Global|Link \d+ \(([^)\s]{1,15})\)):\s*(yes|no|resolve)")


async def read(ground: Ground) -> ResolvedMdns:
    """Return what ``resolvectl mdns`` tells; ``no`` where systemd-resolved does not run."""
    return await aside(read_resolved, ground.system)


def read_resolved(system: System) -> ResolvedMdns:
    """Do what ``read`` says, blocking. Raises RuntimeError where it runs and does not tell."""
    if not system.is_folder(RUNTIME):
        return ResolvedMdns("no")
    done = system.run(["resolvectl", "--no-pager", "mdns"], ASK_S)
    if not done.ok:
        raise RuntimeError(f"resolvectl mdns: {done.reason}")
    return parse(done.stdout)


def parse(text: str) -> ResolvedMdns:
    """Return the words of ``resolvectl mdns`` (resolvectl(1)), those of the first links."""
    overall = "no"
    links: list[tuple[str, str]] = []
    for line in text.splitlines():
        found = _LINE.match(line.strip())
        if found is None:
            continue
        if found[2] is None:
            overall = found[3]
        elif len(links) < LINKS_MAX:
            links.append((found[2], found[3]))
    return ResolvedMdns(overall, tuple(links))
