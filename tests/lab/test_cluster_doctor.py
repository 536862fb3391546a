"""``doctor --cluster``: the nodes themselves try each way between two of them; what is shut is named."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.cluster import Cluster, cluster
from tests.lab.doctoring import set_up
from tests.lab.host import Host
from tests.lab.surveying import serving, survey

pytestmark = pytest.mark.lab

OPEN = {"control": True, "store": True, "workers": True, "high": True}
STORE_ALONE = {"control": False, "store": True, "workers": False, "high": False}
SHUT = dict.fromkeys(OPEN, False)


@pytest.fixture(scope="module")
def lab() -> Iterator[Cluster]:
    with cluster(3) as hosts:
        set_up(hosts, forget=True)
        yield hosts


def shield(host: Host, rules: str) -> None:
    """Give a host a firewall that lets in what belongs to connections of its own, and what ``rules`` say."""
    chain = f"type filter hook input priority 0; policy accept; ct state established accept; {rules}"
    host.run(["nft", "-f", "-"], input=f"table inet t {{ chain c {{ {chain} }}; }}\n", check=True)


def unshield(host: Host) -> None:
    host.run(["nft", "delete", "table", "inet", "t"], check=True)


def test_healthy_nodes_reach_each_other_in_every_way(lab: Cluster, tmp_path: Path) -> None:
    picture = tmp_path / "cluster.svg"
    with serving(lab[1:]) as served:
        found = survey(lab[0], "--fail-on", "warn", "--picture", str(picture))
        shown = lab[0].run(["avahi-gpu", "doctor", "--cluster"], timeout=60)

    assert (found.exit_code, found.errors, found.states) == (0, [], {}), found.tell()
    assert found.ports(2, 3) == found.ports(3, 2) == found.ports(1, 2) == found.ports(3, 1) == OPEN
    assert all(
        way["full_frame"]["ok"] and way["glibc"]["ok"] and way["avahi"]["ok"] for way in found.data["matrix"]
    )
    assert [n["self"] for n in found.data["nodes"]] == [True, False, False]
    assert "gpu-node-1" in served[0].output and "no more questions" in served[0].output
    assert re.search(r"^1 gpu-node-1 +- +ok +ok$", shown.stdout, re.MULTILINE), shown.stdout
    assert "gpu-node-2" in shown.stderr and "no error found" in shown.stdout
    texts = [e.text for e in ET.parse(picture).iter() if e.text]
    assert "gpu-node-3" in texts and "✓ all was reached" in texts


def test_a_firewall_that_lets_29500_in_alone_is_named_with_ways_and_ports(lab: Cluster) -> None:
    """C-07. The doctor's own port is shut as well: it comes to the asker by itself."""
    shield(
        lab[1],
        "iif lo accept; udp dport 5353 accept; tcp dport 29500 accept; meta l4proto { tcp, udp } drop;",
    )
    try:
        with serving(lab[1:]):
            found = survey(lab[0])
    finally:
        unshield(lab[1])

    assert (found.exit_code, found.errors) == (1, ["AG623"]), found.tell()
    assert found.states == {(1, 2): "ports", (3, 2): "ports"}
    assert found.ports(1, 2) == found.ports(3, 2) == STORE_ALONE
    assert found.ports(2, 1) == found.ports(2, 3) == OPEN
    told = found.says("AG623")
    assert "gpu-node-1 → gpu-node-2: TCP 29400" in told and "TCP 29999" in told and "open: 29500" in told


def test_the_same_narrow_firewall_on_all_nodes_is_seen_although_nobody_can_be_asked(lab: Cluster) -> None:
    rules = "iif lo accept; udp dport 5353 accept; icmp type echo-request accept; tcp dport 29500 accept;"
    for host in lab:
        shield(host, f"{rules} meta l4proto {{ tcp, udp }} drop;")
    try:
        with serving(lab[1:]):
            found = survey(lab[0], "--wait", "5")
    finally:
        for host in lab:
            unshield(host)

    assert (found.exit_code, found.errors) == (1, ["AG206", "AG623"]), found.tell()
    assert {pair for pair, state in found.states.items() if state == "ports"} == {(1, 2), (1, 3)}
    assert found.ports(1, 2) == {"control": False, "store": None, "workers": False, "doctor": False}


@pytest.mark.parametrize(("verb", "state"), [("drop", "no answer"), ("reject with tcp reset", "refused")])
def test_one_way_that_is_shut_is_named_and_no_other(lab: Cluster, verb: str, state: str) -> None:
    source = f"ip saddr {lab[2].address}"
    shield(lab[1], f"{source} meta l4proto icmp drop; {source} meta l4proto tcp {verb};")
    try:
        with serving(lab[1:]):
            found = survey(lab[0])
    finally:
        unshield(lab[1])

    assert (found.exit_code, found.errors) == (1, ["AG622"]), found.tell()
    assert found.states == {(3, 2): "blocked"}
    assert found.ports(3, 2) == SHUT and state in found.says("AG622")


def test_the_asker_s_own_way_that_is_shut_is_named(lab: Cluster) -> None:
    shield(lab[1], f"ip saddr {lab[0].address} meta l4proto {{ tcp, icmp }} drop;")
    try:
        with serving(lab[1:]):
            found = survey(lab[0])
    finally:
        unshield(lab[1])

    assert (found.exit_code, found.states) == (1, {(1, 2): "blocked"}), found.tell()
    assert found.errors == ["AG622"], found.tell()


def test_another_mtu_and_a_clock_that_is_off_are_told_with_their_numbers(lab: Cluster) -> None:
    lab[1].run(["ip", "link", "set", "eth0", "mtu", "1400"], check=True)
    try:
        with serving(lab[1:], shift={3: 7.5}):
            found = survey(lab[0])
    finally:
        lab[1].run(["ip", "link", "set", "eth0", "mtu", "1500"], check=True)

    assert (found.exit_code, found.of("warn")) == (0, ["AG626", "AG628"]), found.tell()
    assert found.node(2)["mtu"] == 1400 and found.states == {}
    assert found.findings["AG628"]["says"] == "the clock of gpu-node-3 is off"
    assert found.node(3)["clock_s"] == pytest.approx(7.5, abs=0.2)
    assert found.node(2)["clock_s"] == pytest.approx(0.0, abs=0.2)


def test_a_node_that_does_not_serve_is_unknown_and_told_what_to_type(lab: Cluster) -> None:
    with serving(lab[1:2]):
        shown = lab[0].run(["avahi-gpu", "doctor", "--cluster", "--wait", "3"], timeout=60)

    assert shown.returncode == 0, shown.stdout
    assert re.search(r"^1 gpu-node-1 +- +ok +\?$", shown.stdout, re.MULTILINE), shown.stdout
    assert re.search(r"^3 gpu-node-3 +\? +\? +-$", shown.stdout, re.MULTILINE), shown.stdout
    assert "waiting for gpu-node-3" in shown.stderr
    assert "AG620  gpu-node-3 was not asked" in shown.stdout
    assert "run `avahi-gpu doctor --serve 120`" in shown.stdout


def test_where_nobody_could_be_asked_the_exit_code_says_so(lab: Cluster) -> None:
    shown = lab[0].run(["avahi-gpu", "doctor", "--cluster", "--wait", "1"], timeout=60)

    assert shown.returncode == 3, shown.stdout
    assert "gpu-node-2 and gpu-node-3 could not be asked" in shown.stdout
