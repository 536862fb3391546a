"""What does not answer in time costs its own value, a reason is kept, and the whole of it ends."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from avahi_gpu.host import deadline as module
from avahi_gpu.host.aside import aside
from avahi_gpu.host.deadline import Deadline
from avahi_gpu.host.system import System

BUSY_S = 10.0  # of a machine that does much else


def test_what_answers_in_time_is_returned() -> None:
    async def ask() -> tuple[int, dict[str, str]]:
        deadline = Deadline()
        return await deadline.hold("seven", aside(lambda: 7), 0), deadline.unread

    assert asyncio.run(ask()) == (7, {})


def test_what_hangs_or_fails_leaves_a_reason() -> None:
    async def fail() -> int:
        raise PermissionError(13, "Permission denied")

    async def ask() -> tuple[int, int, dict[str, str]]:
        deadline = Deadline(within_s=0.05)
        failed = await deadline.hold("failed", fail(), -2)
        hung = await deadline.hold("hung", aside(threading.Event().wait, 60.0), -1)
        return hung, failed, {name: why.split(" within")[0] for name, why in deadline.unread.items()}

    began = time.monotonic()
    hung, failed, unread = asyncio.run(ask())

    assert (hung, failed) == (-1, -2)
    assert unread == {"hung": "no answer", "failed": "Permission denied"}
    assert time.monotonic() - began < BUSY_S


def test_a_limit_of_its_own_is_kept_where_it_is_the_sooner() -> None:
    async def ask() -> dict[str, str]:
        deadline = Deadline(within_s=60.0)
        await deadline.hold("hung", aside(threading.Event().wait, 60.0), False, 0.02)
        return deadline.unread

    assert asyncio.run(ask()) == {"hung": "no answer within 0.02 s"}


def test_files_have_a_last_moment_beyond_the_end(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")

    async def ask() -> bytes | None:
        deadline = Deadline(within_s=0.0)
        return (await deadline.read_file(System(tmp_path), "/file")).content

    assert asyncio.run(ask()) == b"x"


def test_a_file_that_hangs_is_there_and_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FILE_S", 0.05)
    monkeypatch.setattr(System, "read", lambda *_: threading.Event().wait(60.0))

    async def ask() -> None:
        deadline = Deadline()
        state = await deadline.read_file(System(), "/etc/hosts")
        assert (state.exists, state.content, state.hangs) == (True, None, True)
        assert "/etc/hosts" in deadline.unread

    asyncio.run(ask())


def test_programs_end_with_the_reading_also_those_that_do_not_want_to() -> None:
    stubborn = "trap '' TERM; while :; do sleep 1; done"
    began = time.monotonic()

    done = System().until(began + 0.3).run(["sh", "-c", stubborn], 60.0)

    assert done.returncode is None
    assert time.monotonic() - began < BUSY_S


def test_a_program_that_nobody_waits_for_any_more_does_not_outlive_us(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    code = f"""
import asyncio
from avahi_gpu.host.aside import aside
from avahi_gpu.host.deadline import Deadline
from avahi_gpu.host.system import System

async def ask():
    work = aside(System().run, ["sh", "-c", "echo $$ > {mark}; exec sleep 300"], 300.0)
    await Deadline(0.5).hold("sleeper", work, None)

asyncio.run(ask())
"""
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)

    pid = int(mark.read_text())
    end = time.monotonic() + BUSY_S
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert not Path(f"/proc/{pid}").exists()


def test_a_pipe_in_a_files_place_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "hosts")

    state = System(tmp_path).read("/hosts")

    assert state.exists
    assert state.error == "not a regular file"
