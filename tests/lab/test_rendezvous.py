"""The rendezvous on virtual hosts: real Avahi, real TCP, no torch."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import pytest

from avahi_gpu.rendezvous.wire import CONNECT_TIMEOUT_S
from tests.lab.cluster import Cluster
from tests.lab.jobs import Job

pytestmark = pytest.mark.lab

ROUND_S = 10.0  # DESIGN: once nothing is wrong, one group forms within ten seconds
STARTS = 30
NODE = """<?xml version="1.0" standalone='no'?><!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<service-group><name replace-wildcards="yes">%h</name><service><type>_torch._tcp</type><port>29500</port>
<txt-record>txtvers=1</txt-record></service></service-group>
"""
NO_MULTICAST = """
table inet t {
  chain c {
    type filter hook input priority 0
    udp dport 5353 iif "eth0" drop
  }
}
"""
# what a firewall does that lets only known ports in: new connections to ephemeral ports vanish
BLOCK_EPHEMERAL = """
table inet t {
  chain c {
    type filter hook input priority 0
    tcp flags & (syn | ack) == syn tcp dport 32768-60999 drop
  }
}
"""


def test_thirty_simultaneous_starts_elect_one_leader_and_form_one_round_each(cluster3: Cluster) -> None:
    times = []
    with Job(cluster3.hosts, (3, 3)) as job:
        for start in range(STARTS):
            for node in job.nodes:
                node.start(f"start-{start}")
            rounds = job.rounds(ROUND_S)
            assert rounds[0]["hosts"] == ["gpu-node-1", "gpu-node-2", "gpu-node-3"]
            assert {r["leader"] for r in rounds} == {cluster3[0].address}
            assert [r["rank"] for r in rounds] == [0, 1, 2]
            assert {r["interface"] for r in rounds} == {"eth0"}
            times.append(max(r["at"] for r in rounds))
            assert not any(node.said("over") for node in job.nodes)
            for node in reversed(job.nodes):  # a leader waits for its members' last words
                node.stop("finished")
                node.lines.clear()
    assert statistics.median(times) < ROUND_S  # the figure itself is the bench's


def test_hosts_are_ranked_in_natural_order_behind_the_leader_that_master_names(
    make_cluster: Callable[..., Cluster],
) -> None:
    lab = make_cluster(3)
    with Job([], (3, 3)) as job:
        for host in lab:
            job.add(host, priority=1_000_000 if host.name == "gpu-node-2" else 0)
        job.start()

        assert job.rounds(ROUND_S)[0]["hosts"] == ["gpu-node-2", "gpu-node-1", "gpu-node-3"]


@pytest.mark.parametrize("victim", [0, 2], ids=["leader", "member"])
def test_a_cut_cable_ends_the_round_and_the_survivors_form_another(cluster3: Cluster, victim: int) -> None:
    with Job(cluster3.hosts, (2, 3), terms={"lost_after_s": 2.0}) as job:
        job.start()
        first = job.rounds(ROUND_S)
        cluster3[victim].cut()
        survivors = [n for i, n in enumerate(job.nodes) if i != victim]

        second = job.rounds(ROUND_S, survivors)

        assert second[0]["hosts"] == [n.host.name for n in survivors]
        assert second[0]["epoch"] > first[0]["epoch"]
        assert second[0]["ports"] != first[0]["ports"]  # fresh ports, so that no stale mesh is joined
        alone = job.nodes[victim].wait_for("over", ROUND_S)
        assert alone
        assert not [line for line in job.nodes[victim].lines if line.get("epoch", 0) > first[0]["epoch"]]

        cluster3[victim].heal()
        third = job.rounds(2 * ROUND_S)
        assert len(third[0]["hosts"]) == 3


def test_a_killed_leader_is_replaced_at_once(cluster3: Cluster) -> None:
    with Job(cluster3.hosts, (2, 3)) as job:
        job.start()
        job.rounds(ROUND_S)
        job.nodes[0].kill()

        second = job.rounds(ROUND_S, job.nodes[1:])

        assert second[0]["hosts"] == ["gpu-node-2", "gpu-node-3"]


def test_a_late_comer_joins_by_a_new_round_and_one_too_many_waits_as_a_spare(
    make_cluster: Callable[..., Cluster],
) -> None:
    lab = make_cluster(4)
    with Job(lab.hosts[1:3], (2, 3), terms={"last_call_s": 0.5}) as job:
        job.start()
        assert len(job.rounds(ROUND_S)[0]["hosts"]) == 2
        late = job.add(lab[0])  # of a lower key than the leader, whom it must not disturb
        late.start()
        grown = job.rounds(ROUND_S)
        assert grown[0]["hosts"] == ["gpu-node-2", "gpu-node-1", "gpu-node-3"]

        spare = job.add(lab[3])
        spare.start()
        told = spare.wait_for("notice", ROUND_S, lambda line: "full" in line["notice"])
        assert "gpu-node-4" in told["notice"]
        job.nodes[1].kill()  # gpu-node-3
        rest = [job.nodes[0], late, spare]
        assert job.rounds(ROUND_S, rest)[0]["hosts"] == ["gpu-node-2", "gpu-node-1", "gpu-node-4"]


def test_two_jobs_at_once_share_neither_members_nor_ports(cluster3: Cluster) -> None:
    with Job(cluster3.hosts, (3, 3), job="a") as a, Job(cluster3.hosts, (3, 3), job="b") as b:
        a.start()
        b.start()

        one, other = a.rounds(ROUND_S), b.rounds(ROUND_S)

        assert not set(one[0]["ports"]) & set(other[0]["ports"])


def test_a_blocked_port_is_a_sentence_on_every_node_before_the_start(cluster3: Cluster) -> None:
    cluster3[2].run(["nft", "-f", "-"], input=BLOCK_EPHEMERAL, check=True)
    with Job(cluster3.hosts, (3, 3)) as job:
        job.start()
        for node in job.nodes:
            told = node.wait_for("notice", ROUND_S, lambda line: "cannot reach" in line["notice"])
            assert "gpu-node-3" in told["notice"]
            assert "firewall" in told["notice"]
        cluster3[2].run(["nft", "delete", "table", "inet", "t"], check=True)
        job.rounds(ROUND_S)


def test_a_host_that_nobody_reaches_is_named_while_the_others_wait(cluster3: Cluster) -> None:
    block = "table inet t {\n chain c {\n type filter hook input priority 0\n meta l4proto tcp drop\n }\n}\n"
    cluster3[2].run(["nft", "-f", "-"], input=block, check=True)
    with Job(cluster3.hosts, (3, 3)) as job:
        job.start()
        for node in job.nodes:
            told = node.wait_for("notice", 2 * ROUND_S, lambda line: "cannot reach" in line["notice"])
            assert "gpu-node-3" in told["notice"]
            assert "firewall" in told["notice"]


def test_a_second_start_of_the_job_on_one_host_is_refused(cluster3: Cluster) -> None:
    with Job([cluster3[0]], (1, 1)) as job:
        job.start()
        job.rounds(ROUND_S)
        second = job.add(cluster3[0])
        second.start()

        refused = second.wait_for("failed", ROUND_S)

        assert "running on this host already" in refused["failed"]
        assert "--job" in refused["hint"]


def test_nodes_that_cannot_work_together_are_refused_with_both_values(shared_cluster3: Cluster) -> None:
    ours = {"torch": "2.13.0", "python": "3.11"}
    others = [
        ({"skills": {**ours, "torch": "2.9.1+cu126"}}, "torch 2.9.1+cu126", "torch 2.13.0"),
        ({"skills": {**ours, "python": "3.12"}}, "Python 3.12", "Python 3.11"),
        ({"skills": ours, "nodes": (3, 3)}, "--nnodes 3,", "--nnodes 2:"),
    ]
    with Job([shared_cluster3[0]], (2, 2), skills=ours) as job:
        job.start()
        for settings, theirs, wanted in others:
            other = job.add(shared_cluster3[1], **settings)
            other.start()
            told = other.wait_for("ended", ROUND_S)["ended"]
            assert f"gpu-node-2 {'was started with' if 'nodes' in settings else 'has'} {theirs}" in told
            assert wanted in told and "gpu-node-1" in told
            refused = job.nodes[0].wait_for("notice", ROUND_S, lambda line: "refused" in line["notice"])
            assert told.endswith(refused["notice"].removeprefix("refused: "))
            other.kill()

        alike = job.add(
            shared_cluster3[2], skills={**ours, "torch": "2.13.1+cpu"}
        )  # a patch release is no skew
        alike.start()
        job.rounds(ROUND_S, [job.nodes[0], alike])


def test_skew_can_be_allowed_and_another_script_is_told_on_both_sides(shared_cluster3: Cluster) -> None:
    old, new = {"torch": "2.12.1", "python": "3.10"}, {"torch": "2.13.0", "python": "3.11"}
    with Job([], (2, 2), terms={"allow_skew": True}) as job:
        job.add(shared_cluster3[0], skills={**new, "digest": "aaaa", "script": "allreduce.py"})
        job.add(shared_cluster3[1], skills={**old, "digest": "bbbb", "script": "train.py"})
        job.start()

        job.rounds(ROUND_S)

        for node in job.nodes:
            warnings = [line["notice"] for line in node.lines if "warning" in line.get("notice", "")]
            assert warnings == [
                "warning: gpu-node-2 runs train.py, gpu-node-1 allreduce.py: the job may hang"
            ]


def test_every_step_of_the_agreement_is_told_in_order_where_it_is_asked_for(shared_cluster3: Cluster) -> None:
    with Job([], (2, 2)) as job:
        for host in shared_cluster3.hosts[:2]:
            job.add(host, env={"AVAHI_GPU_LOG": "debug"})
        job.start()
        job.rounds(ROUND_S)
        for node in reversed(job.nodes):
            node.close("finished")
    leader, member = ([line for line in node.errors if " DEBUG " in line] for node in job.nodes)

    def in_order(lines: list[str], *steps: str) -> None:
        at = -1
        for step in steps:
            later = [n for n, line in enumerate(lines) if n > at and step in line]
            assert later, (step, lines)
            at = later[0]

    in_order(
        leader,
        "in  hello from gpu-node-2 #",
        "out welcome to gpu-node-2 #",
        "in  ready from gpu-node-2 #",
        "out prepare to gpu-node-2 #",
        "in  ack from gpu-node-2 #",
        "out commit to gpu-node-2 #",
        "in  the agent ends: finished",
    )
    in_order(
        member,
        "out connect to gpu-node-1 at ",
        "out hello to gpu-node-1 #",
        "in  welcome from gpu-node-1 #",
        "in  prepare from gpu-node-1 #",
        "out ack to gpu-node-1 #",
        "in  commit from gpu-node-1 #",
    )
    for lines in (leader, member):
        stamps = [float(line.split()[2]) for line in lines]
        assert stamps == sorted(stamps) and stamps[0] >= 0 and stamps[-1] < 60


def test_a_job_that_stays_too_small_ends_with_who_is_there(cluster3: Cluster) -> None:
    with Job(cluster3.hosts[:2], (3, 3), terms={"join_timeout_s": 2.0}) as job:
        job.start()
        for node in job.nodes:
            ended = node.wait_for("ended", ROUND_S)
            assert "3 nodes are needed" in ended["ended"]
            assert node.host.name in ended["ended"]


def test_a_restart_of_avahi_does_not_disturb_a_running_round(cluster3: Cluster) -> None:
    with Job(cluster3.hosts, (2, 3), terms={"lost_after_s": 2.0}) as job:
        job.start()
        job.rounds(ROUND_S)
        for host in cluster3:
            host.restart_avahi()
        job.nodes[2].kill()  # so that the wait below ends, and to see that a regroup still works

        job.rounds(ROUND_S, job.nodes[:2])

        assert sum("over" in line for line in job.nodes[0].lines) == 1


def test_without_avahi_the_start_fails_at_once_with_what_to_do(make_cluster: Callable[..., Cluster]) -> None:
    lab = make_cluster(1, avahi=False)
    with Job(lab.hosts, (1, 1)) as job:
        job.start()
        failed = job.nodes[0].wait_for("failed", 3)
        assert failed["hint"]


def test_without_a_lan_interface_the_start_says_so(make_cluster: Callable[..., Cluster]) -> None:
    lab = make_cluster(1)
    lab[0].run(["ip", "addr", "flush", "dev", "eth0"], check=True)
    with Job(lab.hosts, (2, 2)) as job:
        job.start()
        assert "no interface" in job.nodes[0].wait_for("failed", 3)["failed"]
    with Job(lab.hosts, (1, 1)) as job:  # which needs no other node
        job.start()
        assert job.rounds(ROUND_S)[0]["own"] == "127.0.0.1"


def test_the_record_is_on_the_lan_while_a_node_runs_and_gone_afterwards(cluster3: Cluster) -> None:
    browse = ["avahi-browse", "-rptk", "_torch-rdzv._tcp"]
    with Job(cluster3.hosts[:1], (1, 1), job="seen") as job:
        job.start()
        job.rounds(ROUND_S)
        assert "job=seen" in cluster3[1].run(browse, timeout=20).stdout
        job.nodes[0].close("finished")
    # the goodbye takes a second (RFC 6762 section 10.1)
    assert (
        "job=seen" not in cluster3[1].run(["sh", "-c", "sleep 1.5; " + " ".join(browse)], timeout=20).stdout
    )


def test_where_multicast_is_filtered_named_peers_find_each_other(
    make_cluster: Callable[..., Cluster],
) -> None:
    lab = make_cluster(3)
    filtered = "table ip t {\n chain c {\n type filter hook input priority 0\n udp dport 5353 drop\n }\n}\n"
    for host in lab:
        host.run(["nft", "-f", "-"], input=filtered, check=True)
    with Job(lab.hosts, (3, 3), peers=[lab[0].address, lab[1].address]) as job:
        job.start()

        assert job.rounds(ROUND_S)[0]["hosts"] == ["gpu-node-1", "gpu-node-2", "gpu-node-3"]


def test_a_peer_that_nobody_knows_is_named(make_cluster: Callable[..., Cluster]) -> None:
    lab = make_cluster(1)
    with Job(lab.hosts, (1, 2), peers=["..", "nohost"], terms={"last_call_s": 0.0}) as job:
        job.start()
        for name in ("..", "nohost"):
            job.nodes[0].wait_for(
                "notice", 2 * ROUND_S, lambda line, name=name: f"names {name}," in line["notice"]
            )


def test_named_peers_do_without_avahi(make_cluster: Callable[..., Cluster]) -> None:
    lab = make_cluster(2, avahi=False)
    with Job(lab.hosts, (2, 2), peers=[host.address for host in lab]) as job:
        job.start()

        job.rounds(ROUND_S)

        assert any("--peers alone" in line.get("notice", "") for line in job.nodes[0].lines)


def test_a_cable_out_for_four_seconds_costs_no_round(cluster3: Cluster) -> None:
    """TCP alone would be silent for twice as long: whoever is silent is asked over fresh connections."""
    with Job(cluster3.hosts, (2, 3)) as job:
        job.start()
        job.rounds(ROUND_S)
        cluster3[0].cut(carrier=True)
        time.sleep(4.0)
        cluster3[0].heal()

        job.nodes[1].wait_for("notice", ROUND_S, lambda line: "is there again" in line["notice"])
        time.sleep(5.0)  # the connection itself is heard again by then
        assert not any(node.said("over") for node in job.nodes)


def test_records_of_dead_candidates_cost_no_connect_timeout(make_cluster: Callable[..., Cluster]) -> None:
    """Two better candidates lost their power a moment ago: their records stand, and nothing answers."""
    lab = make_cluster(4)

    def form(job: str) -> float:
        with Job(lab.hosts[2:], (2, 4), job=job, terms={"last_call_s": 0.0}) as living:
            living.start()
            rounds = living.rounds(ROUND_S)
            assert rounds[0]["hosts"] == ["gpu-node-3", "gpu-node-4"]
            return max(r["at"] for r in rounds)

    undisturbed_s = form("another")
    with Job(lab.hosts[:2], (3, 4), job="job") as dead:
        dead.start()
        for node in dead.nodes:
            node.wait_for("notice", ROUND_S, lambda line: len(line["present"]) == 2)
        for host in lab.hosts[:2]:
            host.cut(carrier=True)
        assert form("job") < undisturbed_s + CONNECT_TIMEOUT_S


def test_where_records_of_jobs_get_lost_the_machines_of_the_lan_are_asked(
    make_cluster: Callable[..., Cluster],
) -> None:
    """Multicast breaks down after the machines have been seen, before any node of the job starts."""
    lab = make_cluster(2)
    for host in lab:
        host.write("/etc/avahi/services/torch.service", NODE)
    for host, other in ((lab[0], lab[1]), (lab[1], lab[0])):
        look = f"avahi-browse -rptk _torch._tcp | grep -q '^=.*IPv4.*{other.address}'"
        host.run(["sh", "-c", f"until {look}; do :; done"], check=True, timeout=90)
    for host in lab:
        host.run(["nft", "-f", "-"], input=NO_MULTICAST, check=True)
    with Job(lab.hosts, (2, 2)) as job:
        job.start()

        assert job.rounds(2 * ROUND_S)[0]["hosts"] == ["gpu-node-1", "gpu-node-2"]
