"""What runs on this machine: init, the bus's socket, avahi-daemon's process. Reading only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from avahi_gpu.errors import MalformedInput
from avahi_gpu.files import avahi_conf, avahi_harms
from avahi_gpu.host.system import System
from avahi_gpu.model import DaemonFacts, UnitState

PID_FILE = "/run/avahi-daemon/pid"
DEFAULT_CONFIG = "/etc/avahi/avahi-daemon.conf"
PROGRAM = "avahi-daemon"
UNIT = "avahi-daemon.service"
SOCKET = "avahi-daemon.socket"
ASK_SYSTEMD_S = 5.0  # it reads files and answers in ten milliseconds


def read_init(system: System) -> Literal["systemd", "other"]:
    """Return what PID 1 is, as sd_booted(3) finds it out."""
    return "systemd" if system.is_folder("/run/systemd/system") else "other"


def is_enabled(unit: UnitState | None) -> bool | None:
    """Return whether systemd starts avahi-daemon at boot; None without systemd, or where it does not tell."""
    if unit is None or unit.enabled in ("", "bad"):
        return None
    return unit.enabled not in ("disabled", "masked", "masked-runtime")


def find_avahi(system: System) -> int | None:
    """Return the process id of the running avahi-daemon, None where none runs.

    Its pid file can be stale after a crash: the process is asked for its name too.
    """
    text = (system.read(PID_FILE).content or b"").strip()
    if text.isdigit() and _is_avahi(system, text.decode()):
        return int(text)
    return None


def find_config(pid: int | None, avahi: DaemonFacts) -> str:
    """Return the configuration that the daemon reads: ``-f FILE`` of its command line (avahi-daemon(8)).

    It writes its title over that where it runs; systemd knows what it was started with.
    """
    running = next((p.argv for p in avahi.processes or () if p.pid == pid and p.argv), ())
    return parse_config_path(list(running or (avahi.unit.argv if avahi.unit else ())))


def is_removed(system: System, words: Sequence[str]) -> bool:
    """Whether a command line needs an avahi-daemon that is not on this machine (any more)."""
    needs = PROGRAM in " ".join(words) and "mask" not in words
    return needs and system.find_program(PROGRAM) is None


def would_start(system: System) -> bool:
    """Whether avahi-daemon would take its configuration as it is on the disk, by its own rules."""
    path = find_config(find_avahi(system), DaemonFacts())
    content = system.read(path, avahi_conf.SIZE_MAX).content
    if content is None:
        return False
    try:
        conf = avahi_conf.parse(content.decode("utf-8", "surrogateescape"), path)
    except MalformedInput:
        return False
    return avahi_harms.starts(avahi_harms.effects(conf))


def parse_config_path(argv: list[str]) -> str:
    """Return the file of ``-f FILE``, ``-fFILE``, ``--file FILE`` or ``--file=FILE``, else the default."""
    for number, word in enumerate(argv[1:], 1):
        if word in ("-f", "--file") and argv[number + 1 : number + 2]:
            return argv[number + 1]
        if word.startswith("--file="):
            return word.partition("=")[2]
        if word.startswith("-f") and len(word) > 2:
            return word[2:]
    return DEFAULT_CONFIG


def _is_avahi(system: System, pid: str) -> bool:
    return (system.read(f"/proc/{pid}/comm").content or b"").strip() == PROGRAM.encode()
