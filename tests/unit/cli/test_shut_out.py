"""What setup without --firewall says of a firewall that keeps the LAN out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.cli.shut_out import demand_sight, describe_firewall, judge_proof
from avahi_gpu.errors import NeedsRoot
from avahi_gpu.model import Facts, PacketFate
from tests.unit.checks.conftest import healthy
from tests.unit.checks.test_firewall import walled

PROOF = ["AG504", "AG105"]

__all__ = ["healthy"]


def unseen(facts: Facts) -> Facts:
    """The same machine, which Avahi does not see on the LAN."""
    return replace(facts, own_service=(), own_name=None)


def test_a_machine_that_is_seen_all_the_same_is_a_node(healthy: Facts) -> None:
    findings = judge_proof(walled(healthy, "mdns-in"), PROOF)

    assert {f.verdict for f in findings} == {"ok"}
    told = describe_firewall(walled(healthy, "mdns-in"), frozenset(), findings, opens=False)
    assert len(told) == 1 and "(AG204); avahi-gpu setup --firewall" in told[0]


def test_a_machine_that_is_not_seen_hears_why(healthy: Facts) -> None:
    facts = unseen(walled(healthy, "mdns-in"))
    findings = judge_proof(facts, PROOF)

    assert [f.id for f in findings if f.verdict == "error"] == ["AG204"]
    assert not [f for f in findings if f.id in PROOF]
    assert describe_firewall(facts, frozenset(), findings, opens=False) == []


def test_with_an_open_firewall_the_proof_speaks_for_itself(healthy: Facts) -> None:
    assert "AG504" in [f.id for f in judge_proof(unseen(walled(healthy)), PROOF) if f.verdict == "error"]
    assert judge_proof(healthy, []) == []


def test_shut_connections_are_told_and_nothing_of_other_areas(healthy: Facts) -> None:
    facts = walled(healthy, "tcp-in", "tcp-high-in")

    told = describe_firewall(facts, frozenset(), (), opens=False)

    assert len(told) == 1 and "(AG206)" in told[0]
    assert describe_firewall(facts, frozenset({"names"}), (), opens=False) == []


def test_what_nobody_can_tell_is_said_to_whoever_asked_for_it(healthy: Facts) -> None:
    facts = walled(healthy)
    assert facts.network.firewall is not None
    strange = replace(
        facts.network.firewall,
        fates=(PacketFate("tcp-in", "eth0", 4, "unknown", "rule x"),),
        unclear=("rule x",),
    )
    facts = replace(facts, opens_firewall=True, network=replace(facts.network, firewall=strange))

    assert describe_firewall(facts, frozenset(), (), opens=False) == []
    assert any("rule x (AG215)" in line for line in describe_firewall(facts, frozenset(), (), opens=True))


def test_who_may_not_see_the_rules_is_told_so() -> None:
    demand_sight(is_root=True)
    with pytest.raises(NeedsRoot):
        demand_sight(is_root=False)
