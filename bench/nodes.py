"""Nodes without torch on the lab's hosts, loaded once and started together as often as wanted."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.lab.host import Host

LOAD_S = 60.0  # twenty interpreters start on two cores
ANSWER_S = 10.0
ROUND_S = 20.0  # more than that is no round


class NodeFailed(RuntimeError):
    """A node did not answer, or said what it should not."""


class BenchNode:
    """bench/node.py on one host."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._answers: queue.Queue[dict[str, Any]] = queue.Queue()
        self.process = host.popen([sys.executable, "-m", "bench.node"], stdin=subprocess.PIPE)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._answers.put(json.loads(line))
        self._answers.put({"gone": True})

    def tell(self, command: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def answer(self, key: str, within_s: float = ANSWER_S) -> dict[str, Any]:
        """Return the next answer, which has to have ``key``. Raises NodeFailed."""
        try:
            found = self._answers.get(timeout=within_s)
        except queue.Empty:
            raise NodeFailed(f"{self.host.name}: no {key} within {within_s:g} s") from None
        if key not in found:
            raise NodeFailed(f"{self.host.name}: no {key}, but {found}")
        return found

    def end(self) -> None:
        """End it without a word."""
        self.process.end()
        self._reader.join(1.0)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


@contextmanager
def loaded(hosts: Sequence[Host]) -> Iterator[list[BenchNode]]:
    """Load one node on each host; none of them is left behind."""
    nodes: list[BenchNode] = []
    try:
        nodes += [BenchNode(host) for host in hosts]
        for node in nodes:
            node.answer("loaded", LOAD_S)
        yield nodes
    finally:
        for node in nodes:
            node.end()


def form(nodes: Sequence[BenchNode], job: str, key: str = "") -> float:
    """Start all nodes at once; return the seconds to the round on the last of them. Raises NodeFailed.

    ``key``: the cluster's, hexadecimal, '' for none.
    """
    began = time.monotonic()
    for node in nodes:
        node.tell(f"start {job} {len(nodes)} {len(nodes)} {key}")
    rounds = [node.answer("round", ROUND_S) for node in nodes]
    if len({r["round"] for r in rounds}) != 1 or sorted(r["rank"] for r in rounds) != list(range(len(nodes))):
        raise NodeFailed(f"no common round: {rounds}")
    return max(r["at"] for r in rounds) - began


def close(nodes: Sequence[BenchNode]) -> None:
    """Let all say goodbye side by side. Raises NodeFailed."""
    for node in nodes:
        node.tell("close")
    for node in nodes:
        node.answer("closed")


def time_round(nodes: Sequence[BenchNode], job: str) -> float | str:
    """Return the seconds from the start of all to the round on the last one; in words where none forms."""
    try:
        took = form(nodes, job)
        close(nodes)
    except NodeFailed as failure:
        return str(failure)
    return took
