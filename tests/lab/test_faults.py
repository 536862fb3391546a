"""What happens to a job when hosts and daemons fail. Real Avahi, no torch.

Networks that fail are in test_partitions.py, workers and agents in test_workers.py.
docs/reference/faults.md tells the same to users.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pytest

from tests.lab.cluster import Cluster
from tests.lab.host import Host
from tests.lab.jobs import Job, listen, notices, wait_for_one_group

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

NAMES = ["gpu-node-1", "gpu-node-2", "gpu-node-3"]
QUICK = {"lost_after_s": 2.0}  # the smallest that launch takes: shorter tests of the same logic
ROUND_S = 10.0  # DESIGN: once nothing is wrong, one group forms within ten seconds
LOST_S = 2.0 + 3.0 + 5.0  # until the survivors stand again, on a machine that runs other tests besides
BUSY_S = 3.0  # what a machine that runs other tests besides may add
TTL_S = 12.0  # records of a node without power: 10 s, and what Avahi takes to notice
TAKE_PORTS = """
import socket, sys
held = []
for port in range(int(sys.argv[1]), int(sys.argv[2]) + 1):
    held.append(socket.create_server(("", port), backlog=1))
print("taken", flush=True)
sys.stdin.read()
"""


def until(found: Callable[[], object], within_s: float) -> bool:
    """Wait until ``found`` returns something true."""
    deadline = time.monotonic() + within_s
    while not found():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def announced(host: Host, name: str) -> bool:
    """Say whether the host's Avahi knows a running node of a job on ``name``."""
    # unresolved: avahi-browse -r may wait for ever for the record of one that leaves at that moment
    return f";{name}-" in host.run(["avahi-browse", "-pt", "_torch-rdzv._tcp"], timeout=20).stdout


# --- machines that stand still, or lose their power --------------------------------------------------------


def test_a_frozen_machine_is_lost_and_does_not_go_on_with_its_old_round(cluster3: Cluster) -> None:
    with Job(cluster3.hosts, (2, 3), terms=QUICK) as job:
        job.start()
        job.rounds(ROUND_S)
        cluster3[0].freeze()

        second = job.rounds(LOST_S, job.nodes[1:])

        assert second[0]["hosts"] == NAMES[1:]
        listen(job.nodes, 1.0)
        cluster3[0].thaw()
        thawed = time.monotonic()
        job.nodes[0].wait_for("over", 2.0 + BUSY_S)
        print(f"the thawed node left its old round after {time.monotonic() - thawed:.2f} s")
        wait_for_one_group(job.nodes, 2 * ROUND_S)
        assert "is lost" in notices(job.nodes[1])


@pytest.mark.faults
def test_a_machine_that_stands_still_for_less_than_lost_after_costs_nothing(cluster3: Cluster) -> None:
    with Job(cluster3.hosts, (2, 3)) as job:
        job.start()
        job.rounds(ROUND_S)
        for host in (cluster3[0], cluster3[2]):
            host.freeze()
            time.sleep(3.5)
            host.thaw()
            listen(job.nodes, 3.0)
        assert not [line for node in job.nodes for line in node.lines if "over" in line]


@pytest.mark.faults
def test_of_a_machine_without_power_nothing_is_left_on_the_lan_and_it_comes_back(cluster3: Cluster) -> None:
    lab = cluster3
    with Job(lab.hosts, (2, 3), terms=QUICK) as job:
        job.start()
        job.rounds(ROUND_S)
        assert announced(lab[0], NAMES[2])
        lab[2].kill()
        dead = time.monotonic()

        second = job.rounds(LOST_S, job.nodes[:2])

        assert second[0]["hosts"] == NAMES[:2]
        assert until(lambda: not announced(lab[0], NAMES[2]), TTL_S + BUSY_S)
        print(f"its record was gone after {time.monotonic() - dead:.1f} s")
        lab.power_on(lab[2])
        back = job.add(lab[2])
        back.start()
        wait_for_one_group([*job.nodes[:2], back], 2 * ROUND_S)


def test_a_node_that_leaves_takes_its_record_along_and_may_come_back(cluster3: Cluster) -> None:
    lab = cluster3
    with Job(lab.hosts, (2, 3)) as job:
        job.start()
        job.rounds(ROUND_S)
        job.nodes[2].close("left")

        second = job.rounds(ROUND_S, job.nodes[:2])

        assert second[0]["hosts"] == NAMES[:2]
        assert "gpu-node-3 left" in notices(job.nodes[0])
        assert until(lambda: not announced(lab[0], NAMES[2]), 2.0 + BUSY_S)
        back = job.add(lab[2])
        back.start()
        wait_for_one_group([*job.nodes[:2], back], 2 * ROUND_S)


