"""The checks of other nodes: each names the node at fault and no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.checks.registry import run_checks
from avahi_gpu.model import Facts, Finding, Lookup, PeerFacts


def broken_peer(facts: Facts, **changed: object) -> Facts:
    """``facts`` with gpu-node-3 changed."""
    assert facts.peers is not None
    second, third = facts.peers
    return replace(facts, peers=(second, replace(third, **changed)))  # type: ignore[arg-type]


def cluster_findings(facts: Facts) -> dict[str, Finding]:
    return {f.id: f for f in run_checks(facts, only=("cluster",))}


def errors(facts: Facts) -> list[str]:
    return [f.id for f in run_checks(facts) if f.verdict == "error"]


def test_a_named_peer_that_is_not_listed_is_the_only_error(healthy: Facts) -> None:
    facts = replace(healthy, wanted_peers=("gpu-node-2", "gpu-node-7"))

    found = cluster_findings(facts)

    assert errors(facts) == ["AG601"]
    assert found["AG601"].says == "gpu-node-7 is not listed"
    assert found["AG604"].verdict == "ok"  # the others are judged all the same


@pytest.mark.parametrize(
    "name", ["gpu-node-2", "GPU-Node-2", "gpu-node-2.local", "gpu-node-2.local.", "10.77.0.2"]
)
def test_a_peer_may_be_named_in_any_usual_way(name: str, healthy: Facts) -> None:
    assert cluster_findings(replace(healthy, wanted_peers=(name,)))["AG601"].verdict == "ok"


def test_alone_on_the_lan_is_a_warning(healthy: Facts) -> None:
    found = cluster_findings(replace(healthy, peers=()))

    assert found["AG601"].verdict == "warn"
    assert {f.verdict for id, f in found.items() if id != "AG601"} == {"skip"}


def test_a_listed_peer_that_nobody_resolves(healthy: Facts) -> None:
    facts = broken_peer(
        healthy, address=None, host="", glibc=None, alive=None, resolve_error="timed out after 5 s"
    )

    found = cluster_findings(facts)

    assert errors(facts) == ["AG602"]
    assert found["AG602"].says.startswith("gpu-node-3 is listed")
    assert found["AG602"].evidence == ("gpu-node-3: timed out after 5 s",)


def test_a_peer_whose_cable_is_cut_is_one_error(healthy: Facts) -> None:
    """Avahi still knows its address, glibc no longer does: the cable is the cause, not glibc."""
    facts = broken_peer(healthy, alive=False, glibc=Lookup("gpu-node-3.local", (), 5.0, "timeout"))

    assert errors(facts) == ["AG604"]
    assert "gpu-node-3" in cluster_findings(facts)["AG604"].says


def test_a_peer_that_glibc_cannot_find(healthy: Facts) -> None:
    facts = broken_peer(healthy, glibc=Lookup("gpu-node-3.local", (), 0.01, "Name or service not known"))

    assert errors(facts) == ["AG603"]
    assert "gpu-node-3.local" in cluster_findings(facts)["AG603"].says


@pytest.mark.parametrize(
    ("lookup", "word"),
    [
        (Lookup("gpu-node-3.local", ("10.9.9.9",), 0.01), "different addresses"),
        (Lookup("gpu-node-3.local", ("10.77.0.3",), 6.1), "slow"),
    ],
)
def test_a_doubtful_answer_of_glibc_is_a_warning(lookup: Lookup, word: str, healthy: Facts) -> None:
    found = cluster_findings(broken_peer(healthy, glibc=lookup))["AG603"]

    assert found.verdict == "warn" and word in found.says


def test_an_untested_peer_is_not_called_dead(healthy: Facts) -> None:
    assert healthy.peers is not None
    facts = replace(healthy, peers=tuple(replace(p, alive=None) for p in healthy.peers))

    assert cluster_findings(facts)["AG604"].verdict == "unknown"


@pytest.mark.parametrize("address", ["192.168.99.3", "2001:db8::3"])
def test_a_peer_of_another_subnet(address: str, healthy: Facts) -> None:
    facts = broken_peer(healthy, address=address, glibc=Lookup("gpu-node-3.local", (address,), 0.01))

    assert errors(facts) == ["AG605"]
    assert address in cluster_findings(facts)["AG605"].evidence[0]


def test_link_local_addresses_are_on_the_link(healthy: Facts) -> None:
    facts = broken_peer(healthy, address="fe80::3", glibc=Lookup("gpu-node-3.local", ("fe80::3",), 0.01))

    assert errors(facts) == []


def test_cloned_disks_are_named(healthy: Facts) -> None:
    assert healthy.peers is not None
    facts = broken_peer(healthy, id=healthy.peers[0].id)

    found = cluster_findings(facts)["AG606"]

    assert found.verdict == "warn"
    assert found.says == "gpu-node-2 and gpu-node-3 have the same id"


def test_a_clone_of_this_machine_is_named(healthy: Facts) -> None:
    found = cluster_findings(broken_peer(healthy, id=healthy.node_id))["AG606"]

    assert found.verdict == "warn" and "gpu-node-1 (this machine)" in found.says


@pytest.mark.parametrize(
    ("torch", "verdict"), [("2.12.1", "warn"), ("2.13.1", "info"), ("2.13.0", "ok"), ("", "ok")]
)
def test_another_torch_is_told(torch: str, verdict: str, healthy: Facts) -> None:
    facts = broken_peer(healthy, versions=replace(healthy.versions, torch=torch))

    found = cluster_findings(facts)["AG607"]

    assert found.verdict == verdict
    if verdict == "warn":
        assert found.says.startswith("gpu-node-3 has another torch")


def test_peers_nobody_looked_for_are_unknown_and_the_rest_is_skipped(healthy: Facts) -> None:
    found = cluster_findings(replace(healthy, peers=None))

    assert found["AG601"].verdict == "unknown"
    assert {f.verdict for id, f in found.items() if id != "AG601"} == {"skip"}


def test_a_peer_without_any_words_is_survived(healthy: Facts) -> None:
    silent = PeerFacts(name="", host="", address=None, interface=None)

    assert all("itself failed" not in f.says for f in run_checks(replace(healthy, peers=(silent,))))
