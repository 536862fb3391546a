"""Who listens on the ports that jobs take, and which workers have outlived their agent."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from avahi_gpu.files import torch_environment
from avahi_gpu.host.aside import aside
from avahi_gpu.host.guard import VARIABLE
from avahi_gpu.host.mdns_sockets import kernel_address
from avahi_gpu.host.system import System
from avahi_gpu.model import DEFAULT_PORT, Leftover, Listener

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

PORTS = range(DEFAULT_PORT, 30000)  # jobs of ours take theirs from these
LISTEN = "0A"  # TCP_LISTEN (include/net/tcp_states.h)
RUN_ID = "TORCHELASTIC_RUN_ID"
COMMAND_MAX = 120  # characters of a command line that are shown
MAX_SHOWN = 16

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_SOCKET = re.compile(r"socket:\[(\d+)\]")
_PROGRAMS = frozenset({"torchrun", "avahi-gpu", "deepspeed", "accelerate"})
_MODULES = re.compile(r"(torch\.distributed|avahi_gpu|deepspeed|accelerate)(\.|$)")  # behind python -m
_LOOK_AT = 4  # words of a command line: interpreter, its options, program
# what adopts orphans: process 1 and those that asked to (prctl(2), PR_SET_CHILD_SUBREAPER)
_REAPERS = frozenset({"systemd", "init", "tini", "dumb-init", "docker-init", "catatonit", "conmon"})


async def read(ground: Ground) -> tuple[Listener, ...]:
    """Return who listens on 29500 to 29999, on c10d's own port and on those that the environment names."""
    named = {e.port for e in torch_environment.endpoints(ground.environment) if e.port}
    return await aside(read_listeners, ground.system, {*PORTS, torch_environment.C10D_PORT, *named})


async def read_left(ground: Ground) -> tuple[Leftover, ...]:
    """Return the workers without an agent."""
    return await aside(read_leftovers, ground.system)


async def read_range(ground: Ground) -> tuple[int, int]:
    """Return the ports that the kernel gives to whoever asks for none in particular."""
    text = _text(ground.system, "/proc/sys/net/ipv4/ip_local_port_range")
    low, high = text.split()
    return int(low), int(high)


async def read_reserved(ground: Ground) -> str:
    """Return the ports that it never gives so, as the kernel writes them: ``29500-29999``."""
    return _text(ground.system, "/proc/sys/net/ipv4/ip_local_reserved_ports").strip()


def read_listeners(system: System, ports: Iterable[int]) -> tuple[Listener, ...]:
    """Return the listeners on these TCP ports with their owners, as far as we may look into /proc/PID/fd."""
    wanted = set(ports)
    rows = [row for table in _TABLES for row in parse_listeners(_text(system, table)) if row[0] in wanted]
    owners = owners_of(system, {inode for *_, inode in rows}) if rows else {}
    found = []
    for port, address, uid, inode in rows:
        pid = owners.get(inode)
        command = command_of(system, pid) if pid is not None else ""
        job = pid is not None and _is_job(system, pid)
        found.append(Listener(port, address, uid, pid, command, job))
    return tuple(sorted(found, key=lambda one: one.port))


def parse_listeners(text: str) -> list[tuple[int, str, int, int]]:
    """Return port, address, uid and inode of the listening sockets of /proc/net/tcp or tcp6 (proc(5))."""
    found = []
    for line in text.splitlines()[1:]:
        words = line.split()
        try:
            address, port = words[1].split(":")
            if words[3] == LISTEN:
                found.append((int(port, 16), kernel_address(address), int(words[7]), int(words[9])))
        except (IndexError, ValueError):
            continue
    return found


def owners_of(system: System, inodes: Iterable[int]) -> dict[int, int]:
    """Return which process holds each socket, as far as we may look."""
    wanted = set(inodes)
    owners: dict[int, int] = {}
    for pid in _pids(system):
        for target in _open_files(system, pid):
            found = _SOCKET.fullmatch(target)
            if found is not None and int(found[1]) in wanted:
                owners.setdefault(int(found[1]), pid)
        if len(owners) == len(wanted):
            break
    return owners


