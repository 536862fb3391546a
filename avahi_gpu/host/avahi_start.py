"""What avahi-daemon finds as it starts: its user, its pid file, its list of other hosts' names."""

from __future__ import annotations

import grp
import pwd
from collections.abc import Callable
from typing import TYPE_CHECKING

from avahi_gpu.host import daemons
from avahi_gpu.host.aside import aside
from avahi_gpu.host.avahi_process import USER
from avahi_gpu.host.system import System
from avahi_gpu.model import FileState, StartGround

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

STATIC_HOSTS = "/etc/avahi/hosts"  # built in
BUS_ADDRESS = "DBUS_SYSTEM_BUS_ADDRESS"  # dbus-daemon(1): where to look for the system bus instead
MAX_PID = 1 << 22  # PID_MAX_LIMIT of 64-bit kernels


async def read(ground: Ground) -> StartGround:
    """Return what stands in the way of a daemon that is not there; nothing of one that is."""
    daemon = await ground.daemon()
    if daemon.on_bus or daemon.pid is not None:
        return StartGround()
    return await aside(read_ground, ground.system)


async def read_static_hosts(ground: Ground) -> FileState:
    """Return /etc/avahi/hosts, the names that the daemon publishes for others (avahi.hosts(5))."""
    return await aside(ground.system.read, STATIC_HOSTS)


async def read_bus_address(ground: Ground) -> str:
    """Return where the environment says that the system bus is, '' where it says nothing."""
    return ground.environment.get(BUS_ADDRESS, "")


def read_ground(system: System) -> StartGround:
    """Return what a start would find."""
    file = system.read(daemons.PID_FILE)
    holder, program = parse_pid(file.content or b""), ""
    if holder is not None:
        program = (system.read(f"/proc/{holder}/comm").content or b"").decode("utf-8", "replace").strip()
    stale = bool(program) and program != daemons.PROGRAM
    return StartGround(
        user=_is_known(pwd.getpwnam),
        group=_is_known(grp.getgrnam),
        pid_file=file if stale else None,
        holder=holder if stale else None,
        program=program if stale else "",
    )


def parse_pid(content: bytes) -> int | None:
    """Return the number in a pid file, None where there is none."""
    text = content.strip()
    if not text.isdigit() or len(text) > len(str(MAX_PID)):
        return None
    return int(text) if 0 < int(text) <= MAX_PID else None


def _is_known(find: Callable[[str], object]) -> bool:
    try:
        find(USER)
    except KeyError:
        return False
    return True
