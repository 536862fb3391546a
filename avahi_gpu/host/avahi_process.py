"""avahi-daemon's processes as /proc shows them (proc(5)), and when they started."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from avahi_gpu.host import daemons
from avahi_gpu.host.aside import aside
from avahi_gpu.host.system import System
from avahi_gpu.model import AVAHI_SOCKET, DaemonProcess, FileState

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

USER = "avahi"  # that the daemon runs as, everywhere that we know of
HELPER = "avahi-daemon: chroot helper"  # its second process, which opens files for it
TITLE = "avahi-daemon: "  # what it writes over its arguments once it runs


async def read(ground: Ground) -> tuple[DaemonProcess, ...]:
    """Return the daemons of this machine, those of its containers left out."""
    return await aside(read_processes, ground.system)


async def read_shared(ground: Ground) -> int:
    """Return how many processes run as the user avahi, in whatever container; helpers count as any."""
    return await aside(count_users_processes, ground.system)


async def read_socket(ground: Ground) -> FileState:
    """Return the mode and owner of the socket that nss-mdns asks."""
    return await aside(ground.system.read, AVAHI_SOCKET)


def read_processes(system: System) -> tuple[DaemonProcess, ...]:
    """Return every process called avahi-daemon in our PID namespace, by its number."""
    found: list[DaemonProcess] = []
    for pid in sorted((p for p in system.list_folder("/proc") if p.isdigit()), key=int):
        if _text(system, f"/proc/{pid}/comm").strip() != daemons.PROGRAM:
            continue
        line = _text(system, f"/proc/{pid}/cmdline")
        status = parse_status(_text(system, f"/proc/{pid}/status"))
        words = parse_stat(_text(system, f"/proc/{pid}/stat"))
        if status.get("PPid", "") in {str(p.pid) for p in found}:
            continue  # its helper, whatever its title
        if line.startswith(HELPER) or len(status.get("NSpid", "").split()) > 1 or words is None:
            continue
        state, ticks = words
        started = _started(system, int(pid), ticks)
        uid = status.get("Uid", "").split()
        found.append(
            DaemonProcess(
                int(pid),
                state,
                int(uid[0]) if uid and uid[0].isdigit() else -1,
                started,
                () if line.startswith(TITLE) else tuple(w for w in line.split("\0") if w),
                age_s=_age(system, ticks),
                root=system.read_link(f"/proc/{pid}/root") or None,
            )
        )
    return tuple(found)


def count_users_processes(system: System) -> int:
    """Return how many processes belong to the user avahi; 0 where there is no such user."""
    entries = (line.split(":") for line in _text(system, "/etc/passwd").splitlines())
    uid = next((e[2] for e in entries if len(e) > 2 and e[0] == USER), None)
    if uid is None:
        return 0
    texts = (_text(system, f"/proc/{p}/status") for p in system.list_folder("/proc") if p.isdigit())
    return sum(parse_status(text).get("Uid", "").split()[:1] == [uid] for text in texts)


def parse_stat(text: str) -> tuple[str, int] | None:
    """Return the state's letter and the start in clock ticks since boot; None for what is no such line."""
    words = text.rpartition(")")[2].split()  # the name before it may hold anything
    if len(words) < 20 or not words[19].isdigit():
        return None
    return words[0], int(words[19])


def parse_status(text: str) -> dict[str, str]:
    """Return /proc/PID/status as a mapping."""
    parts = (line.partition(":") for line in text.splitlines())
    return {key: value.strip() for key, _, value in parts}


def _age(system: System, ticks: int) -> float:
    """Return how long ago that was, by the clock that nobody sets."""
    up = _text(system, "/proc/uptime").split()[:1]
    return max(0.0, float(up[0]) - ticks / os.sysconf("SC_CLK_TCK")) if up else 0.0


def _started(system: System, pid: int, ticks: int) -> float:
    """Return when a process started, by the same clock that stamps files.

    avahi-daemon writes its pid file as it starts; the time of boot is known to the second only, and moves
    whenever the clock is set.
    """
    state = system.read(daemons.PID_FILE)
    if state.changed is not None and (state.content or b"").strip() == str(pid).encode():
        return state.changed
    boot = next((w[6:] for w in _text(system, "/proc/stat").splitlines() if w.startswith("btime ")), "0")
    # rounded up: a file changed within that second is not held to be newer
    return int(boot) + ticks / os.sysconf("SC_CLK_TCK") + 2.0


def _text(system: System, path: str) -> str:
    return (system.read(path).content or b"").decode("utf-8", "replace")
