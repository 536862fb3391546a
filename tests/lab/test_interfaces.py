"""Hosts with many interfaces, and LANs without IPv4: real addresses, real Avahi, mostly no torch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.cards import Network, add_docker
from tests.lab.cluster import Cluster, cluster
from tests.lab.host import Host
from tests.lab.jobs import Job, Line

pytestmark = pytest.mark.lab

ROUND_S = 10.0  # DESIGN: once nothing is wrong, one group forms within ten seconds
QUICK = {"lost_after_s": 2.0}


def by_number(hosts: list[Host], pattern: str) -> dict[Host, str]:
    return {host: pattern.format(host.number) for host in hosts}


def seats(rounds: list[Line]) -> list[str]:
    """Where each node has its seat."""
    return [r["own"] for r in rounds]


def told(job: Job, word: str) -> list[str]:
    """The last notice of each node with this word in it."""
    lines = [[line["notice"] for line in n.lines if word in line.get("notice", "")] for n in job.nodes]
    return [found[-1] if found else "" for found in lines]


def slow_down(host: Host, interface: str, mbit: int) -> None:
    """Let the kernel say another speed of a cable; all of the lab's have 10 Gbit/s."""
    host.write(f"/run/{interface}.speed", f"{mbit}\n")
    speed = f"/sys/class/net/{interface}/speed"
    host.run(["mount", "--bind", f"/run/{interface}.speed", speed], check=True)


@pytest.fixture(scope="module")
def crowded() -> Iterator[Cluster]:
    """Three hosts with Docker, Wi-Fi and a VPN beside a slow LAN; the first two have a fast direct cable."""
    with cluster(3) as lab:
        for host in lab:
            add_docker(host)
            slow_down(host, "eth0", 1000)
        Network("wlan0", by_number(lab.hosts, "10.8.0.{}/24"))
        Network("wg0", by_number(lab.hosts, "10.7.0.{}/24"))
        Network("eth1", by_number(lab.hosts[:2], "10.9.0.{}/24"))
        yield lab


def test_three_nodes_run_on_the_wired_lan_that_all_share_and_say_why(crowded: Cluster) -> None:
    with Job(crowded.hosts, (3, 3)) as job:
        job.start()

        rounds = job.rounds(ROUND_S)

        assert seats(rounds) == [host.address for host in crowded]
        assert {r["interface"] for r in rounds} == {"eth0"}
        for line, host in zip(told(job, "interface "), crowded, strict=True):
            assert f"eth0 ({host.address}, wired, 1 Gbit/s): the only wired one that all 3 nodes" in line


def test_two_nodes_with_a_fast_direct_cable_run_on_it(crowded: Cluster) -> None:
    with Job(crowded.hosts[:2], (2, 2)) as job:
        job.start()

        rounds = job.rounds(ROUND_S)

        assert seats(rounds) == ["10.9.0.1", "10.9.0.2"]
        assert {r["leader"] for r in rounds} == {"10.9.0.1"}
        assert {r["interface"] for r in rounds} == {"eth1"}
        assert "eth1 (10.9.0.2, wired, 10 Gbit/s): the fastest wired one" in told(job, "interface ")[1]
