"""The one line at a job's end: what is in it, and that it is there after any order of events."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.launch.chronicle import Chronicle, cause_of, spell

A, B, C, D = ("a1", "gpu-node-1"), ("b2", "gpu-node-2"), ("c3", "gpu-node-3"), ("d4", "gpu-node-4")


def begun(*members: tuple[str, str], min_nodes: int = 2) -> Chronicle:
    """Return the chronicle of a job that began at 100 and whose workers have run since 102."""
    chronicle = Chronicle("train", min_nodes, 100.0)
    chronicle.form(101.0, members or (A, B, C))
    chronicle.run(102.0)
    return chronicle


def test_a_job_without_incident_is_one_short_line() -> None:
    assert begun().tell(104.2, "finished") == "job train: finished after 4.2 s, 1 round of 3 nodes"
    assert begun(A).tell(104.2, "failed") == "job train: failed after 4.2 s, 1 round of 1 node"


def test_a_lost_node_is_told_with_when_why_and_how_long_it_took() -> None:
    chronicle = begun()
    chronicle.regroup(340.0, "gpu-node-1, the leader, is lost: silent for 5 s")
    chronicle.form(340.3, (B, C))
    chronicle.run(345.2)

    assert chronicle.tell(823.0, "finished") == (
        "job train: finished after 12 min 3 s, 2 rounds of 2 to 3 nodes, "
        "1 node lost (gpu-node-1 after 4 min: silent for 5 s), regroup took 5.2 s (agreed after 0.3 s)"
    )


def test_own_failures_are_restarts_and_no_regroups() -> None:
    chronicle = begun()
    chronicle.fail(110.0, "rank 1 ended with exit code 7")
    chronicle.form(111.0, (A, B, C))
    chronicle.run(112.0)
    chronicle.fail(120.0, "rank 1 ended with exit code 7")  # the last one: nothing is started again

    told = chronicle.tell(121.0, "failed")

    assert "1 restart after failures of its own workers" in told
    assert "2 rounds of 3 nodes" in told
    assert "regroup" not in told and "lost" not in told


def test_who_joins_and_who_comes_back_is_told() -> None:
    chronicle = begun(A, B)
    chronicle.regroup(110.0, "gpu-node-3 joins")
    chronicle.form(110.1, (A, B, C))
    chronicle.run(113.0)
    chronicle.regroup(120.0, "gpu-node-2 left (interrupted)")
    chronicle.form(121.0, (A, C))
    chronicle.run(125.0)

    told = chronicle.tell(130.0, "finished")

    assert "1 node lost (gpu-node-2 after 20 s: left (interrupted))" in told
    assert "1 node joined (gpu-node-3 after 10 s)" in told
    assert "2 regroups took 3.0 s to 5.0 s" in told


def test_two_machines_of_one_name_are_two() -> None:
    chronicle = begun(("a1", "node"), ("b2", "node"))
    chronicle.regroup(110.0, "node is gone: its connection was reset")
    chronicle.form(111.0, (("b2", "node"),))

    assert "1 node lost (node after 10 s: its connection was reset)" in chronicle.tell(120.0, "finished")


def test_a_round_that_is_lost_before_its_workers_run_belongs_to_the_same_pause() -> None:
    chronicle = begun(A, B, C)
    chronicle.regroup(110.0, "gpu-node-3 is lost: silent for 5 s")
    chronicle.form(111.0, (A, B))
    chronicle.regroup(112.0, "gpu-node-3 joins")
    chronicle.form(113.0, (A, B, C))
    chronicle.run(115.0)

    assert "regroup took 5.0 s (agreed after 3.0 s)" in chronicle.tell(130.0, "finished")


def test_whoever_leaves_says_what_the_others_can_do() -> None:
    assert begun(min_nodes=2).tell(105.0, "left").endswith("; the other 2 nodes can go on")
    assert (
        begun(A, B)
        .tell(105.0, "left")
        .endswith("; the other node cannot go on without this one: 2 are needed")
    )
    assert begun(A, min_nodes=1).tell(105.0, "left").endswith("1 round of 1 node")


def test_a_job_that_found_no_round_again_says_since_when_and_why() -> None:
    chronicle = begun()
    chronicle.regroup(118.0, "gpu-node-2 is lost: silent for 5 s")

    assert chronicle.tell(132.0, "left") == (
        "job train: left after 32 s, 1 round of 3 nodes, "
        "no round since 18 s after its start: gpu-node-2 is lost: silent for 5 s"
    )


def test_before_the_first_round_there_is_nothing_to_tell_but_that_it_was_left() -> None:
    alone = Chronicle("train", 2, 100.0)

    assert alone.tell(105.0, "ended") == ""
    assert alone.tell(105.0, "left") == "job train: left before its first round"


def test_many_losses_stay_one_line() -> None:
    many = tuple((f"{n:02}", f"gpu-node-{n}") for n in range(40))
    chronicle = begun(*many)
    chronicle.regroup(110.0, "x" * 5000)
    chronicle.form(111.0, many[:2])

    told = chronicle.tell(120.0, "finished")

    assert "38 nodes lost (" in told and "and 34 more" in told
    assert len(told) < 600


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("gpu-node-1 is lost: silent for 5 s", "silent for 5 s"),
        ("gpu-node-1, the leader, is gone: its connection was reset", "its connection was reset"),
        ("gpu-node-1 left", "left"),
        ("gpu-node-1", ""),
        ("gpu-node-12 is lost: silent for 5 s", ""),  # another node
        ("the leader runs another round", ""),
        ("", ""),
    ],
)
def test_a_cause_is_what_the_reason_says_of_that_node(reason: str, cause: str) -> None:
    assert cause_of(reason, "gpu-node-1") == cause


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1.0, "0.0 s"),
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (723.0, "12 min 3 s"),
        (3599.7, "1 h"),
        (18725.0, "5 h 12 min"),
        (273600.0, "3 d 4 h"),
    ],
)
def test_a_duration_is_spelled_as_people_say_it(seconds: float, words: str) -> None:
    assert spell(seconds) == words


@given(st.floats(0, 1e8))
def test_no_spelled_duration_has_an_impossible_part(seconds: float) -> None:
    for number, unit in re.findall(r"(\d+) (min|s|h)\b", spell(seconds)):
        assert int(number) < (24 if unit == "h" else 60)


EVENTS = st.one_of(
    st.tuples(st.just("form"), st.lists(st.sampled_from([A, B, C, D]), min_size=1, max_size=4, unique=True)),
    st.tuples(st.just("run"), st.none()),
    st.tuples(st.just("regroup"), st.sampled_from(["", "gpu-node-1 left", "gpu-node-2 is lost: silent"])),
    st.tuples(st.just("fail"), st.text(max_size=200)),
)


@given(
    st.lists(st.tuples(st.floats(0, 1e5), EVENTS), max_size=30),
    st.sampled_from(["finished", "failed", "left", "ended"]),
)
def test_whatever_happens_the_line_counts_right(
    steps: list[tuple[float, tuple[str, object]]], outcome: str
) -> None:
    chronicle, now, rounds = Chronicle("train", 2, 0.0), 0.0, 0
    for wait, (what, value) in steps:
        now += wait
        rounds += what == "form"
        getattr(chronicle, what)(now, *([] if what == "run" else [value]))

    told = chronicle.tell(now, outcome)  # type: ignore[arg-type]

    if not rounds:
        assert told in ("", "job train: left before its first round")
        return
    assert told.startswith(f"job train: {outcome} after {spell(now)}, {rounds} round")
    assert len(told) < 1000
    present = set(chronicle.members.values())
    assert len(present) == chronicle.sizes[-1]
    # whoever was ever lost and is there again has joined again
    for host in present & {change.host for change in chronicle.lost}:
        assert host in {change.host for change in chronicle.joined}
    for pause in chronicle.pauses:
        assert pause.noticed <= (pause.stands or now) <= (pause.running or now)
