"""Training jobs on the lab's hosts: the same command on each, and what it printed where."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from tests.lab.host import REPOSITORY, Command, Host
from tests.lab.process import Follower

BIN = Path(sys.executable).parent
ALLREDUCE = "examples/allreduce.py"
TRAIN = "examples/train.py"
# a job of three hosts takes 8 s on two idle cores; the rest is for a busy machine. A torch with CUDA takes
# three times as long to load, and more where its files are not in memory: PATIENCE=3 for those
JOB_S = 60.0 * float(os.environ.get("PATIENCE", "1"))

_LINE = re.compile(
    r"rank (?P<rank>\d+) of (?P<size>\d+) on (?P<host>\S+) \(cpu\), MASTER_ADDR (?P<master>\S+): "
    r"sum \d+ is right"
)


def launch(*words: str) -> list[str | Path]:
    """Return the command line of ``avahi-gpu launch``."""
    return [BIN / "avahi-gpu", "launch", *words]


def torchrun(*words: str) -> list[str | Path]:
    """Return the command line of plain torchrun."""
    return [BIN / "torchrun", *words]


class Runs:
    """Commands that run on hosts at the same time, as a context manager that leaves none of them."""

    def __init__(self, commands: Sequence[tuple[Host, Command]], **options: object) -> None:
        self.hosts = [host for host, _ in commands]
        self.followers: list[Follower] = []
        for host, command in commands:
            self.followers.append(host.follow(command, **options))  # type: ignore[arg-type]

    def __enter__(self) -> Runs:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for follower in self.followers:
            follower.end()
        if error is not None:
            print(self.transcript())

    def __getitem__(self, index: int) -> Follower:
        return self.followers[index]

    def codes(self, within_s: float = JOB_S) -> list[int]:
        """Wait for the end of all; return their exit codes."""
        return [follower.wait(within_s) for follower in self.followers]

    def transcript(self) -> str:
        """Return everything that all have printed, in the order of time."""
        lines = sorted(
            (time, host.name, line)
            for host, follower in zip(self.hosts, self.followers, strict=True)
            for time, line in zip(follower.times, follower.lines, strict=False)
        )
        first = lines[0][0] if lines else 0.0
        return "\n".join(f"{time - first:7.2f} {host}: {line}" for time, host, line in lines)

    def sums(self) -> list[tuple[int, int, str, str]]:
        """Return (rank, world size, host, MASTER_ADDR) of every process of an all-reduce, by rank."""
        found = [_LINE.search(line) for f in self.followers for line in f.lines]
        return sorted((int(m["rank"]), int(m["size"]), m["host"], m["master"]) for m in found if m)


def on_all(hosts: Sequence[Host], command: Command, **options: object) -> Runs:
    """Run the same command on every host."""
    return Runs([(host, command) for host in hosts], **options)


__all__ = ["ALLREDUCE", "BIN", "JOB_S", "REPOSITORY", "TRAIN", "Runs", "launch", "on_all", "torchrun"]
