"""Who the other nodes say they are: each check names the node that differs and no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.checks.registry import run_checks
from avahi_gpu.model import Facts, Gpu, Service
from tests.unit.checks.conftest import peer
from tests.unit.checks.test_cluster import broken_peer, cluster_findings, errors


def test_cloned_disks_are_named(healthy: Facts) -> None:
    assert healthy.peers is not None
    facts = broken_peer(healthy, id=healthy.peers[0].id)

    assert errors(facts) == ["AG606"]
    assert cluster_findings(facts)["AG606"].says == "gpu-node-2 and gpu-node-3 have the same machine id"


def test_a_clone_of_this_machine_is_named(healthy: Facts) -> None:
    found = cluster_findings(broken_peer(healthy, id=healthy.node_id))["AG606"]

    assert found.verdict == "error" and "gpu-node-1 (this machine)" in found.says


@pytest.mark.parametrize(
    ("torch", "verdict"),
    [("2.12.1", "error"), ("2.13.1", "info"), ("2.13.0+cu126", "info"), ("2.13.0", "ok"), ("", "ok")],
)
def test_another_torch_is_told(torch: str, verdict: str, healthy: Facts) -> None:
    facts = broken_peer(healthy, versions=replace(healthy.versions, torch=torch))

    found = cluster_findings(facts)["AG607"]

    assert found.verdict == verdict
    if verdict == "error":
        assert errors(facts) == ["AG607"]
        assert found.says == "gpu-node-3 has another torch than this machine"


def test_where_this_machine_is_the_odd_one_it_is_named(healthy: Facts) -> None:
    facts = replace(healthy, versions=replace(healthy.versions, torch="2.12.0"))

    assert cluster_findings(facts)["AG607"].says == "this machine has another torch than the other nodes"


def test_a_doctor_without_torch_goes_by_what_the_machine_publishes(healthy: Facts) -> None:
    own = Service(
        "gpu-node-1",
        "_torch._tcp",
        2,
        4,
        "gpu-node-1.local",
        "10.77.0.1",
        29500,
        (b"torch=2.12.0",),
        own=True,
    )
    facts = replace(
        healthy, versions=replace(healthy.versions, torch="", cuda="", nccl=""), own_service=(own,)
    )

    assert cluster_findings(facts)["AG607"].verdict == "error"


@pytest.mark.parametrize("key", ["cuda", "nccl", "python"])
def test_other_libraries_under_the_same_torch_are_an_error(key: str, healthy: Facts) -> None:
    facts = broken_peer(healthy, versions=replace(healthy.versions, **{key: "1.2.3"}))

    assert errors(facts) == ["AG612"]
    assert "gpu-node-3" in cluster_findings(facts)["AG612"].says


def test_other_libraries_that_came_with_another_torch_are_not_told_twice(healthy: Facts) -> None:
    facts = broken_peer(healthy, versions=replace(healthy.versions, torch="2.12.0", cuda="12.4", nccl="2.21"))

    assert errors(facts) == ["AG607"]


def test_another_driver_and_other_numbers_of_gpus_are_worth_knowing(healthy: Facts) -> None:
    facts = broken_peer(healthy, versions=replace(healthy.versions, driver="550.54"), gpus=8)

    found = cluster_findings(facts)

    assert errors(facts) == []
    assert (found["AG612"].verdict, found["AG614"].verdict) == ("info", "info")
    assert found["AG614"].evidence == ("this machine: 1", "gpu-node-2: 1", "gpu-node-3: 8")


def test_a_node_without_gpus_beside_one_with_is_worth_knowing(healthy: Facts) -> None:
    facts = replace(healthy, gpus=(Gpu("NVIDIA H200", 143771, "9.0"),) * 2)

    assert cluster_findings(facts)["AG614"].verdict == "info"


@pytest.mark.parametrize("changed", [{"id": ""}, {"port": 0}])
def test_a_service_that_setup_did_not_write_is_warned_of(changed: dict[str, object], healthy: Facts) -> None:
    found = cluster_findings(broken_peer(healthy, **changed))["AG610"]

    assert found.verdict == "warn" and "gpu-node-3" in found.says


def test_another_port_is_worth_knowing(healthy: Facts) -> None:
    assert cluster_findings(broken_peer(healthy, port=29600))["AG610"].verdict == "info"


# --- names ----------------------------------------------------------------------------------------------


def test_two_machines_of_one_host_name_are_told_to_a_third(healthy: Facts) -> None:
    """The second gpu-node-2 is published under the next name that was free."""
    facts = broken_peer(healthy, calls_itself="gpu-node-2")

    assert errors(facts) == ["AG611"]
    assert cluster_findings(facts)["AG611"].says == (
        "gpu-node-2 and gpu-node-3 have the same host name gpu-node-2"
    )


def test_a_second_machine_of_this_ones_host_name_is_told_to_the_one_that_kept_it(healthy: Facts) -> None:
    facts = broken_peer(healthy, calls_itself="gpu-node-1")

    assert errors(facts) == ["AG611"]
    assert "this machine" in cluster_findings(facts)["AG611"].says


def test_the_renamed_one_itself_has_one_error(healthy: Facts) -> None:
    renamed = replace(healthy.daemon, host_name="gpu-node-4")
    facts = replace(healthy, hostname="gpu-node-2", daemon=renamed)

    assert errors(facts) == ["AG107"]


@pytest.mark.parametrize(("told", "verdict"), [("gpu-node-1a", "info"), ("gpu-node", "warn")])
def test_a_name_that_nobody_else_has_is_no_conflict(told: str, verdict: str, healthy: Facts) -> None:
    found = cluster_findings(broken_peer(healthy, calls_itself=told))["AG611"]

    assert found.verdict == verdict and "gpu-node-3" in found.says


def test_two_services_of_one_machine_are_no_conflict(healthy: Facts) -> None:
    assert healthy.peers is not None
    second = replace(healthy.peers[1], name="another service")
    facts = replace(healthy, peers=(*healthy.peers, second))

    found = cluster_findings(facts)

    assert errors(facts) == [] and found["AG616"].verdict == "ok"


# --- addresses and size ---------------------------------------------------------------------------------


def test_two_machines_with_one_address_are_an_error(healthy: Facts) -> None:
    cards = ("02:00:00:00:00:02", "02:00:00:00:00:03")
    facts = broken_peer(healthy, address="10.77.0.2", cards=cards, glibc=None)
    assert facts.peers is not None
    facts = replace(facts, peers=tuple(replace(p, cards=cards) for p in facts.peers))

    assert errors(facts) == ["AG616"]
    assert "10.77.0.2" in cluster_findings(facts)["AG616"].says


def test_two_names_of_one_network_card_are_worth_knowing(healthy: Facts) -> None:
    facts = broken_peer(healthy, address="10.77.0.2", cards=("02:00:00:00:00:02",), glibc=None)

    assert errors(facts) == [] and cluster_findings(facts)["AG616"].verdict == "info"


@pytest.mark.parametrize(("cards", "wrong"), [(("02:00:00:00:00:03",), ["AG616"]), ((), [])])
def test_who_takes_this_machines_address_is_told(
    cards: tuple[str, ...], wrong: list[str], healthy: Facts
) -> None:
    facts = broken_peer(healthy, address="10.77.0.1", cards=cards, glibc=None)

    assert errors(facts) == wrong


def test_more_nodes_than_it_is_made_for_are_worth_knowing(healthy: Facts) -> None:
    facts = replace(healthy, peers=tuple(peer(n) for n in range(2, 13)))

    assert cluster_findings(facts)["AG615"].verdict == "info"
    assert all(f.verdict in {"ok", "info"} for f in run_checks(facts))
