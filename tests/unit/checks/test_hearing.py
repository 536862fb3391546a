"""Deaf, mute and cut off are told apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.checks.registry import run_checks
from avahi_gpu.model import Ear, Facts, Finding

A, B = "10.77.0.2", "10.77.0.3"
SILENT = Ear("eth0", (A, B), nodes=(A, B), alive=(A, B), sent=True, replied=(), seen=())


def heard(facts: Facts, *ears: Ear) -> dict[str, Finding]:
    return {f.id: f for f in run_checks(replace(facts, network=replace(facts.network, hearing=ears)))}


@pytest.mark.parametrize(
    ("ear", "words"),
    [
        (replace(SILENT, replied=(A,), seen=(A,)), "avahi-daemon does not get them"),
        (replace(SILENT, sent=False), "do not leave eth0"),
        (SILENT, "passes no multicast on"),
        (replace(SILENT, seen=("10.77.0.9",)), "are not heard"),
        (replace(SILENT, asked=(A,), nodes=(A,), alive=(A,)), "does not answer mDNS, though it is there"),
        (replace(SILENT, sent=None, replied=None, seen=None), "no mDNS answer comes"),
    ],
)
def test_each_has_a_sentence_of_its_own(ear: Ear, words: str, healthy: Facts) -> None:
    found = heard(healthy, ear)

    assert [id for id, f in found.items() if f.verdict == "error"] == ["AG207"]
    assert words in found["AG207"].says
    assert "gpu-node-2" in " ".join(found["AG207"].evidence) or ear.replied or ear.sent is False


@pytest.mark.parametrize(
    "ear",
    [
        replace(SILENT, alive=()),  # nodes that are off
        Ear("eth0", ("10.77.0.254",), sent=True, replied=(), seen=()),  # a router that knows no mDNS
    ],
)
def test_silence_of_those_who_may_well_be_silent_is_no_fault(ear: Ear, healthy: Facts) -> None:
    found = heard(healthy, ear)

    assert found["AG207"].verdict == "skip"
    assert found["AG601"].verdict == "ok"


def test_one_card_that_hears_is_enough(healthy: Facts) -> None:
    good = replace(SILENT, answered=(A,), replied=(A,), alive=())

    assert heard(healthy, replace(SILENT, interface="eth1"), good)["AG207"].verdict == "ok"


def test_an_ordinary_user_is_told_what_the_daemon_remembers(healthy: Facts) -> None:
    memory = Ear("eth0", (A,), remembered=(A,))

    assert "two minutes" in heard(healthy, memory)["AG207"].evidence[0]


def test_a_new_answer_that_the_daemon_misses_weighs_more_than_an_old_one_that_it_has(healthy: Facts) -> None:
    doubtful = Ear("eth0", (A, B), nodes=(A, B), remembered=(A,), sent=True, replied=(A, B), seen=(A, B))
    fine = replace(doubtful, replied=(A,))

    assert heard(healthy, doubtful)["AG207"].verdict == "error"
    assert heard(healthy, fine)["AG207"].verdict == "ok"


def test_nobody_to_ask_is_no_fault(healthy: Facts) -> None:
    assert heard(healthy)["AG207"].verdict == "skip"


def test_who_was_hardly_asked_is_not_blamed(healthy: Facts) -> None:
    found = heard(healthy, replace(SILENT, alive=(), hardly_asked=(A, B)))

    assert found["AG207"].verdict == "unknown" and "too seldom" in found["AG207"].says
    assert [id for id, f in found.items() if f.verdict == "error"] == []


@pytest.mark.parametrize(
    ("ears", "words"),
    [
        ((replace(SILENT, alive=(), hardly_asked=(A, B)),), "passes no multicast on"),
        ((), "passes no multicast on"),  # a machine so slow that nobody was asked here
        ((replace(SILENT, alive=(), seen=("10.77.0.9",)),), "are not heard"),
    ],
)
def test_nodes_that_are_all_silent_are_not_at_fault_but_the_network(
    ears: tuple[Ear, ...], words: str, healthy: Facts
) -> None:
    found = heard(none_speaks(healthy), *ears)

    assert [id for id, f in found.items() if f.verdict == "error"] == ["AG207"]
    assert words in found["AG207"].says
    assert A in found["AG207"].evidence[0] and B in found["AG207"].evidence[0]


def test_where_the_others_could_not_be_asked_a_silent_node_is_not_blamed(healthy: Facts) -> None:
    found = heard(none_speaks(healthy, None), replace(SILENT, alive=(), hardly_asked=(A, B)))

    assert [id for id, f in found.items() if f.verdict == "error"] == []
    assert found["AG618"].verdict == "unknown" and "gpu-node-2 did not answer" in found["AG618"].says


def none_speaks(facts: Facts, last: bool | None = False) -> Facts:
    """``facts`` with nodes that are on and do not answer mDNS; ``last``: what is known of the last one."""
    assert facts.peers is not None
    *most, one = facts.peers
    silent = (*(replace(p, speaks=False) for p in most), replace(one, speaks=last))
    return replace(facts, peers=silent)
