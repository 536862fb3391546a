"""What chaos will do follows from the seed alone, and is enough."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.plan import KINDS, LASTING, QUIET, SILENCES, Deck, make, taken_out
from tests.lab.host import REPOSITORY

SEEDS = st.integers(0, 2**32)


@given(SEEDS)
@settings(deadline=None)  # a busy machine takes its time
def test_the_same_seed_gives_the_same_plan(seed: int) -> None:
    assert make(seed) == make(seed)


def test_a_plan_is_the_same_in_another_process() -> None:
    """Nothing of it hangs on hash seeds, sets' order or what was drawn before."""
    shown = [
        subprocess.run(
            [sys.executable, "-m", "chaos", "--plan", "--seed", "7"],
            capture_output=True,
            text=True,
            check=True,
            cwd=REPOSITORY,
            env={"PYTHONHASHSEED": number},
        ).stdout
        for number in ("1", "2")
    ]
    assert shown[0] == shown[1]
    assert shown[0].startswith("job 1: ")


def test_other_seeds_give_other_plans() -> None:
    assert len({make(seed) for seed in range(20)}) == 20


@given(SEEDS)
@settings(max_examples=50, deadline=None)
def test_a_plan_is_a_hundred_faults_of_every_kind_over_ten_jobs_of_three_to_six_hosts(seed: int) -> None:
    plan = make(seed)

    assert len(plan) == 10
    faults = [fault for job in plan for fault in job.faults]
    assert len(faults) >= 100
    assert {fault.kind for fault in faults} == {*KINDS, "late"}
    assert {job.hosts for job in plan} == {3, 4, 5, 6}
    assert {job.way for job in plan} == {"launch", "torchrun"}
    for job in plan:
        assert job.hosts < 2 * job.min_nodes <= 2 * job.hosts  # a majority


@given(SEEDS, st.integers(1, 12), st.integers(1, 60))
@settings(deadline=None)  # a busy machine takes its time
def test_every_fault_can_be_done(seed: int, jobs: int, count: int) -> None:
    plan = make(seed, jobs, count)

    assert sum(len(job.faults) for job in plan) >= count
    for job in plan:
        for burst in job.bursts:
            lasting = [f for f in burst.faults if f.kind in LASTING and f.kind != "partition"]
            hit = [host for fault in lasting for host in fault.hosts]
            assert len(hit) == len(set(hit))  # no host is switched off twice
            for fault in burst.faults:
                assert set(fault.hosts) <= set(range(1, job.hosts + 1))
                if fault.kind in SILENCES:
                    assert 0 < fault.for_s < job.lost_after_s
            for index, fault in enumerate(burst.faults):  # nothing strikes a host that is out already
                out = {h for f in burst.faults[:index] if f in lasting for h in f.hosts}
                assert fault.kind == "partition" or not out & set(fault.hosts)
            if burst.quiet:
                assert {fault.kind for fault in burst.faults} <= QUIET
                assert sum(fault.kind in SILENCES for fault in burst.faults) <= 1
            if burst.survived:
                out = taken_out(burst.faults, job.hosts)
                assert out and job.hosts - len(out) >= job.min_nodes


def test_a_late_host_is_struck_once_and_first() -> None:
    late = [job for seed in range(5) for job in make(seed) if job.late]

    assert late
    for job in late:
        kinds = [fault.kind for fault in job.faults]
        assert kinds[0] == "late"
        assert kinds.count("late") == 1


def test_a_partition_takes_out_the_smaller_side() -> None:
    plans = [job for seed in range(30) for job in make(seed)]
    partitions = [(job, f) for job in plans for f in job.faults if f.kind == "partition"]

    assert partitions
    for job, fault in partitions:
        out = taken_out([fault], job.hosts)
        assert 0 < len(out) <= job.hosts / 2
        assert out in (set(fault.hosts), set(range(1, job.hosts + 1)) - set(fault.hosts))


def test_a_deck_deals_every_kind_before_any_comes_again() -> None:
    import random

    deck = Deck(random.Random(1))
    assert sorted(deck.draw(set()) for _ in KINDS) == sorted(KINDS)
    with pytest.raises(ValueError, match="forbidden"):
        deck.draw(set(KINDS))


@pytest.mark.parametrize(("jobs", "faults", "sizes"), [(0, 1, (3,)), (1, 0, (3,)), (1, 1, (1,))])
def test_a_plan_of_nothing_is_refused(jobs: int, faults: int, sizes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="chaos needs"):
        make(1, jobs, faults, sizes)