def read_leftovers(system: System) -> tuple[Leftover, ...]:
    """Return the topmost processes of runs whose agent is gone; their own children end with them."""
    marked = {pid: run for pid in _pids(system) if (run := _run_of(system, pid)) is not None}
    found = []
    listening: list[tuple[int, str, int, int]] | None = None
    for pid, run in marked.items():
        parent, _, session = stat_of(system, pid)
        if parent in marked or not _adopts(system, parent):
            continue
        if listening is None:
            listening = [row for table in _TABLES for row in parse_listeners(_text(system, table))]
        holds = _holds(system, [pid, *_below(system, pid, marked)], listening)
        found.append(Leftover(pid, command_of(system, pid), run, holds, session == pid))
    return tuple(found[:MAX_SHOWN])


def command_of(system: System, pid: int) -> str:
    """Return the beginning of a command line, '' where the process has ended."""
    return " ".join(_words(system, pid)).strip()[:COMMAND_MAX]


def is_launcher(words: Sequence[str]) -> bool:
    """Whether a command line is that of a program that starts workers; a folder's name does not count."""
    if any(word.rpartition("/")[2] in _PROGRAMS for word in words[:_LOOK_AT] if not word.startswith("-")):
        return True
    pairs = itertools.pairwise(words[: _LOOK_AT + 1])
    return any(option == "-m" and _MODULES.match(module) for option, module in pairs)


def stat_of(system: System, pid: int) -> tuple[int, str, int]:
    """Return a process's parent, short name and session, zeros and '' where it has ended (proc(5))."""
    return parse_stat(_text(system, f"/proc/{pid}/stat"))


def parse_stat(text: str) -> tuple[int, str, int]:
    """Return parent, short name and session of /proc/PID/stat; the name may hold blanks and brackets."""
    name = text[text.find("(") + 1 : text.rfind(")")]
    words = text[text.rfind(")") + 1 :].split()
    if len(words) < 4 or not (words[1].isdecimal() and words[3].isdecimal()):
        return 0, "", 0
    return int(words[1]), name, int(words[3])


def _adopts(system: System, pid: int) -> bool:
    """Whether orphans fall to a process, and it is no launcher itself, as one in a container may be."""
    if pid <= 0:
        return False  # entered from outside: who its parent was cannot be told
    _, name, _ = stat_of(system, pid)
    return (pid == 1 or name in _REAPERS) and not is_launcher(_words(system, pid))


def _below(system: System, pid: int, marked: Iterable[int]) -> list[int]:
    return [other for other in marked if stat_of(system, other)[0] == pid]


def _holds(
    system: System, pids: Iterable[int], listening: Iterable[tuple[int, str, int, int]]
) -> tuple[str, ...]:
    ports = {inode: port for port, _, _, inode in listening}
    held: dict[str, None] = {}
    for pid in pids:
        for target in _open_files(system, pid):
            found = _SOCKET.fullmatch(target)
            if re.fullmatch(r"/dev/nvidia\d+", target):
                held[target] = None
            elif found is not None and int(found[1]) in ports:
                held[f"port {ports[int(found[1])]}"] = None
    return tuple(held)[:MAX_SHOWN]


def _run_of(system: System, pid: int) -> str | None:
    """Return which run a process is a worker of, None where it is none."""
    if pid == os.getpid():
        return None
    environ = _environ(system, pid)
    if "RANK" in environ and RUN_ID in environ:
        return environ[RUN_ID][:COMMAND_MAX]
    return environ.get(VARIABLE)


def _is_job(system: System, pid: int) -> bool:
    """Whether a process belongs to a run of torch that somebody still looks after."""
    environ = _environ(system, pid)
    worker = RUN_ID in environ or VARIABLE in environ or {"RANK", "WORLD_SIZE"} <= environ.keys()
    return worker or is_launcher(_words(system, pid))


def _words(system: System, pid: int) -> list[str]:
    return _text(system, f"/proc/{pid}/cmdline").rstrip("\0").split("\0")


def _environ(system: System, pid: int) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in _text(system, f"/proc/{pid}/environ").split("\0"))
    return {name: value for name, _, value in pairs if name}


def _pids(system: System) -> list[int]:
    return [int(name) for name in system.list_folder("/proc") if name.isdecimal()]


def _open_files(system: System, pid: int) -> list[str]:
    folder = f"/proc/{pid}/fd"
    return [system.read_link(f"{folder}/{handle}") for handle in system.list_folder(folder)]


def _text(system: System, path: str) -> str:
    return (system.read(path).content or b"").decode("utf-8", "replace")
