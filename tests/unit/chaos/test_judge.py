"""The judge finds every kind of broken promise, and nothing where none was broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from chaos.journal import Life, Step
from chaos.judge import Ended, Evidence, Violation, Wait, Window, count, judge, works_of
from tests.unit.chaos.history import LOSSES, Chapter, histories, job_of, names, tell

ONE, TWO, THREE = names(3)
ALL = (ONE, TWO, THREE)


def kinds(violations: list[Violation]) -> set[str]:
    return {violation.kind for violation in violations}


def three_groups() -> Evidence:
    """All three do 10 steps (9 committed), two go on to 20 (18 committed), then all three to 25 (24)."""
    return tell(job_of(3), [Chapter(ALL, 10), Chapter((TWO, THREE), 11), Chapter(ALL, 7)])


def lives_of(evidence: Evidence, generation: int) -> list[Life]:
    return [life for life in evidence.lives if life.group and life.group[0] == generation]


# --- nothing is wrong --------------------------------------------------------------------------------------


@given(histories())
@settings(deadline=None)  # a busy machine takes its time
def test_any_history_by_the_rules_passes(evidence: Evidence) -> None:
    assert judge(evidence) == []


def test_the_counts_tell_what_was_committed_and_what_was_done_again() -> None:
    counts = count(three_groups())

    assert (counts.rounds, counts.starts, counts.steps) == (3, 8, 24)
    assert counts.redone == 3  # 10, 19 and 20
    assert counts.thrown_away == 0


def test_a_holder_of_a_newer_checkpoint_that_was_not_committed_throws_it_away() -> None:
    """Host 1 alone has written step 9 when its group breaks: the two others do 7 to 9 again, and go on."""
    chapters = [Chapter(ALL, 9, frozenset({ONE})), Chapter((TWO, THREE), 1), Chapter(ALL, 3)]
    evidence = tell(job_of(3), chapters)

    assert judge(evidence) == []
    assert count(evidence).thrown_away == 1
    assert lives_of(evidence, 3)[0].held == (1, 9)
    assert lives_of(evidence, 3)[0].source == (2, 6)


def test_a_worker_that_was_stopped_may_complete_one_more_step_when_it_goes_on() -> None:
    """Host 1 is frozen after the others have sent their part of step 11; it ends the step 30 s later."""
    evidence = three_groups()
    frozen = lives_of(evidence, 1)[0]
    frozen.steps.append(Step(11, LOSSES[11], frozen.last, frozen.last + 0.4))
    assert judge(evidence) == []


# --- steps -------------------------------------------------------------------------------------------------


def test_two_groups_at_once_are_found() -> None:
    """Hosts 1 and 2 train while 3 and 4 do: each group's disks are in order, and so is each host."""
    one = tell(job_of(4, 2), [Chapter(("gpu-node-1", "gpu-node-2"), 10)])
    other = tell(job_of(4, 2), [Chapter(("gpu-node-3", "gpu-node-4"), 10)])
    for life in other.lives:
        assert life.group is not None
        life.group = (2, life.group[1])

    violations = judge(Evidence(one.job, lives=[*one.lives, *other.lives]))

    assert {"at once", "twice"} <= kinds(violations)
    assert any("both trained for 0.9" in v.text for v in violations)


def test_two_groups_of_one_generation_are_found() -> None:
    one = tell(job_of(4, 2), [Chapter(("gpu-node-1", "gpu-node-2"), 2)])
    other = tell(job_of(4, 2), [Chapter(("gpu-node-3", "gpu-node-4"), 2)])

    assert "members" in kinds(judge(Evidence(one.job, lives=[*one.lives, *other.lives])))


def test_workers_of_two_groups_on_one_host_are_found() -> None:
    evidence = three_groups()
    lives_of(evidence, 1)[1].last = lives_of(evidence, 2)[0].start + 0.5

    assert [str(v) for v in judge(evidence)] == [
        f"at once: {TWO}: a worker wrote 0.50 s after the next had started"
    ]


def test_a_committed_step_that_another_group_does_again_is_found() -> None:
    """The disks of hosts 2 and 3 lose what was committed."""
    first = tell(job_of(3), [Chapter(ALL, 9)])
    second = tell(job_of(3), [Chapter(ALL, 6), Chapter((TWO, THREE), 5)])
    again = [life for life in second.lives if life.group and life.group[0] == 2]

    violations = judge(Evidence(first.job, lives=[*first.lives, *again]))

    assert "twice" in kinds(violations)
    assert any("did step 7 again, which generation 1" in v.text for v in violations)


def test_a_group_that_begins_anew_is_found() -> None:
    evidence = tell(job_of(3), [Chapter(ALL, 10)])
    anew = tell(job_of(3), [Chapter((TWO, THREE), 5)])
    for life in anew.lives:
        life.group = (2, (TWO, THREE))

    violations = judge(Evidence(evidence.job, lives=[*evidence.lives, *anew.lives]))

    assert any("goes on from step 0, but generation 1" in v.text for v in violations)