# --- daemons -----------------------------------------------------------------------------------------------


def test_a_bus_that_dies_disturbs_no_round_and_the_node_is_found_again_once_it_is_back(
    cluster3: Cluster,
) -> None:
    lab = cluster3
    with Job(lab.hosts[:2], (2, 3), terms={"last_call_s": 0.5}) as job:
        job.start()
        job.rounds(ROUND_S)
        lab[0].stop_bus()
        listen(job.nodes, 2.0)
        assert not [line for node in job.nodes for line in node.lines if "over" in line]

        lab[0].start_bus()
        assert until(lambda: announced(lab[2], NAMES[0]), 10.0 + BUSY_S)
        lab[1].stop_avahi()  # so that the late comer finds the job by the one that was away
        late = job.add(lab[2])
        late.start()
        wait_for_one_group(job.nodes, 2 * ROUND_S)


@pytest.mark.faults
def test_a_job_goes_on_without_avahi_and_even_regroups(cluster3: Cluster) -> None:
    lab = cluster3
    with Job(lab.hosts, (2, 3), terms=QUICK) as job:
        job.start()
        job.rounds(ROUND_S)
        for host in lab:
            host.stop_avahi()
        listen(job.nodes, 3.0)
        assert not [line for node in job.nodes for line in node.lines if "over" in line]

        job.nodes[0].kill()
        second = job.rounds(ROUND_S, job.nodes[1:])

        assert second[0]["hosts"] == NAMES[1:]
        for host in lab:
            host.start_avahi()
        back = job.add(lab[0])
        back.start()
        wait_for_one_group(job.nodes[1:], 2 * ROUND_S)


def test_two_machines_of_one_name_work_together_and_are_told_apart(cluster3: Cluster) -> None:
    """Avahi counts on for the second one; its name on the LAN is the one that people see."""
    lab = cluster3
    lab[1].run(["hostname", NAMES[2]], check=True)
    lab[1].restart_avahi()
    with Job(lab.hosts, (2, 3), terms=QUICK) as job:
        job.start()

        first = job.rounds(ROUND_S)

        assert first[0]["hosts"] == ["gpu-node-1", "gpu-node-3", "gpu-node-4"]
        job.nodes[1].kill()
        job.rounds(ROUND_S, [job.nodes[0], job.nodes[2]])
        for node in (job.nodes[0], job.nodes[2]):
            assert "gpu-node-4 is gone" in notices(node)


# --- ports -------------------------------------------------------------------------------------------------


def test_a_port_that_is_taken_is_passed_over_and_every_node_is_told_where_none_is_left(
    shared_cluster3: Cluster,
) -> None:
    lab = shared_cluster3
    take = [sys.executable, "-c", TAKE_PORTS]
    first = lab[0].popen([*take, "29500", "29501"], stdin=-1)
    assert first.stdout is not None and first.stdout.readline() == "taken\n"
    with Job(lab.hosts, (3, 3)) as job:
        job.start()
        assert job.rounds(ROUND_S)[0]["ports"][1] == 29502
    rest = lab[0].popen([*take, "29502", "29999"], stdin=-1)
    assert rest.stdout is not None and rest.stdout.readline() == "taken\n"
    with Job(lab.hosts, (3, 3)) as job:
        job.start()
        for node in job.nodes:
            told = node.wait_for("notice", ROUND_S, lambda line: "no port" in line["notice"])
            assert "gpu-node-1 has no port for the round: every port from 29500 to 29999" in told["notice"]
        rest.end()
        job.rounds(ROUND_S)
    first.end()
    for process in (first, rest):
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            stream.close()


# --- clocks ------------------------------------------------------------------------------------------------


def test_clocks_that_are_hours_and_days_apart_make_no_difference(shared_cluster3: Cluster) -> None:
    """The time of day is shifted for Python alone; the clock that counts from the boot really is another."""
    lab = shared_cluster3
    with Job([], (2, 3), terms=QUICK) as job:
        for host, shift in zip(lab, (0, 3 * 3600, -100 * 24 * 3600), strict=True):
            since_boot = str(1_000_000 * host.number)
            apart = ["unshare", "--time", "--monotonic", since_boot, "--boottime", since_boot]
            job.add(host, before=apart, clock_s=shift)
        job.start()
        job.rounds(ROUND_S)
        listen(job.nodes, QUICK["lost_after_s"] + 1.0)
        assert not [line for node in job.nodes for line in node.lines if "over" in line]
        job.nodes[0].kill()
        assert job.rounds(ROUND_S, job.nodes[1:])[0]["hosts"] == NAMES[1:]
