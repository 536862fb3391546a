"""Ask glibc's modules one by one, each in a process of its own that can hang or crash without harm."""

from __future__ import annotations

import asyncio
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from avahi_gpu.files import nsswitch, nsswitch_full
from avahi_gpu.files.nsswitch_chain import MDNS, find_barrier, modules_of
from avahi_gpu.host.aside import aside
from avahi_gpu.host.nss import is_host_name, reverse
from avahi_gpu.host.process import Completed
from avahi_gpu.host.system import System
from avahi_gpu.model import DOMAIN, Lookup, ModuleAnswer, Status

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

# a dead name server costs nss-mdns ten seconds by glibc's defaults, and then it still answers
CALL_S = 11.0
OWN_NAME_S = (
    5.5  # for this machine's own name nobody is asked but Avahi; a dead name server is told elsewhere
)
OWN_NAME_PROBER_S = OWN_NAME_S + 0.5
NOBODYS_ADDRESS = (
    "192.0.2.1"  # for documentation (RFC 5737): no machine has it, and no name server a name for it
)
REVERSE_S = 5.5  # Avahi gives up after five
SCRIPT = Path(__file__).with_name("nss_call.py")

_STATUS: dict[int, Status] = {-2: "tryagain", -1: "unavail", 0: "notfound", 1: "success"}


async def read_own(ground: Ground) -> tuple[ModuleAnswer, ...]:
    """Return what the mDNS modules that glibc asks before DNS say to this machine's own ``.local`` name."""
    daemon = await ground.daemon()
    line = nsswitch.parse(nsswitch.decode(ground.nsswitch.content or b"")).hosts
    if line is None:
        return ()
    before = line.services[: find_barrier(line.services)]
    names = [name for name in modules_of(line) if name in MDNS and any(s.name == name for s in before)]
    own = f"{daemon.host_name or platform.node() or 'localhost'}.{daemon.domain or DOMAIN}"
    return tuple(
        await asyncio.gather(*(aside(call, ground.system, module, own, OWN_NAME_S) for module in names))
    )


async def read_reverse(ground: Ground) -> Lookup | None:
    """Return how long the search for the name of an address takes, where a module may delay it; else None."""
    if nsswitch_full.find_surplus(ground.nsswitch.content) is None:
        return None
    return await aside(reverse, ground.system, NOBODYS_ADDRESS, REVERSE_S)


def call(system: System, module: str, name: str, within_s: float = CALL_S) -> ModuleAnswer:
    """Return what one module answers for ``name``; never raises."""
    if not is_host_name(name):
        return ModuleAnswer(module, None, error="not a host name")
    return parse(module, system.run([sys.executable, "-I", "-S", str(SCRIPT), module, name], within_s))


def parse(module: str, done: Completed) -> ModuleAnswer:
    """Return what the script told, whatever way it ended."""
    if done.returncode is None:
        return ModuleAnswer(module, None, elapsed_s=done.elapsed_s, error="no answer in time", late=True)
    words = [line.partition(" ")[::2] for line in done.stdout.splitlines()]
    told = dict(words)
    try:
        status, loaded = _STATUS.get(int(told["status"])), told["loaded"] == "1"
        elapsed_s, error = float(told["elapsed_s"]), told["error"]
    except (KeyError, ValueError):
        how = f"it crashed (signal {-done.returncode})" if done.returncode < 0 else done.reason
        return ModuleAnswer(module, None, elapsed_s=done.elapsed_s, error=how)
    addresses = tuple(value for word, value in words if word == "address")
    return ModuleAnswer(module, status, addresses, elapsed_s, error, loaded)
