"""Nodes that hold the cluster key, another one or none: who holds it meets, and the others are told."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import pytest

from tests.lab.cluster import Cluster
from tests.lab.host import REPOSITORY
from tests.lab.jobs import Job, JobNode

pytestmark = pytest.mark.lab

ROUND_S = 10.0
KEY, OTHER = "5c" * 32, "a7" * 32
LISTEN = """
import socket
with socket.create_server(("0.0.0.0", 0)) as sock:
    print(sock.getsockname()[1], flush=True)
    while True:
        sock.accept()[0].close()
"""
CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 1).close()
    print("open")
except OSError:
    print("closed")
"""


def told(node: JobNode, word: str, within_s: float = ROUND_S) -> str:
    """Return the first notice of a node that contains ``word``."""
    for line in node.lines:
        if word in line.get("notice", ""):
            return str(line["notice"])
    return str(node.wait_for("notice", within_s, lambda line: word in line["notice"])["notice"])


def test_who_lacks_the_key_or_has_another_is_left_out_and_each_side_is_told(
    make_cluster: Callable[..., Cluster],
) -> None:
    """The two strangers have the lowest names, so that everybody turns to them first."""
    lab = make_cluster(4)
    bare, wrong, *right = lab.hosts
    with Job(right, (2, 4), key=KEY, terms={"last_call_s": 1.0}) as job:
        strangers = [job.add(bare, key=""), job.add(wrong, key=OTHER)]
        job.start()

        assert job.rounds(ROUND_S, job.nodes[:2])[0]["hosts"] == ["gpu-node-3", "gpu-node-4"]

        for node in job.nodes[:2]:
            assert f"gpu-node-1 ({bare.address})" in told(node, "holds no cluster key")
            assert f"gpu-node-2 ({wrong.address})" in told(node, "holds another cluster key")
        assert "this one has none" in told(strangers[0], "cluster key")
        assert "gpu-node-" in told(strangers[1], "holds another cluster key")
        records = right[0].run(["avahi-browse", "-rptk", "_torch-rdzv._tcp"], timeout=30).stdout
        assert "job=job" in records
        assert KEY[:16] not in records
        for node in job.nodes:
            notices = [line["notice"] for line in node.lines if "cluster key" in line.get("notice", "")]
            assert len(notices) == len(set(notices)), "said again"
            assert KEY not in str(node.lines)


def test_named_peers_prove_the_key_and_who_lacks_it_is_told(make_cluster: Callable[..., Cluster]) -> None:
    lab = make_cluster(3, avahi=False)
    peers = [host.address for host in lab]
    with Job(lab.hosts[1:], (2, 3), key=KEY, peers=peers, terms={"last_call_s": 0.5}) as job:
        bare = job.add(lab[0], key="")
        job.start()

        job.rounds(ROUND_S, job.nodes[:2])

        assert "this one has none" in told(bare, "cluster key")
        assert f"({lab[0].address})" in told(job.nodes[0], "holds no cluster key")


def test_the_firewall_rule_of_the_documentation_lets_nodes_in_and_nobody_else(
    make_cluster: Callable[..., Cluster],
) -> None:
    page = (REPOSITORY / "docs" / "reference" / "ports.md").read_text()
    (rule,) = re.findall(r"```nft\n(.*?)```", page, re.DOTALL)
    lab = make_cluster(3)
    stranger, *nodes = lab.hosts
    rule = re.sub(r"elements = \{.*?\}", f"elements = {{ {', '.join(h.address for h in nodes)} }}", rule)
    for host in nodes:
        host.run(["nft", "-f", "-"], input=rule, check=True)
    with Job(nodes, (2, 2)) as job:
        job.start()
        (first, _) = job.rounds(ROUND_S)
        ephemeral = nodes[0].follow([sys.executable, "-c", LISTEN])
        port = ephemeral.lines[ephemeral.wait_for("")]

        for closed in ("29400", port):
            reach = [sys.executable, "-c", CONNECT, first["leader"], closed]
            assert stranger.run(reach).stdout == "closed\n"
            assert nodes[1].run(reach).stdout == "open\n"
        ephemeral.end()


def test_a_job_of_the_same_name_in_another_cluster_is_the_reason_of_a_wait_in_vain(
    make_cluster: Callable[..., Cluster],
) -> None:
    lab = make_cluster(2)
    with Job(lab.hosts[:1], (2, 2), terms={"join_timeout_s": 3.0}) as job:
        other = job.add(lab[1], terms={"join_timeout_s": 3.0, "cluster": "lab"})
        job.start()

        for node, there, here in ((job.nodes[0], "lab", "default"), (other, "default", "lab")):
            ended = node.wait_for("ended", ROUND_S)
            apart = f"runs a job of this name in cluster {there}, this one is in {here}"
            assert apart in ended["ended"]
            assert ended["hint"] == ""
            assert sum(apart in line.get("notice", "") for line in node.lines) == 1
