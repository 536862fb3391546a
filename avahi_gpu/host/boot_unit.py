"""The unit that renders the service file anew at boot: as it is on this machine, and as it is to be."""

from __future__ import annotations

import os
import site
import sys
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from avahi_gpu.errors import AvahiGpuError
from avahi_gpu.files.unit_file import parse_boot_command, render_boot_unit
from avahi_gpu.host import daemons
from avahi_gpu.host.aside import aside
from avahi_gpu.host.exposure import find_exposure
from avahi_gpu.host.node import read_shipped
from avahi_gpu.host.system import System
from avahi_gpu.model import BOOT_UNIT, BootUnit, FileState

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

UNIT_PATH = f"/etc/systemd/system/{BOOT_UNIT}"
# where a package brings it: that one is taken as it is, unless a file of the same name in /etc goes before it
SHIPPED_PATHS = (f"/usr/lib/systemd/system/{BOOT_UNIT}", f"/lib/systemd/system/{BOOT_UNIT}")
COMMAND = "refresh"  # see cli/refresh.py
PROGRAM = "avahi-gpu"
HOMES = ("/home/", "/root/")
PASSING_PLACES = ("/tmp/", "/var/tmp/", "/run/", "/media/", "/mnt/")  # noqa: S108  nothing is put there


async def read(ground: Ground) -> BootUnit | None:
    """Return the unit as it is, None where systemd does not run."""
    return await aside(read_boot_unit, ground.system)


def read_boot_unit(system: System) -> BootUnit | None:
    """Read the file, and ask systemd whether it is enabled and how it ended last."""
    if daemons.read_init(system) != "systemd":
        return None
    properties = "--property=UnitFileState,Result,ActiveState,ExecMainStartTimestampMonotonic"
    done = system.run(["systemctl", "show", BOOT_UNIT, properties], daemons.ASK_SYSTEMD_S)
    told = dict(line.partition("=")[::2] for line in done.stdout.splitlines()) if done.ok else {}
    state = told.get("UnitFileState")
    ran = told.get("ExecMainStartTimestampMonotonic", "0") not in ("", "0")
    return describe(
        system,
        (system.program, COMMAND) if system.program else find_command(),
        enabled=None if state is None else state in ("enabled", "enabled-runtime"),
        result=told.get("Result", "") if ran else "",
    )


def describe(
    system: System, argv: tuple[str, ...] | None, *, enabled: bool | None, result: str = ""
) -> BootUnit:
    """Return the unit's file beside what it is to be where it runs ``argv``; None: nothing can be run.

    Root is to run at boot nothing that others may change: where ``argv`` is so, and the unit that is there
    runs something better, that stays.
    """
    file, masked = find_unit(system), system.read_link(UNIT_PATH) == "/dev/null"
    present = parse_boot_command((file.content or b"").decode("utf-8", "replace"))
    present_exposed = find_exposure(system, present[0]) if present else ""
    exposed = expose(system, argv[0]) if argv else ""
    wanted: bytes | None = None
    if file.path in SHIPPED_PATHS:
        wanted, argv, exposed = file.content, present, ""
    elif exposed and present and not present_exposed and system.exists(present[0]):
        argv, exposed = present, ""
    if wanted is None and argv is not None and not exposed:
        try:
            wanted = render_boot_unit(read_shipped(BOOT_UNIT), argv)
        except AvahiGpuError:
            argv = None
    return BootUnit(
        file=file,
        wanted=wanted,
        program=argv[0] if argv else "",
        frail=find_frailty(system, argv[0]) if argv else "",
        exposed=exposed,
        present_exposed=present_exposed,
        enabled=enabled,
        masked=masked,
        result=result,
    )


def find_unit(system: System) -> FileState:
    """Return the unit's file as systemd finds it: an administrator's or setup's first, else a package's."""
    state = system.read(UNIT_PATH)
    if not state.exists:
        return next((s for s in map(system.read, SHIPPED_PATHS) if s.content is not None), state)
    return state


def expose(system: System, program: str) -> str:
    """Return why others than root may change a program, '' where nobody may.

    What runs is not only the file: our own is as safe as its Python and the folders that this loads from.
    """
    places = [program]
    own = find_command()
    if system.is_whole and not system.program and own is not None and own[0] == program:
        # what this user alone adds is not there at boot
        of_user = {site.getusersitepackages(), *os.environ.get("PYTHONPATH", "").split(":")}
        loads_from = (p for p in sys.path if p.startswith("/") and p not in of_user)
        places += [sys.executable, str(Path(__file__).parent), *loads_from]
    return next((why for place in places if (why := find_exposure(system, place))), "")


def find_command() -> tuple[str, ...] | None:
    """Return the command line that runs this very avahi-gpu again, by absolute paths.

    The program beside this Python first: it is the same one by whatever link or wrapper we were called.
    """
    beside = Path(sys.executable).with_name(PROGRAM)
    called = Path(sys.argv[0])
    for path in (beside, called):
        if path.is_absolute() and path.name == PROGRAM and path.is_file():
            return (str(path), COMMAND)
    if Path(sys.executable).is_absolute():
        return (sys.executable, "-m", "avahi_gpu.cli.app", COMMAND)
    return None


def find_frailty(system: System, program: str) -> str:
    """Return why a program may be gone or another one by the next boot, '' where nothing speaks for that."""
    path = PurePosixPath(program)
    if program.startswith(HOMES):
        return "it lies in somebody's home folder"
    if program.startswith(PASSING_PLACES):
        return f"what lies in /{path.parts[1]} need not be there at boot"
    for folder in path.parents:
        if system.exists(f"{folder}/.git"):
            return f"it lies in a source checkout ({folder})"
    return ""
