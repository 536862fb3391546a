"""Nodes of a job on the lab's hosts, driven line by line; see node_script.py for what they say."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.lab.host import Host

SCRIPT = Path(__file__).with_name("node_script.py")
LOAD_S = 20.0  # several interpreters start on two cores
Line = dict[str, Any]


class JobNode:
    """One node of a job on one host."""

    def __init__(
        self,
        host: Host,
        nodes: tuple[int, int],
        env: dict[str, str] | None = None,
        before: Sequence[str] = (),
        **settings: Any,
    ) -> None:
        """``before``: a command that runs the node's; the other settings are node_script's."""
        self.host = host
        self.lines: list[Line] = []
        self.errors: list[str] = []  # the lines of stderr, once it has ended
        self._queue: queue.Queue[Line | None] = queue.Queue()
        script = [sys.executable, "-m", "tests.lab.node_script", json.dumps({"nodes": nodes, **settings})]
        self.process = host.popen([*before, *script], stdin=subprocess.PIPE, env=env)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.wait_for("loaded", LOAD_S)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._queue.put(json.loads(line))
        self._queue.put(None)

    def tell(self, command: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def start(self, job: str = "") -> None:
        """Start the node, as one of another job than before where that is named."""
        self.tell(f"start {job}".strip())

    def stop(self, outcome: str, within_s: float = 10.0) -> None:
        """Say goodbye, ready for another start in the same interpreter."""
        self.tell(f"stop {outcome}")
        self.wait_for("closed", within_s)

    def wait_for(self, key: str, within_s: float, accept: Callable[[Line], bool] = lambda _: True) -> Line:
        """Return the next line that has ``key`` and is accepted; fail with all that was said instead."""
        end = time.monotonic() + within_s
        while True:
            try:
                line = self._queue.get(timeout=max(0.001, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(
                    f"{self.host.name}: no '{key}' in {within_s} s; said: {self.lines}"
                ) from None
            if line is None:
                errors = self.process.stderr.read() if self.process.stderr else ""
                raise AssertionError(f"{self.host.name} ended without '{key}'; said: {self.lines}\n{errors}")
            self.lines.append(line)
            if key in line and accept(line):
                return line

    def said(self, key: str) -> list[Line]:
        """Return the lines with ``key`` that were said so far."""
        while not self._queue.empty():
            line = self._queue.get()
            if line is not None:
                self.lines.append(line)
        return [line for line in self.lines if key in line]

    def drain(self, seconds: float) -> None:
        """Take in all that is said within so many seconds."""
        end = time.monotonic() + seconds
        while True:
            try:
                line = self._queue.get(timeout=max(0.0, end - time.monotonic()) or 0.001)
            except queue.Empty:
                return
            if line is None:
                return
            self.lines.append(line)

    def close(self, outcome: str = "left") -> None:
        """Say goodbye and wait for the end."""
        if self.process.poll() is None:
            self.tell(f"close {outcome}")
            self.process.wait(10)
        self.kill()

    def kill(self) -> None:
        """End it without a word."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        self._reader.join(5)
        if self.process.stderr is not None and not self.process.stderr.closed:
            self.errors += self.process.stderr.read().splitlines()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


class Job:
    """The nodes of one job, as a context manager that leaves none of them."""

    def __init__(self, hosts: list[Host], nodes: tuple[int, int], **settings: Any) -> None:
        self.nodes: list[JobNode] = []
        self._new = lambda host, more: JobNode(host, **{"nodes": nodes, **settings, **more})
        for host in hosts:
            self.add(host)

    def add(self, host: Host, **more: Any) -> JobNode:
        self.nodes.append(self._new(host, more))
        return self.nodes[-1]

    def __enter__(self) -> Job:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for node in self.nodes:
            node.kill()

    def start(self) -> None:
        for node in self.nodes:
            node.start()

    def rounds(self, within_s: float, among: list[JobNode] | None = None) -> list[Line]:
        """Return the next round of each node, checked for agreement: one token, one order, ranks 0 … n-1."""
        nodes = self.nodes if among is None else among
        found = [node.wait_for("round", within_s) for node in nodes]
        assert len({(r["round"], tuple(r["hosts"]), r["leader"], tuple(r["ports"])) for r in found}) == 1, (
            found
        )
        assert sorted(r["rank"] for r in found) == list(range(len(nodes))), found
        return found


def running(node: JobNode) -> str | None:
    """Return the token of the round that a node's agent believes in, from all it has said so far."""
    current: str | None = None
    for line in node.lines:
        current = line.get("round", None if "over" in line else current)
    return current


def listen(nodes: list[JobNode], seconds: float) -> None:
    """Read what the nodes say for so long."""
    end = time.monotonic() + seconds
    for node in nodes:
        node.drain(max(0.0, end - time.monotonic()))
    for node in nodes:
        node.drain(0.0)


def wait_for_one_group(nodes: list[JobNode], within_s: float) -> None:
    """Wait until all nodes run one round, of as many nodes as there are."""
    end = time.monotonic() + within_s
    while len({running(node) for node in nodes}) != 1 or running(nodes[0]) is None:
        assert time.monotonic() < end, [node.lines[-6:] for node in nodes]
        listen(nodes, 0.1)
    rounds = [line for node in nodes for line in node.lines if line.get("round") == running(nodes[0])]
    assert sorted(line["rank"] for line in rounds) == list(range(len(nodes)))


def notices(node: JobNode) -> str:
    return "\n".join(line["notice"] for line in node.lines if "notice" in line)
