"""Nodes that are not listed: what was learnt by other ways decides what is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.model import AbsentPeer, Facts
from tests.unit.checks.test_cluster import cluster_findings, errors

LOST = AbsentPeer("gpu-node-9", "10.77.0.9", "memory", True, seen_ago_s=300.0)


@pytest.mark.parametrize(
    ("absent", "cause"),
    [
        (AbsentPeer("gpu-node-9"), "nobody answers for that name"),
        (AbsentPeer("gpu-node-9", "10.77.0.9", "mdns", True), "does not announce itself as a node"),
        (AbsentPeer("gpu-node-9", "10.77.0.9", "glibc", True), "is not heard by mDNS"),
        (LOST, "is not heard by mDNS"),
        (replace(LOST, alive=False, cards=()), "no machine is at its address"),
        (replace(LOST, alive=False, cards=("02:00:00:00:00:09",)), "its firewall drops everything"),
        (replace(LOST, alive=False), "it does not answer"),
    ],
)
def test_a_named_node_that_is_not_listed_is_one_error_with_its_cause(
    absent: AbsentPeer, cause: str, healthy: Facts
) -> None:
    facts = replace(healthy, wanted_peers=("gpu-node-2", "gpu-node-9"), absent=(absent,))

    found = cluster_findings(facts)["AG601"]

    assert errors(facts) == ["AG601"]
    assert found.says.startswith("gpu-node-9 is not listed: ") and cause in found.says
    assert not absent.address or absent.address in found.evidence[0]


@pytest.mark.parametrize(("alive", "verdict"), [(True, "warn"), (False, "info"), (None, "info")])
def test_who_was_seen_before_and_is_missing_is_told(alive: bool | None, verdict: str, healthy: Facts) -> None:
    found = cluster_findings(replace(healthy, absent=(replace(LOST, alive=alive),)))["AG617"]

    assert found.verdict == verdict and "gpu-node-9" in found.says
    assert "5 minutes ago" in found.evidence[0]


def test_when_all_who_were_seen_are_there_and_unheard_multicast_is_to_blame(healthy: Facts) -> None:
    facts = replace(healthy, peers=(), absent=(LOST,))

    assert errors(facts) == ["AG617"]
    assert "multicast" in cluster_findings(facts)["AG617"].hint


def test_where_all_who_were_seen_are_heard_and_no_nodes_any_more_multicast_is_fine(healthy: Facts) -> None:
    facts = replace(healthy, peers=(), absent=(replace(LOST, alive=True, source="mdns"),))

    found = cluster_findings(facts)["AG617"]

    assert (errors(facts), found.verdict) == ([], "warn")
    assert "does not announce itself" in found.hint or "was not set up" in found.hint


def test_where_all_who_were_seen_are_gone_this_machine_may_be_the_one_cut_off(healthy: Facts) -> None:
    gone = tuple(replace(LOST, name=f"gpu-node-{n}", alive=False, cards=()) for n in (8, 9))

    found = cluster_findings(replace(healthy, peers=(), absent=gone))["AG617"]

    assert found.verdict == "warn" and "cut off" in found.hint
