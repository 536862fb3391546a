"""Hosts with many interfaces, and LANs without IPv4: real addresses, real Avahi, mostly no torch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.lab.cards import Network, add_docker, readdress
from tests.lab.cluster import Cluster, cluster
from tests.lab.host import Host
from tests.lab.jobs import Job, Line
from tests.lab.process import Follower

pytestmark = pytest.mark.lab

ROUND_S = 10.0  # DESIGN: once nothing is wrong, one group forms within ten seconds
QUICK = {"lost_after_s": 2.0}
TRAIN_S = 150.0  # two torchruns on two busy cores; six seconds on idle ones
Maker = Callable[..., Cluster]


def by_number(hosts: list[Host], pattern: str) -> dict[Host, str]:
    return {host: pattern.format(host.number) for host in hosts}


def seats(rounds: list[Line]) -> list[str]:
    """Where each node has its seat."""
    return [r["own"] for r in rounds]


def told(job: Job, word: str) -> list[str]:
    """The last notice of each node with this word in it."""
    lines = [[line["notice"] for line in n.lines if word in line.get("notice", "")] for n in job.nodes]
    return [found[-1] if found else "" for found in lines]


def finish_all(commands: Sequence[Follower]) -> list[str]:
    """Wait for their ends, which are good ones; return what they said."""
    codes = [command.wait(TRAIN_S) for command in commands]
    assert codes == [0] * len(commands), [command.output for command in commands]
    return [command.output for command in commands]


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


def test_what_users_ask_for_is_done_or_the_contradiction_told(crowded: Cluster) -> None:
    one, two = crowded.hosts[:2]
    with Job([], (2, 2)) as job:
        job.add(one, interface="wlan0")
        job.add(two)
        job.start()
        rounds = job.rounds(ROUND_S)
        assert seats(rounds) == ["10.8.0.1", "10.8.0.2"]
        assert "as --interface wlan0 on gpu-node-1 asks" in told(job, "interface ")[1]
    with Job([], (2, 2), job="nccl") as job:
        job.add(one, env={"NCCL_SOCKET_IFNAME": "^eth,docker,lo,wlan"})
        job.add(two)
        job.start()
        assert seats(job.rounds(ROUND_S)) == ["10.7.0.1", "10.7.0.2"]
    with Job([], (2, 2), job="torn") as job:
        job.add(one, interface="eth1")
        job.add(two, env={"GLOO_SOCKET_IFNAME": "eth0"})
        job.start()
        for node in job.nodes:
            said = node.wait_for("notice", ROUND_S, lambda line: "no network is shared" in line["notice"])
            assert "gpu-node-1 with --interface eth1 (10.9.0.1/24)" in said["notice"]
            assert "gpu-node-2 with GLOO_SOCKET_IFNAME=eth0" in said["notice"]


def test_a_direct_cable_that_joins_nobody_is_left_for_the_lan(crowded: Cluster) -> None:
    """Its cards have carrier and addresses; what is between them is gone."""
    wrong = Network("eth2", by_number(crowded.hosts, "10.6.0.{}/24"))
    wrong.cut(crowded[1], carrier=True)
    with Job(crowded.hosts, (3, 3), terms=QUICK) as job:
        job.start()
        rounds = job.rounds(ROUND_S)

        assert seats(rounds) == [host.address for host in crowded]
        for line in told(job, "instead"):
            assert "cannot reach" in line
            assert f"trying {crowded.subnet}.0/24 instead" in line


def test_a_direct_cable_that_breaks_under_a_round_is_left_for_the_lan(make_cluster: Maker) -> None:
    """The control connections, which run over the LAN here, do not notice it."""
    lab = make_cluster(2, avahi=False)
    for host in lab:
        slow_down(host, "eth0", 1000)
    cable = Network("eth1", by_number(lab.hosts, "10.9.0.{}/24"))
    with Job(lab.hosts, (2, 2), terms=QUICK, peers=[host.address for host in lab]) as job:
        job.start()
        assert seats(job.rounds(ROUND_S)) == ["10.9.0.1", "10.9.0.2"]
        cable.cut(lab[0], carrier=True)

        rounds = job.rounds(2 * ROUND_S)

        assert seats(rounds) == [host.address for host in lab]
        assert "is cut off from" in told(job, "regrouping")[0]


def test_nodes_whose_addresses_change_while_they_run_or_wait_regroup_with_the_new_ones(
    make_cluster: Maker,
) -> None:
    """As by a DHCP server that has forgotten its leases: a member's, the leader's, one that still waits."""
    lab = make_cluster(3)
    net = lab.subnet
    with Job(lab.hosts[:2], (2, 3), terms={**QUICK, "last_call_s": 0.2}) as job:
        job.start()
        assert seats(job.rounds(ROUND_S)) == [f"{net}.1", f"{net}.2"]
        readdress(lab[1], f"{net}.2/24", f"{net}.102/24")
        assert seats(job.rounds(2 * ROUND_S)) == [f"{net}.1", f"{net}.102"]
        readdress(lab[0], f"{net}.1/24", f"{net}.101/24")
        assert sorted(seats(job.rounds(2 * ROUND_S))) == [f"{net}.101", f"{net}.102"]
    with Job(lab.hosts[1:], (3, 3), terms=QUICK, job="waiting") as job:
        job.start()
        for node in job.nodes:
            node.wait_for("notice", ROUND_S, lambda line: len(line["present"]) == 2)
        readdress(lab[2], f"{net}.3/24", f"{net}.103/24")
        job.add(lab[0]).start()
        found = job.rounds(2 * ROUND_S)
        assert sorted(seats(found)) == [f"{net}.101", f"{net}.102", f"{net}.103"]


# --- a LAN without IPv4 -------------------------------------------------------------------------------------

TRAIN = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
one = torch.ones(1)
dist.all_reduce(one)
print("sum", int(one), os.environ["MASTER_ADDR"], os.environ["GLOO_SOCKET_IFNAME"], flush=True)
dist.destroy_process_group()
"""
LAUNCH = ["avahi-gpu", "launch", "--nnodes", "2"]
TORCHRUN = ["torchrun", "--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=avahi", "--rdzv-id=six"]


