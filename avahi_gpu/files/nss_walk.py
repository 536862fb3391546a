"""The way of a look-up through the services of a hosts line (glibc nss/nsswitch.c, getaddrinfo.c). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from avahi_gpu.files.nsswitch_grammar import Actions, Line, Service, decode, parse, parse_line

Status = Literal["success", "notfound", "unavail", "tryagain"]
DEFAULT = "files dns"  # what glibc asks where it reads no hosts line


def effective_line(content: bytes | None) -> tuple[Line, str]:
    """Return the hosts line that glibc obeys, and the defect that makes it drop the whole file, or ''.

    The line has the number 0 where glibc falls back on its own default.
    """
    parsed = parse(decode(content or b""))
    line = parsed.hosts or parse_line(f"hosts: {DEFAULT}", number=0)
    bad = parsed.defects[0] if parsed.defects else None
    return line, f"line {bad.number}: {bad.defect}" if bad else ""


def action_after(actions: Actions, status: Status) -> str:
    """Return what glibc does after that status: ``return``, ``continue`` or ``merge``.

    Merging is for groups alone; a look-up of hosts that meets it goes on, and what it had is lost.
    """
    return str(getattr(actions, status))


def walk(services: Sequence[Service], statuses: Sequence[Status]) -> tuple[int, Status]:
    """Return how many services are asked, and with which status the search ends.

    ``statuses`` is what each service would say, in their order. Whoever is asked last decides: a success that
    does not return is forgotten. No service at all is UNAVAIL.
    """
    last: Status = "unavail"
    for asked, (service, status) in enumerate(zip(services, statuses, strict=True), 1):
        last = status
        if action_after(service.actions, status) == "return":
            return asked, last
    return len(services), last


def actions_text(line: Line, service: Service) -> str:
    """Return the action list as written behind a service, '' where there is none."""
    return " ".join(line.text[service.name_end : service.end].split())
