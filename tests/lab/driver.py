"""Drivers (tests/lab/drive.py) in virtual hosts: ``drive(host, "watch", TYPE)`` starts one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.lab.host import Host
from tests.lab.process import Follower

TYPE = "_torch-rdzv._tcp"
BUSY_S = 3.0  # what a loaded test machine may add
DRIVE = [sys.executable, "-m", "tests.lab.drive"]


class Drive:
    """A driver in a host, and the events it told."""

    def __init__(self, follower: Follower) -> None:
        self.follower = follower

    def wait_for(self, event: str, within_s: float = 10.0, *, after: int = 0) -> dict[str, Any]:
        """Return the next such event from line ``after`` on; ``line`` is its number."""
        line = self.follower.wait_for(f'"event": "{event}"', within_s, after=after)
        return {"line": line, **json.loads(self.follower.lines[line])}

    def events(self, event: str) -> list[dict[str, Any]]:
        told = [json.loads(line) for line in self.follower.lines]
        return [e for e in told if e["event"] == event]

    def say(self, line: str) -> None:
        stdin = self.follower.process.stdin
        assert stdin is not None
        stdin.write(line + "\n")
        stdin.flush()

    def leave(self) -> None:
        """End as a process does that ends in order."""
        stdin = self.follower.process.stdin
        assert stdin is not None
        stdin.close()
        assert self.follower.wait(5) == 0, self.follower.output

    def end(self) -> None:
        self.follower.end()
        stdin = self.follower.process.stdin
        if stdin is not None:
            stdin.close()


Start = Callable[..., Drive]


@pytest.fixture
def drive() -> Iterator[Start]:
    """Return a function that starts a driver in a host; all are ended after the test."""
    started: list[Drive] = []

    def start(host: Host, *argv: str) -> Drive:
        process = host.popen([*DRIVE, *argv], stdin=subprocess.PIPE, stderr=subprocess.STDOUT)
        started.append(Drive(Follower(process)))
        return started[-1]

    yield start
    for one in started:
        one.end()


def watch(drive: Start, host: Host, kind: str = TYPE) -> Drive:
    """Start a browser in ``host`` and wait until it listens."""
    watcher = drive(host, "watch", kind)
    watcher.wait_for("ready")
    return watcher


def look(host: Host, *argv: str, kind: str = TYPE) -> dict[str, Any]:
    """Take one look from ``host``."""
    told: dict[str, Any] = json.loads(host.run([*DRIVE, "look", kind, *argv], check=True).stdout)
    return told
