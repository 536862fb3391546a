"""The last lines that avahi-daemon logged: the journal, else a syslog daemon's files. Quiet without."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from avahi_gpu.host import daemons
from avahi_gpu.host.aside import aside
from avahi_gpu.host.system import System

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

MAX_LINES = 80  # a start has about fifteen
MAX_LENGTH = 300  # characters of a line
TAIL_BYTES = 256 * 1024  # of a log; what is further back is of another day
JOURNAL_S = 3.0  # it looks an index up; a cold disk takes a second
_FILES = ("/var/log/syslog", "/var/log/daemon.log", "/var/log/messages")
# what tells why a start failed; the last words of the daemon before it are none of these
_COMPLAINT = re.compile(r"fail|error|invalid|cannot|could not|denied|no suitable|no such", re.IGNORECASE)
_LINE = re.compile(r"avahi-daemon\[(\d+)\]: (.*)")


async def read(ground: Ground) -> tuple[str, ...] | None:
    """Return what the daemon that runs has logged, else the last one that did; None: no log is kept here."""
    daemon = await ground.daemon()
    return await aside(read_log, ground.system, daemon.pid)


def read_log(system: System, pid: int | None) -> tuple[str, ...] | None:
    """Return the lines without time and name, oldest first."""
    if daemons.read_init(system) == "systemd" and system.find_program("journalctl"):
        argv = ["journalctl", "--unit", daemons.UNIT, "--boot", "--lines", "200", "--output", "short"]
        done = system.run([*argv, "--no-pager", "--quiet"], JOURNAL_S)
        return parse_log(done.stdout, pid) if done.ok else None
    texts = [system.read_tail(path, TAIL_BYTES) for path in _FILES]
    found = [text.decode("utf-8", "replace") for text in texts if text is not None]
    return parse_log("\n".join(found), pid) if found else None


def read_complaint(system: System, since: float) -> str:
    """Return the first line of the daemon's unit since then that tells of a failure; '' where none is kept.

    ``since``: seconds since the epoch. Without systemd nobody knows the time of a line: the last one counts.
    """
    if daemons.read_init(system) != "systemd":
        lines = [line for line in read_log(system, None) or () if _COMPLAINT.search(line)]
        return lines[-1] if lines else ""
    argv = ["journalctl", "--unit", daemons.UNIT, "--since", f"@{int(since)}", "--output", "cat"]
    done = system.run([*argv, "--lines", "200", "--no-pager", "--quiet"], JOURNAL_S)
    lines = [line.strip() for line in done.stdout.splitlines()] if done.ok else []
    return next((line[:MAX_LENGTH] for line in lines if _COMPLAINT.search(line)), "")


def parse_log(text: str, pid: int | None) -> tuple[str, ...]:
    """Return the messages of process ``pid``; where that is None or has none, of the last that wrote any."""
    lines = [(int(m[1]), m[2].strip()[:MAX_LENGTH]) for m in map(_LINE.search, text.splitlines()) if m]
    if not lines:
        return ()
    pids = {number for number, _ in lines}
    if pid is not None and pid not in pids:
        return ()  # what runs now was started after the log ends: old lines tell nothing of it
    wanted = pid if pid is not None else lines[-1][0]
    return tuple(line for number, line in lines if number == wanted)[-MAX_LINES:]
