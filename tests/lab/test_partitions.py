"""What the network does to a job: cables, lost packets, one way alone, a LAN in parts. Real Avahi, no torch.

docs/reference/faults.md tells users the same: what happens, how long it takes, what is printed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.lab.cluster import Cluster
from tests.lab.jobs import Job, Line, listen, notices, running, wait_for_one_group
from tests.lab.network import Way

pytestmark = pytest.mark.lab

ROUND_S = 10.0  # DESIGN: once nothing is wrong, one group forms within ten seconds
QUICK = {"lost_after_s": 2.0}  # the smallest that launch takes: shorter tests of the same logic
BUSY_S = 5.0  # what a machine that runs other tests besides may add


def lost_within(terms: dict[str, float]) -> float:
    """Return how long the survivors of a silent node may take to stand again."""
    return terms.get("lost_after_s", 5.0) + 3.0 + BUSY_S


def names(lines: list[Line]) -> list[str]:
    return lines[0]["hosts"]


# --- parts of a LAN ----------------------------------------------------------------------------------------


def test_of_two_halves_none_goes_on_and_they_become_one_again(make_cluster: Callable[..., Cluster]) -> None:
    lab = make_cluster(4)
    with Job(lab.hosts, (3, 4), terms=QUICK) as job:
        job.start()
        job.rounds(ROUND_S)
        lab.partition(lab.hosts[:2], lab.hosts[2:])
        for node in job.nodes:
            node.wait_for("over", lost_within(QUICK))

        listen(job.nodes, 3.0)

        assert [running(node) for node in job.nodes] == [None] * 4
        lab.reunite()
        wait_for_one_group(job.nodes, 2 * ROUND_S)


@pytest.mark.faults
def test_of_two_parts_only_the_majority_goes_on_and_they_become_one_again(
    make_cluster: Callable[..., Cluster],
) -> None:
    lab = make_cluster(4)
    with Job(lab.hosts, (3, 4), terms=QUICK) as job:
        job.start()
        job.rounds(ROUND_S)
        lab.partition(lab.hosts[:1], lab.hosts[1:])  # the leader alone

        second = job.rounds(lost_within(QUICK), job.nodes[1:])

        assert names(second) == ["gpu-node-2", "gpu-node-3", "gpu-node-4"]
        job.nodes[0].wait_for("over", ROUND_S)
        listen(job.nodes, 3.0)
        assert running(job.nodes[0]) is None
        lab.reunite()
        wait_for_one_group(job.nodes, 2 * ROUND_S)


@pytest.mark.faults
def test_where_the_smallest_number_is_no_majority_both_parts_go_on_and_become_one_again(
    make_cluster: Callable[..., Cluster],
) -> None:
    """launch and torchrun warn of that when such a job starts."""
    lab = make_cluster(4)
    with Job(lab.hosts, (2, 4), terms=QUICK) as job:
        job.start()
        job.rounds(ROUND_S)
        lab.partition(lab.hosts[:2], lab.hosts[2:])

        here = job.rounds(lost_within(QUICK), job.nodes[:2])
        there = job.rounds(lost_within(QUICK), job.nodes[2:])

        assert (names(here), names(there)) == (["gpu-node-1", "gpu-node-2"], ["gpu-node-3", "gpu-node-4"])
        lab.reunite()
        wait_for_one_group(job.nodes, 2 * ROUND_S)


# --- one way -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("victim", "way"),
    [
        (2, "in"),
        pytest.param(2, "out", marks=pytest.mark.faults),
        pytest.param(0, "in", marks=pytest.mark.faults),
        pytest.param(0, "out", marks=pytest.mark.faults),
    ],
    ids=["member-deaf", "member-dumb", "leader-deaf", "leader-dumb"],
)
def test_a_node_that_is_deaf_or_dumb_is_lost_and_returns(cluster3: Cluster, victim: int, way: Way) -> None:
    with Job(cluster3.hosts, (2, 3), terms=QUICK) as job:
        job.start()
        job.rounds(ROUND_S)
        survivors = [node for index, node in enumerate(job.nodes) if index != victim]
        cluster3[victim].mute(way)

        second = job.rounds(lost_within(QUICK), survivors)

        assert names(second) == [node.host.name for node in survivors]
        # the one that hears nothing knows by itself, the one that is not heard is told
        job.nodes[victim].wait_for("over", lost_within(QUICK))
        listen(job.nodes, 3.0)
        assert running(job.nodes[victim]) is None
        assert {running(node) for node in survivors} == {second[0]["round"]}

        cluster3[victim].heal()
        wait_for_one_group(job.nodes, 2 * ROUND_S)


# --- cables ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("victim", [0, pytest.param(2, marks=pytest.mark.faults)], ids=["leader", "member"])
def test_a_cable_that_is_out_for_four_seconds_costs_nothing(cluster3: Cluster, victim: int) -> None:
    """By default settings, with which a node is lost after five seconds; whenever it is pulled."""
    with Job(cluster3.hosts, (2, 3)) as job:
        job.start()
        job.rounds(ROUND_S)
        listen(job.nodes, 2.8)
        cluster3[victim].cut()
        time.sleep(4.0)
        cluster3[victim].heal()

        listen(job.nodes, 4.0)

        assert not [line for node in job.nodes for line in node.lines if "over" in line]


@pytest.mark.faults
@pytest.mark.parametrize("carrier", [False, True], ids=["unplugged", "behind-a-dead-switch"])
@pytest.mark.parametrize("victim", [0, 2], ids=["leader", "member"])
def test_a_cable_that_is_out_for_25_seconds_costs_two_rounds(
    cluster3: Cluster, victim: int, carrier: bool
) -> None:
    with Job(cluster3.hosts, (2, 3)) as job:
        job.start()
        job.rounds(ROUND_S)
        survivors = [node for index, node in enumerate(job.nodes) if index != victim]
        began = time.monotonic()
        cluster3[victim].cut(carrier=carrier)

        second = job.rounds(lost_within({}), survivors)

        assert names(second) == [node.host.name for node in survivors]
        job.nodes[victim].wait_for("over", lost_within({}))
        listen(job.nodes, began + 25.0 - time.monotonic())
        assert running(job.nodes[victim]) is None
        cluster3[victim].heal()
        wait_for_one_group(job.nodes, 2 * ROUND_S)
        host = cluster3[victim].name
        for node in survivors:  # the cause is told once
            assert sum(f"{host}" in n and "is lost" in n for n in notices(node).splitlines()) == 1


# --- poor networks -----------------------------------------------------------------------------------------


@pytest.mark.faults
@pytest.mark.parametrize(
    ("loss", "delay_ms", "form_s"),
    [(0.0, 50.0, 15.0), (0.1, 0.0, 30.0), (0.1, 50.0, 30.0), (0.3, 0.0, 90.0)],
    ids=["100-ms", "ten-percent", "ten-percent-and-100-ms", "thirty-percent"],
)
def test_on_a_poor_network_a_job_forms_and_stays_one(
    cluster3: Cluster, loss: float, delay_ms: float, form_s: float
) -> None:
    """Loss is that of each way between a node and the switch: two hosts meet it twice on every way."""
    half = 1 - (1 - loss) ** 0.5
    for number, host in enumerate(cluster3):
        host.impair(loss=half, delay_ms=delay_ms / 2, seed=number)
    with Job(cluster3.hosts, (2, 3)) as job:
        began = time.monotonic()
        job.start()
        rounds = [node.wait_for("round", form_s, lambda line: len(line["hosts"]) == 3) for node in job.nodes]
        took = time.monotonic() - began
        assert len({line["round"] for line in rounds}) == 1
        print(f"loss {loss:g}, delay {2 * delay_ms:g} ms: a round of three after {took:.1f} s")

        listen(job.nodes, 10.0)

        overs = sum("over" in line for node in job.nodes for line in node.lines)
        print(f"rounds that ended meanwhile, over all nodes: {overs}")
        if loss < 0.2:
            assert {running(node) for node in job.nodes} == {rounds[0]["round"]}
        for host in cluster3:
            host.heal()
        wait_for_one_group(job.nodes, 3 * ROUND_S)
