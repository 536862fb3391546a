"""What the bench reads from the lines of a training."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from bench.trainings import Training


class Lines(SimpleNamespace):
    """What a command has printed when, as a Follower has it."""

    def __init__(self, *pairs: tuple[float, str]) -> None:
        super().__init__(times=[at for at, _ in pairs], lines=[line for _, line in pairs])


LEADER = Lines(
    (1.0, "avahi-gpu: round 1: 3 nodes (a, b, c), leader a at 10.0.0.1"),
    (2.1, "worker 0 of 3 runs at 2.000000"),
    (5.0, "training starts with 3 processes, rank 0 on a (cpu)"),
    (6.0, "step 8 loss 1.0"),
)
SECOND = Lines(
    (2.2, "worker 1 of 3 runs at 2.100000"),
    (15.0, "avahi-gpu: round 2: 2 nodes (b, c), leader b at 10.0.0.2"),
    (15.9, "worker 0 of 2 runs at 15.500000"),
    (18.0, "training resumes after step 8 with 2 processes, rank 0 on b (cpu)"),
    (18.5, "step 9 loss 0.9"),
)
THIRD = Lines((2.3, "worker 2 of 3 runs at 2.200000"), (16.2, "worker 1 of 2 runs at 16.100000"))
CUT = 10.0


def training(*runs: Any) -> Training:
    return Training(None, SimpleNamespace(followers=list(runs)))  # type: ignore[arg-type]


def test_the_moments_after_a_loss_are_those_of_the_last_survivor() -> None:
    all_of_it = training(LEADER, SECOND, THIRD)
    survivors = all_of_it.others(0)
    assert survivors == [SECOND, THIRD]
    assert all_of_it.round_of(2, survivors, CUT) == 15.0
    assert all_of_it.running_again(2, survivors, CUT) == 16.1
    assert all_of_it.trains_again(2, survivors, CUT) == 18.5
    assert all_of_it.restarts(CUT) == 2
    assert all_of_it.restarts(0.0) == 5


def test_one_survivor_alone_is_not_running_again() -> None:
    lost = training(LEADER, SECOND, Lines(*zip(THIRD.times[:1], THIRD.lines[:1], strict=True)))
    assert lost.running_again(2, lost.others(0), CUT) is None


def test_a_group_of_another_size_is_not_the_one_that_is_waited_for() -> None:
    all_of_it = training(LEADER, SECOND, THIRD)
    assert all_of_it.running_again(3, all_of_it.others(0), CUT) is None
    assert all_of_it.trains_again(3, all_of_it.others(0), CUT) is None
    assert all_of_it.round_of(3, all_of_it.others(0), CUT) is None


def test_steps_of_before_the_loss_do_not_count() -> None:
    lost = training(LEADER, Lines((9.9, "step 9 loss 1"), (10.0, "step 10 loss 1")), THIRD)
    assert lost.step_after(CUT, lost.job.followers) is None
    assert lost.trains_again(2, lost.job.followers, CUT) is None
