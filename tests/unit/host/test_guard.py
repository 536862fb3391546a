"""Workers end with their agent, and their own children as well."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from avahi_gpu.host.guard import VARIABLE, Guard, bearers, sweep

# an agent with a guard and a worker in a session of its own, which has a child that ignores SIGTERM
AGENT = """
import os, subprocess, sys
from avahi_gpu.host.guard import VARIABLE, Guard
guard = Guard(sys.argv[1])
os.environ[VARIABLE] = sys.argv[1]
worker = "trap '' TERM; sleep 60 & wait"
subprocess.Popen(["sh", "-c", worker], stdout=subprocess.DEVNULL, start_new_session=True)
print(guard._process.pid, flush=True)
if sys.stdin.readline() == "keep\\n":
    guard.close(keep=True)
"""


def until(found: Callable[[], bool], within_s: float = 5.0) -> bool:
    deadline = time.monotonic() + within_s
    while not found():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def mark() -> Iterator[str]:
    made = os.urandom(8).hex()
    yield made
    assert sweep(made) == []


def start_agent(mark: str) -> tuple[subprocess.Popen[str], int]:
    agent = subprocess.Popen(
        [sys.executable, "-c", AGENT, mark], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert agent.stdout is not None
    guard = int(agent.stdout.readline())
    assert until(lambda: len(bearers(mark)) == 2), "the worker and its child bear the mark"
    return agent, guard


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ignores(pid: int, number: signal.Signals) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    return bool(int(status.partition("SigIgn:")[2].split()[0], 16) & 1 << (number - 1))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_when_the_agent_is_killed_its_workers_and_their_children_go_within_two_seconds(
    mark: str, number: signal.Signals
) -> None:
    agent, guard = start_agent(mark)

    agent.send_signal(number)
    agent.communicate()

    assert until(lambda: not bearers(mark), 2.0)
    assert until(lambda: not alive(guard))


def test_after_a_good_end_the_guard_goes_and_leaves_what_the_script_left(mark: str) -> None:
    agent, guard = start_agent(mark)

    agent.communicate("keep\n", timeout=10)

    assert until(lambda: not alive(guard))
    assert len(bearers(mark)) == 2


def test_a_guard_heeds_no_signal_that_is_meant_for_the_agent(mark: str) -> None:
    guard = Guard(mark)
    worker = subprocess.Popen(["sleep", "60"], env={**os.environ, VARIABLE: mark})
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    assert until(lambda: all(ignores(guard._process.pid, number) for number in numbers))
    for number in numbers:
        os.kill(guard._process.pid, number)
    guard.close(keep=False)
    assert worker.wait(5) == -signal.SIGKILL


@pytest.fixture
def worker(mark: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"], env={**os.environ, VARIABLE: mark})
    yield process
    process.kill()
    process.wait()


def test_workers_live_for_as_long_as_they_are_held(mark: str, worker: subprocess.Popen[bytes]) -> None:
    guard = Guard(mark)
    for _ in range(6):
        guard.hold(1.0)
        time.sleep(0.3)
    assert worker.poll() is None
    assert worker.wait(5) == -signal.SIGKILL, "nobody held them any longer"
    guard.close(keep=True)


def test_workers_that_do_not_end_in_time_are_killed(mark: str, worker: subprocess.Popen[bytes]) -> None:
    guard = Guard(mark)
    guard.hold(60.0)
    guard.end(0.2)
    assert worker.wait(5) == -signal.SIGKILL
    guard.close(keep=True)


def test_the_next_round_s_workers_are_not_ended_with_the_last_one_s(
    mark: str, worker: subprocess.Popen[bytes]
) -> None:
    guard = Guard(mark)
    guard.end(0.3)
    guard.hold(60.0)
    time.sleep(0.6)
    assert worker.poll() is None
    guard.close(keep=True)
    assert worker.poll() is None


def test_a_guard_that_stands_still_holds_up_nobody_and_ends_the_workers_when_it_wakes(
    mark: str, worker: subprocess.Popen[bytes]
) -> None:
    guard = Guard(mark)
    guard.hold(1.0)
    time.sleep(0.5)
    os.kill(guard._process.pid, signal.SIGSTOP)
    for _ in range(20_000):
        guard.hold(60.0)
    time.sleep(0.6)
    os.kill(guard._process.pid, signal.SIGCONT)
    assert worker.wait(5) == -signal.SIGKILL
    guard.close(keep=True)


def test_only_the_whole_mark_counts(mark: str) -> None:
    other = subprocess.Popen(["sleep", "60"], env={**os.environ, VARIABLE: mark + "0"})
    try:
        assert bearers(mark) == []
    finally:
        other.kill()
        other.wait()
