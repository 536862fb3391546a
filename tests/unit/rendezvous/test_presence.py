"""What a node's record tells people of its rounds, from its first wait to its last."""

from __future__ import annotations

import time
from typing import Any

import pytest

from avahi_gpu.files.job_txt import read_job_node
from avahi_gpu.host import clock
from avahi_gpu.model import JOB_SERVICE, JobPart, Service
from avahi_gpu.rendezvous.election import Candidate
from avahi_gpu.rendezvous.messages import Seat, Token
from avahi_gpu.rendezvous.presence import Presence
from avahi_gpu.rendezvous.steps import Round
from avahi_gpu.rendezvous.terms import Terms

FIRST, SECOND = "1" * 16, "2" * 16
NOBODY: Any = None  # neither Avahi nor the agreement is asked here


def formed(epoch: int, leader: str, rank: int) -> Round:
    seats = tuple(Seat(id, f"gpu-node-{id[0]}", f"10.0.0.{id[0]}", 1) for id in (FIRST, SECOND))
    return Round(Token(epoch, leader), seats, rank, 29500, 29501)


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what sets the time of day."""

    def set_time(now: int) -> None:
        monkeypatch.setattr(time, "time", lambda: now + 0.9)

    return set_time


def part(presence: Presence) -> JobPart:
    node = read_job_node(Service("x", JOB_SERVICE, 2, 4, "gpu-node-2.local", "10.0.0.2", 1, presence.txt))
    assert node is not None
    return node.part


def test_a_record_follows_the_rounds_of_its_node(at: Any) -> None:
    start = 1_800_000_000
    at(start)
    assert clock.unix_time() == start
    presence = Presence(NOBODY, Terms("llama", max_nodes=2), Candidate(SECOND, "gpu-node-2", "", 1), NOBODY)
    assert part(presence) == JobPart(since=start)

    at(start + 10)
    presence.show(formed(3, FIRST, 1), 3, "gpu-node-1")
    first = JobPart(True, 3, "gpu-node-1", FIRST, 1, 2, start + 10, start + 10, 0)
    assert part(presence) == first

    at(start + 20)
    presence.show(None, 4, "gpu-node-2")
    assert part(presence) == JobPart(epoch=4, leader="gpu-node-2", since=start + 20, began=start + 10)

    at(start + 30)
    presence.show(formed(5, FIRST, 1), 5, "gpu-node-1")
    assert part(presence) == JobPart(
        True, 5, "gpu-node-1", FIRST, 1, 2, since=start + 30, began=start + 10, restarts=1
    )
