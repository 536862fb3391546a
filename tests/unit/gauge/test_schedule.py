"""Every pair once, one after the other, within bounds."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.gauge.schedule import EVERY_PAIR_UP_TO, make_schedule


@given(st.integers(2, 64), st.booleans())
def test_every_node_sends_and_receives_and_none_to_itself(nodes: int, quick: bool) -> None:
    plan = make_schedule(nodes, quick=quick)

    assert len(set(plan.pairs)) == len(plan.pairs)
    assert all(source != target for source, target in plan.pairs)
    assert {s for s, _ in plan.pairs} == {t for _, t in plan.pairs} == set(range(nodes))
    if nodes <= EVERY_PAIR_UP_TO:
        assert (len(plan.pairs), plan.sampled) == (nodes * (nodes - 1), False)
    else:
        assert plan.sampled


@given(st.integers(2, 64))
def test_the_whole_takes_minutes_at_most(nodes: int) -> None:
    plan = make_schedule(nodes)

    assert len(plan.pairs) * (plan.send_s + plan.echo_s) <= 200
    assert make_schedule(nodes, quick=True).send_s < plan.send_s


def test_nodes_take_turns() -> None:
    pairs = make_schedule(5).pairs

    assert all(one[0] != other[0] for one, other in pairwise(pairs))
