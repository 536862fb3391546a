"""Run ``avahi-gpu doctor --serve`` and ``--cluster`` on virtual hosts and read what they say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.lab.doctoring import Diagnosis
from tests.lab.host import Host
from tests.lab.process import Follower

SERVES = "answers `avahi-gpu doctor --cluster`"
# the clock of one process of the lab: a namespace of time shifts none that tells the time of day
SHIFTED = (
    "import sys, time; told = time.time; time.time = lambda: told() + {shift}; "
    "sys.argv[0] = 'avahi-gpu'; from avahi_gpu.cli.app import main; main()"
)


@dataclass(frozen=True)
class Survey(Diagnosis):
    """One run of ``doctor --cluster --json``."""

    data: Mapping[str, Any]

    @property
    def states(self) -> dict[tuple[int, int], str]:
        """Return what is not well, by the numbers of the nodes: (from, to) -> state."""
        number = {n["name"]: int(n["name"].rpartition("-")[2]) for n in self.data["nodes"]}
        pairs = {(number[p["from"]], number[p["to"]]): p["state"] for p in self.data["matrix"]}
        return {pair: state for pair, state in pairs.items() if state != "ok"}

    def ports(self, source: int, target: int) -> dict[str, bool | None]:
        """Return purpose -> reached, of one way."""
        ends = (f"gpu-node-{source}", f"gpu-node-{target}")
        (way,) = [p for p in self.data["matrix"] if (p["from"], p["to"]) == ends]
        return {t["purpose"]: t["ok"] for t in way["tcp"]}

    def node(self, number: int) -> dict[str, Any]:
        (found,) = [n for n in self.data["nodes"] if n["name"] == f"gpu-node-{number}"]
        return dict(found)


def survey(host: Host, *arguments: str, timeout: float = 60, **options: Any) -> Survey:
    """Ask all nodes; a traceback or an envelope that is none fails the test."""
    done = host.run(["avahi-gpu", "doctor", "--cluster", "--json", *arguments], timeout=timeout, **options)
    assert "Traceback" not in done.stderr, done.stderr
    envelope = json.loads(done.stdout)
    assert envelope["exit_code"] == done.returncode
    findings = {f["id"]: f for f in envelope["data"].get("findings", [])}
    return Survey(done.returncode, findings, done.stderr, envelope["data"])


@contextmanager
def serving(
    hosts: Sequence[Host], *arguments: str, shift: Mapping[int, float] | None = None
) -> Iterator[list[Follower]]:
    """Let these hosts answer; ``shift``: number of a host -> seconds that its clock is ahead."""
    followers = []
    for host in hosts:
        program = ["avahi-gpu"]
        if shift and host.number in shift:
            program = ["python", "-c", SHIFTED.format(shift=shift[host.number])]
        followers.append(host.follow([*program, "doctor", "--serve", "60", *arguments]))
    try:
        for follower in followers:
            follower.wait_for(SERVES)
        yield followers
    finally:
        for follower in followers:
            follower.end()
    for follower in followers:
        assert "Traceback" not in follower.output, follower.output
