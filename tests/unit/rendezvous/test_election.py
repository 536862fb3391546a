"""Who leads, and which candidates are worth waiting for."""

from __future__ import annotations

import itertools
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.model import natural_order
from avahi_gpu.rendezvous.election import (
    ASIDE_MAX_S,
    ASIDE_S,
    CANDIDATES_MAX,
    HURRY_S,
    REMEMBER_S,
    Candidates,
)
from tests.unit.rendezvous.desk import node


def test_hosts_are_ordered_as_people_count() -> None:
    hosts = ["gpu-node-10", "gpu-node-2", "GPU-node-1", "gpu", "gpu-node-2b"]

    wanted = ["gpu", "GPU-node-1", "gpu-node-2", "gpu-node-2b", "gpu-node-10"]
    assert sorted(hosts, key=natural_order) == wanted


@given(st.lists(st.text(max_size=20), max_size=8), st.randoms())
def test_any_names_have_an_order(names: list[str], chance: Random) -> None:
    """No name makes the comparison fail, and the order does not depend on the order before."""
    shuffled = names.copy()
    chance.shuffle(shuffled)

    assert [natural_order(n) for n in sorted(shuffled, key=natural_order)] == [
        natural_order(n) for n in sorted(names, key=natural_order)
    ]


@given(st.text(), st.text())
def test_the_order_of_names_is_total(one: str, other: str) -> None:
    assert (natural_order(one) < natural_order(other)) + (natural_order(other) < natural_order(one)) + (
        natural_order(one) == natural_order(other)
    ) == 1


def test_the_highest_priority_leads_then_the_host_then_the_id() -> None:
    second_of_host_1 = replace(node(9), host="node-1")
    order = sorted([node(10), node(2), second_of_host_1, node(1), node(7, priority=1)], key=lambda c: c.claim)

    assert [c.id[-1] for c in order] == ["7", "1", "9", "2", "a"]


def test_a_running_round_leads_whatever_the_names_are() -> None:
    assert min([node(1), node(9, size=2), node(8, size=3)], key=lambda c: c.claim) == node(8, size=3)


def test_the_best_is_oneself_where_nobody_else_is_known() -> None:
    assert Candidates(node(5)).best(0.0) == node(5)


def test_a_node_does_not_learn_of_itself() -> None:
    candidates = Candidates(node(5))

    assert not candidates.learn(node(5, size=4))
    assert candidates.known == {}


def test_a_candidate_that_does_not_answer_a_connect_holds_nobody_up() -> None:
    candidates = Candidates(node(5))
    candidates.learn(node(1))
    candidates.trying_since[node(1).id] = 10.0

    assert candidates.best(10.0 + HURRY_S - 0.01) == node(1)
    assert candidates.next_change(10.0) == 10.0 + HURRY_S
    assert candidates.best(10.0 + HURRY_S) == node(5)


def test_a_doubted_candidate_counts_again_once_it_answers_or_moves_or_is_announced_anew() -> None:
    candidates = Candidates(node(5))
    candidates.appear(node(1))
    for mend in (
        lambda: candidates.forgive(node(1).id),
        lambda: candidates.learn(replace(node(1), port=29411)),
        lambda: (candidates.vanish(node(1).id), candidates.appear(node(1))),
    ):
        candidates.doubt(node(1).id, 10.0)
        assert candidates.best(1e9) == node(5)
        mend()
        assert candidates.best(10.0).host == "node-1"


def test_what_a_doubted_leader_said_of_its_round_is_forgotten() -> None:
    candidates = Candidates(node(5))
    candidates.learn(node(9, size=3))
    candidates.doubt(node(9).id, 10.0)
    candidates.forgive(node(9).id)

    assert candidates.best(10.0) == node(5)


def test_a_doubted_candidate_without_a_record_is_forgotten_in_the_end() -> None:
    candidates = Candidates(node(5))
    candidates.appear(node(1))
    candidates.learn(node(2))
    for moment in (0.0, 1.0, REMEMBER_S - 1):
        candidates.doubt(node(1).id, moment)
        candidates.doubt(node(2).id, moment)

    assert len(candidates.known) == 2
    candidates.doubt(node(1).id, REMEMBER_S + 1)
    candidates.doubt(node(2).id, REMEMBER_S + 1)
    assert list(candidates.known) == [node(1).id], "its record is still there"


def test_whoever_sends_us_on_is_left_alone_longer_each_time() -> None:
    candidates = Candidates(node(5))
    candidates.learn(node(1))
    now, waits = 0.0, []
    for _ in range(12):
        candidates.set_aside(node(1).id, now)
        until = candidates.next_change(now)
        assert until is not None
        assert candidates.best(now) == node(5)
        assert candidates.best(until) == node(1)
        waits.append(until - now)
        now = until

    assert abs(waits[0] - ASIDE_S) < 1e-9
    assert all(b > a - 1e-9 for a, b in itertools.pairwise(waits))
    assert max(waits) <= ASIDE_MAX_S + 1e-9


def test_a_record_does_not_overrule_what_a_node_said_itself() -> None:
    candidates = Candidates(node(5))
    candidates.learn(node(9, priority=3, size=2))
    candidates.appear(replace(node(9), host="somebody-else", port=29444))

    assert candidates.known[node(9).id] == replace(node(9, priority=3, size=2), port=29444)


def test_a_flood_of_candidates_is_bounded_and_pushes_out_only_the_doubted() -> None:
    candidates = Candidates(node(5))
    for number in range(100, 100 + CANDIDATES_MAX):
        candidates.appear(node(number))

    assert not candidates.learn(node(1))
    candidates.doubt(node(107).id, 1.0)
    assert candidates.learn(node(1))
    assert node(107).id not in candidates.known
    assert len(candidates.known) == CANDIDATES_MAX