@pytest.fixture(scope="module")
def six() -> Iterator[Cluster]:
    """Two hosts on a LAN that has unique local IPv6 addresses and nothing else."""
    with cluster(2, subnet="fd77:2") as lab:
        yield lab


def test_doctor_sees_avahi_listen_on_it(six: Cluster) -> None:
    done = six[0].run(["avahi-gpu", "doctor", "--only", "AG203", "--json"])

    assert '"verdict": "ok"' in done.stdout


@pytest.mark.faults  # launch does so, too, below
def test_torchrun_trains_on_it(six: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    for done in finish_all([host.follow([*TORCHRUN, script]) for host in six]):
        assert "sum 2 fd77:2::1 eth0" in done


def test_launch_trains_on_a_direct_cable_beside_it(make_cluster: Maker, tmp_path: Path) -> None:
    lab = make_cluster(2, subnet="fd77:3")
    for host in lab:
        slow_down(host, "eth0", 1000)
    Network("eth1", by_number(lab.hosts, "fd99::{}/64"))
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    for done in finish_all([host.follow([*LAUNCH, script]) for host in lab]):
        assert "sum 2 fd99::1 eth1" in done
        assert "wired, 10 Gbit/s): the fastest wired one that both nodes share" in done


def test_named_peers_are_found_by_ipv6_addresses_and_names(make_cluster: Maker) -> None:
    lab = make_cluster(2, avahi=False, subnet="fd77:4")
    hosts = "127.0.0.1 localhost\nfd77:4::1 first\n"
    for host in lab:
        host.write("/etc/hosts", hosts)
    with Job(lab.hosts, (2, 2), peers=["first", "[fd77:4::2]"]) as job:
        job.start()

        assert seats(job.rounds(ROUND_S)) == ["fd77:4::1", "fd77:4::2"]


def test_avahi_is_asked_for_ipv6_where_a_name_has_nothing_else(six: Cluster) -> None:
    ask = (
        "import asyncio\n"
        "from avahi_gpu.avahi.bus import connect\n"
        "from avahi_gpu.rendezvous.seek import find_address\n"
        "async def ask():\n"
        "    async with connect() as avahi:\n"
        "        print(await find_address('gpu-node-2.local', avahi))\n"
        "asyncio.run(ask())\n"
    )

    assert six[0].run([sys.executable, "-c", ask], check=True).stdout == "fd77:2::2\n"


def test_link_local_addresses_alone_are_refused_with_what_to_do(six: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    six[0].run(["ip", "-6", "addr", "del", "fd77:2::1/64", "dev", "eth0"], check=True)

    refused = six[0].run([*LAUNCH, script])

    six[0].run(["ip", "-6", "addr", "add", "fd77:2::1/64", "dev", "eth0"], check=True)
    assert refused.returncode == 125
    assert "eth0 has a link-local IPv6 address alone, which torch cannot use" in refused.stderr
    assert "ip -6 addr add fd77::1/64 dev eth0" in refused.stderr


def test_an_interface_that_goes_down_and_comes_up_leads_to_a_regroup(six: Cluster) -> None:
    """Going down takes its IPv6 addresses away; whoever has set them sets them again."""
    with Job(six.hosts, (2, 2), terms=QUICK) as job:
        job.start()
        assert seats(job.rounds(ROUND_S)) == ["fd77:2::1", "fd77:2::2"]
        six[1].run(["ip", "link", "set", "eth0", "down"], check=True)
        for node in job.nodes:
            node.wait_for("over", ROUND_S)
        six[1].run(["ip", "link", "set", "eth0", "up"], check=True)
        six[1].run(["ip", "addr", "add", "fd77:2::2/64", "dev", "eth0"], check=True)

        assert seats(job.rounds(2 * ROUND_S)) == ["fd77:2::1", "fd77:2::2"]


def test_an_interface_for_gloo_that_is_not_there_is_a_sentence_before_the_start(
    six: Cluster, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    sentence = "GLOO_SOCKET_IFNAME names eth7, which is no interface of this host"

    refused = six[0].run([*LAUNCH, script], env={"GLOO_SOCKET_IFNAME": "eth7"})

    assert refused.returncode == 125
    assert sentence in refused.stderr
    assert "interfaces here: eth0" in refused.stderr
    with Job(six.hosts[:1], (2, 2), env={"GLOO_SOCKET_IFNAME": "eth7"}) as job:  # as under plain torchrun
        job.start()
        assert job.nodes[0].wait_for("failed", ROUND_S)["failed"] == sentence
