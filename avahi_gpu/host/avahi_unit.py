"""What systemd makes of avahi-daemon.service (systemctl(1), org.freedesktop.systemd1(5))."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from avahi_gpu.host import daemons
from avahi_gpu.host.aside import aside
from avahi_gpu.host.system import System
from avahi_gpu.model import UnitState

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

PROPERTIES = (
    *("LoadState", "ActiveState", "UnitFileState", "Result", "ExecMainStatus"),
    *("ExecStart", "FragmentPath"),
)
_ARGV = re.compile(r"argv\[\]=(.*?) ;")


async def read(ground: Ground) -> UnitState | None:
    """Return the unit's state, None where systemd does not run."""
    return await aside(read_unit, ground.system)


def read_unit(system: System) -> UnitState | None:
    """Ask systemd; None where it does not run or does not answer."""
    if daemons.read_init(system) != "systemd":
        return None
    argv = ["systemctl", "show", daemons.UNIT, daemons.SOCKET, f"--property={','.join(PROPERTIES)}"]
    done = system.run(argv, daemons.ASK_SYSTEMD_S)
    return parse_show(done.stdout) if done.ok else None


def parse_show(text: str) -> UnitState:
    """Return what ``systemctl show`` printed: ``Name=value`` of the service, a blank line, the socket's."""
    parts = (dict(line.partition("=")[::2] for line in part.splitlines()) for part in text.split("\n\n"))
    values, sockets = next(parts), next(parts, {})
    status = values.get("ExecMainStatus", "")
    command = _ARGV.search(values.get("ExecStart", ""))
    try:
        argv = tuple(shlex.split(command[1])) if command else ()
    except ValueError:  # a quote that is not closed
        argv = ()
    return UnitState(
        load=values.get("LoadState", ""),
        active=values.get("ActiveState", ""),
        enabled=values.get("UnitFileState", ""),
        result=values.get("Result", ""),
        exit_status=int(status) if status.isdigit() else 0,
        argv=argv,
        path=values.get("FragmentPath", ""),
        socket_load=sockets.get("LoadState", ""),
        socket_enabled=sockets.get("UnitFileState", ""),
    )
