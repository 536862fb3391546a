"""Nodes that should be listed and are not: the doctor looks for them by other ways and says what it found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.cluster import Cluster, cluster
from tests.lab.doctoring import doctor, set_up


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    """Three nodes; the first has seen the others in good health. The tests go on where the last one ended."""
    with cluster(3) as lab:
        set_up(lab)
        assert doctor(lab[0], "--fail-on", "warn").exit_code == 0
        yield lab


def test_a_node_with_more_gpus_is_worth_knowing_and_no_fault(nodes: Cluster) -> None:
    service = "/etc/avahi/services/torch.service"
    nodes[2].write(service, nodes[2].read(service).replace("gpus=0", "gpus=8"))
    nodes[2].restart_avahi()

    found = doctor(nodes[0], "--only", "AG614")

    assert (found.exit_code, found.of("info")) == (0, ["AG614"])
    assert found.findings["AG614"]["evidence"][-1] == "gpu-node-3: 8"


def test_a_machine_that_is_no_node_is_told_from_one_that_is_not_there(nodes: Cluster) -> None:
    nodes[2].run(["avahi-gpu", "undo", "--yes"], check=True, timeout=90)
    nodes[2].path("/etc/avahi/services/torch.service").unlink(missing_ok=True)
    nodes[2].restart_avahi()

    found = doctor(nodes[0], "gpu-node-2", "gpu-node-3")

    assert (found.exit_code, found.errors) == (1, ["AG601"])
    assert "its Avahi answers, but it does not announce itself as a node" in found.says("AG601")


def test_a_node_whose_neighbours_are_no_nodes_any_more_has_no_fault(nodes: Cluster) -> None:
    nodes[1].run(["avahi-gpu", "undo", "--yes"], check=True, timeout=90)
    nodes[1].path("/etc/avahi/services/torch.service").unlink(missing_ok=True)
    nodes[1].restart_avahi()

    found = doctor(nodes[0])
    set_up([nodes[1]])

    assert (found.exit_code, found.errors) == (0, [])
    assert "multicast" not in found.findings["AG617"]["says"]
    assert "is not heard" not in found.says("AG617")


def test_a_node_whose_avahi_has_ended_is_known_from_before_and_answers(nodes: Cluster) -> None:
    nodes[2].stop_avahi()

    named = doctor(nodes[0], "gpu-node-3")
    unnamed = doctor(nodes[0])

    assert named.errors == ["AG601"] and "is on, but is not heard by mDNS" in named.says("AG601")
    assert nodes[2].address in named.says("AG601")
    assert (unnamed.errors, unnamed.of("warn")) == ([], ["AG617"])
    assert "gpu-node-3" in unnamed.says("AG617")


def test_a_node_that_was_switched_off_is_no_fault_until_somebody_asks_for_it(nodes: Cluster) -> None:
    nodes[2].kill()

    unnamed = doctor(nodes[0], "--fail-on", "warn")
    named = doctor(nodes[0], "gpu-node-3")

    assert (unnamed.exit_code, unnamed.findings["AG617"]["verdict"]) == (0, "info")
    assert named.errors == ["AG601"] and "no machine is at its address" in named.says("AG601")
