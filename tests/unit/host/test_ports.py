"""Who listens, and which workers are left, on this very machine and from saved tables."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

import pytest

from avahi_gpu.host.ports import (
    command_of,
    is_launcher,
    owners_of,
    parse_listeners,
    parse_stat,
    read_leftovers,
    read_listeners,
    stat_of,
)
from avahi_gpu.host.system import System

TABLE = (
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 00000000:733C 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 0 4711 1 0\n"
    "   1: 0100007F:733C 0100007F:A001 01 00000000:00000000 00:00000000 00000000  1000 0 4712 1\n"
    "garbage\n"
)
SLEEP = "import time; print(flush=True); time.sleep(60)"
ORPHAN = (
    "import os, subprocess, sys;"
    "p = subprocess.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True, stdout=-3,"
    "                     env=dict(os.environ, RANK='0', TORCHELASTIC_RUN_ID='lost-in-a-test'));"
    "print(p.pid, flush=True)"
)


def test_listeners_are_told_from_connections() -> None:
    assert parse_listeners(TABLE) == [(29500, "0.0.0.0", 1000, 4711)]


def test_a_name_with_brackets_and_blanks_does_not_confuse() -> None:
    assert parse_stat("42 (a) b (c) S 7 42 43 0") == (7, "a) b (c", 43)
    assert parse_stat("") == (0, "", 0)


@pytest.mark.parametrize(
    ("line", "launches"),
    [
        ("/usr/bin/python3 /opt/venv/bin/torchrun --nnodes=2 train.py", True),
        ("python3 -u -m torch.distributed.run train.py", True),
        ("python -m avahi_gpu.cli.app launch train.py", True),
        ("/usr/bin/python3 /usr/local/bin/deepspeed --hostfile h train.py", True),
        ("accelerate launch train.py", True),
        ("/home/me/avahi-gpu/.venv/bin/python -m http.server 29500", False),
        ("python3 /home/me/deepspeed/serve.py", False),
        ("nc -l 29500", False),
        ("", False),
    ],
)
def test_a_launcher_is_told_by_its_program_and_not_by_its_folder(line: str, launches: bool) -> None:
    assert is_launcher(line.split(" ")) is launches


def test_a_listener_is_found_with_its_owner() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]

        (found,) = read_listeners(System(), [port])

        assert (found.port, found.address, found.pid) == (port, "127.0.0.1", os.getpid())
        assert found.command == command_of(System(), os.getpid())
        inode = os.fstat(server.fileno()).st_ino
        assert owners_of(System(), [inode]) == {inode: os.getpid()}


def test_a_worker_whose_agent_has_gone_is_left_over_and_one_with_an_agent_is_not() -> None:
    environ = {**os.environ, "RANK": "0", "TORCHELASTIC_RUN_ID": "cared-for"}
    with subprocess.Popen([sys.executable, "-c", SLEEP], env=environ, stdout=subprocess.PIPE) as kept:
        assert kept.stdout is not None
        kept.stdout.readline()
        agent = subprocess.run(
            [sys.executable, "-c", ORPHAN, SLEEP], stdout=subprocess.PIPE, check=True, text=True, timeout=30
        )
        pid = int(agent.stdout.split()[0])
        try:
            if stat_of(System(), pid)[0] != 1:
                pytest.skip("orphans fall to a process here that nobody knows")
            found = {one.pid: one for one in read_leftovers(System())}
        finally:
            os.kill(pid, signal.SIGKILL)
            kept.kill()

    assert pid in found and found[pid].run == "lost-in-a-test" and found[pid].worker
    assert kept.pid not in found
