"""Firewalls, cards and tunnels as they stand on healthy machines: no error, however odd they look."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab import network
from tests.lab.cluster import Cluster, cluster
from tests.lab.doctoring import doctor, set_up
from tests.lab.host import Host

# as firewalld's zones, and a server's own list, let mDNS and the LAN in
ZONES = """table inet firewalld {
  chain filter_INPUT {
    type filter hook input priority filter + 10; policy accept;
    ct state { established, related } accept
    iifname "lo" accept
    ct state invalid drop
    jump filter_INPUT_ZONES
    reject with icmpx admin-prohibited
  }
  chain filter_INPUT_ZONES {
    iifname "eth0" goto filter_IN_home
    goto filter_IN_home
  }
  chain filter_IN_home {
    jump filter_IN_home_allow
    meta l4proto { 1, 58 } accept
    reject with icmpx admin-prohibited
  }
  chain filter_IN_home_allow {
    ip daddr 224.0.0.251 udp dport 5353 accept
    ip6 daddr ff02::fb udp dport 5353 accept
    tcp dport 1025-65535 accept
  }
}
"""
PEERS_ALONE = """table inet filter {{
  set nodes {{
    type ipv4_addr
    elements = {{ {nodes} }}
  }}
  chain input {{
    type filter hook input priority 0; policy drop;
    ct state established,related accept
    iif lo accept
    ip saddr @nodes accept
    meta l4proto {{ 1, 58 }} accept
  }}
}}
"""
# as ufw writes them, with one rule of the user's: the LAN may
UFW = """table ip filter {{
  chain not-local {{
    fib daddr type local return
    fib daddr type multicast return
    fib daddr type broadcast return
    drop
  }}
  chain user-input {{
    ip saddr {subnet}.0/24 accept
  }}
  chain before-input {{
    iifname "lo" accept
    ct state related,established accept
    ct state invalid drop
    icmp type echo-request accept
    jump not-local
    ip daddr 224.0.0.251 udp dport 5353 accept
    jump user-input
  }}
  chain INPUT {{
    type filter hook input priority filter; policy drop;
    jump before-input
  }}
  chain OUTPUT {{
    type filter hook output priority filter; policy drop;
    ct state related,established accept
    ct state new accept
  }}
}}
"""


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    with cluster(3) as lab:
        set_up(lab, forget=True)
        yield lab


@pytest.fixture
def node(nodes: Cluster) -> Iterator[Host]:
    yield nodes[0]
    nodes[0].run(["nft", "flush", "ruleset"], check=True)


def test_zones_that_let_the_lan_in_are_followed_to_the_rule_that_does(node: Host) -> None:
    node.run(["nft", "-f", "-"], input=ZONES, check=True)

    found = doctor(node)

    assert (found.errors, found.of("warn"), found.of("unknown")) == ([], [], []), found.tell()


def test_a_list_of_nodes_is_asked_about_those_nodes(nodes: Cluster, node: Host) -> None:
    addresses = ", ".join(host.address for host in nodes)
    for other in nodes.hosts[1:]:
        node.run(["ping", "-c", "1", "-W", "2", other.address])  # so that the kernel knows them
    node.run(["nft", "-f", "-"], input=PEERS_ALONE.format(nodes=addresses), check=True)

    found = doctor(node)

    assert (found.errors, found.of("warn"), found.of("unknown")) == ([], [], []), found.tell()


def test_ufw_with_a_rule_for_the_lan_is_no_fault(nodes: Cluster, node: Host) -> None:
    node.run(["nft", "-f", "-"], input=UFW.format(subnet=nodes.subnet), check=True)

    found = doctor(node)

    assert (found.errors, found.of("warn"), found.of("unknown")) == ([], [], []), found.tell()


def test_a_tunnel_beside_the_lan_is_no_fault(node: Host) -> None:
    try:
        for line in (
            "ip link add tailscale0 type bridge",
            "ip link set tailscale0 multicast off",
            "ip addr add 100.64.0.1/32 dev tailscale0",
            "ip link set tailscale0 up",
        ):
            node.run(line.split(), check=True)

        found = doctor(node)

        assert (found.errors, found.of("warn")) == ([], []), found.tell()
        assert "tailscale0" in found.says("AG211")
    finally:
        node.run(["ip", "link", "del", "tailscale0"])


def test_two_cards_on_one_lan_are_a_warning(nodes: Cluster, node: Host) -> None:
    network.configure(
        node.switch,
        [f"link add second type veth peer name eth1 netns {node.pid}", "link set second master br0 up"],
    )
    try:
        own = f"{nodes.subnet}.101/24"
        network.configure(node.pid, [f"addr add {own} dev eth1", "link set eth1 up"])

        found = doctor(node)

        assert (found.errors, found.of("warn")) == ([], ["AG210"]), found.tell()
    finally:
        network.configure(node.switch, ["link del second"])