@given(histories(), st.data())
@settings(deadline=None)  # a busy machine takes its time
def test_a_step_that_nobody_did_is_found(evidence: Evidence, data: st.DataObject) -> None:
    """Wherever a step is taken out of every journal, it is missed, if it was committed."""
    upto = max((work.committed for work in works_of(evidence.lives)), default=0)
    assume(upto > 0)
    gone = data.draw(st.integers(1, upto))
    for life in evidence.lives:
        life.steps = [step for step in life.steps if step.step != gone]

    assert "owners" in kinds(judge(evidence))


def test_a_source_that_nobody_saved_is_found() -> None:
    evidence = three_groups()
    for life in lives_of(evidence, 3):
        life.source = (2, 19)
        life.steps = [replace(step, step=step.step + 1, loss=LOSSES[step.step + 1]) for step in life.steps]

    assert any("goes on from (2, 19), which nobody saved" in v.text for v in judge(evidence))


# --- losses ------------------------------------------------------------------------------------------------


@given(histories(), st.data())
@settings(deadline=None)  # a busy machine takes its time
def test_any_single_wrong_loss_is_found(evidence: Evidence, data: st.DataObject) -> None:
    lives = [life for life in evidence.lives if life.steps]
    assume(lives)
    life = data.draw(st.sampled_from(lives))
    index = data.draw(st.integers(0, len(life.steps) - 1))
    wrong = data.draw(st.sampled_from([float("nan"), 0.0, life.steps[index].loss * (1 + 1e-6)]))
    life.steps[index] = replace(life.steps[index], loss=wrong)

    assert [v.kind for v in judge(evidence)] == ["loss"]


def test_weights_that_are_not_the_checkpoints_are_found() -> None:
    """The step's number goes on and the weights begin anew: the losses are those of other steps."""
    evidence = three_groups()
    for life in lives_of(evidence, 2):
        life.steps = [replace(s, loss=LOSSES[s.step - 9]) for s in life.steps]

    assert kinds(judge(evidence)) == {"loss"}


# --- members -----------------------------------------------------------------------------------------------


def swap_ranks(evidence: Evidence) -> None:
    lives_of(evidence, 1)[0].rank = 1


def forget_one(evidence: Evidence) -> None:
    lives_of(evidence, 2)[0].size = 3


def disagree(evidence: Evidence) -> None:
    lives_of(evidence, 2)[1].source = (1, 8)


def shrink(evidence: Evidence) -> None:
    evidence.job = job_of(3, 3)


def run_twice(evidence: Evidence) -> None:
    life = lives_of(evidence, 1)[0]
    evidence.lives.append(replace(life, start=life.last + 0.1, last=life.last + 0.2))


@pytest.mark.parametrize("plant", [swap_ranks, forget_one, disagree, shrink, run_twice])
def test_a_group_that_does_not_agree_is_found(plant: Callable[[Evidence], None]) -> None:
    evidence = three_groups()
    plant(evidence)

    assert "members" in kinds(judge(evidence))


# --- what is seen from outside -----------------------------------------------------------------------------


def test_what_is_seen_from_outside_is_found() -> None:
    evidence = three_groups()
    start = lives_of(evidence, 2)[0].start
    evidence.waits = [Wait("calm", 10, 3.0), Wait("all train", 60, None)]
    evidence.windows = [Window(start - 1, start + 5, "a nap"), Window(start + 1, start + 2, "another")]
    evidence.ended = [Ended(ONE, "launch", 0, (0,)), Ended(TWO, "launch", 1, (), "it gave up")]
    evidence.left = ["process after the end: python"]
    evidence.noise = ["gpu-node-1 printed: Task was destroyed"]
    evidence.errors = ["nft: no such table"]

    assert [str(v) for v in judge(evidence)] == [
        "hang: all train: not within 60 s",
        "restart: a nap cost a restart after 1.0 s",
        f"exit: {TWO}: launch ended with 1, not no end at all: it gave up",
        "left: process after the end: python",
        "noise: gpu-node-1 printed: Task was destroyed",
        "lab: nft: no such table",
    ]


def test_a_training_that_not_everybody_finishes_is_found() -> None:
    evidence = three_groups()
    evidence.job = replace(evidence.job, ending="finish")
    for life in lives_of(evidence, 3)[:2]:
        life.finished = True

    assert [str(v) for v in judge(evidence)] == [f"finish: only {ONE}, {TWO} finished the training"]
    lives_of(evidence, 3)[2].finished = True
    assert judge(evidence) == []


def test_a_job_that_never_trained_is_no_clean_one() -> None:
    evidence = Evidence(replace(job_of(3), ending="finish"))

    assert [str(v) for v in judge(evidence)] == ["finish: only nobody finished the training"]
