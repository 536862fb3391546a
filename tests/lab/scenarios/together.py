"""C and D: what only shows where all nodes are asked, by ``doctor --cluster``."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab import network
from tests.lab.cluster import Cluster
from tests.lab.scenarios.scenario import Scenario

STORE_ALONE = """
table inet t {
  chain c {
    type filter hook input priority 0
    iif lo accept
    ct state established accept
    udp dport 5353 accept
    tcp dport 29500 accept
    meta l4proto { tcp, udp } drop
  }
}
"""
SERVE_S = "45"


def answering(break_it: Callable[[Cluster], None]) -> Callable[[Cluster], None]:
    """Return what breaks something and lets the other nodes answer."""

    def breaks(lab: Cluster) -> None:
        for host in lab.hosts[1:]:
            host.popen(["avahi-gpu", "doctor", "--serve", SERVE_S])
        break_it(lab)

    return breaks


def shut_all_but_the_store(lab: Cluster) -> None:
    lab[1].run(["nft", "-f", "-"], input=STORE_ALONE, check=True)


def set_frames(mtu: int) -> Callable[[Cluster], None]:
    """Return what lets the switch take frames up to ``mtu`` from and to the third host."""

    def change(lab: Cluster) -> None:
        network.configure(lab[2].switch, [f"link set {network.port_of(3)} mtu {mtu}"])

    return change


SCENARIOS = (
    Scenario(
        "C-07",
        "another-node-opens-29500-alone",
        "the firewall of another node lets in 5353 and 29500, and nothing else",
        "AG623",
        answering(shut_all_but_the_store),
        ask=("--cluster",),
        touches=(1, 2),
    ),
    Scenario(
        "C-20",
        "a-switch-swallows-large-frames",
        "a switch takes smaller frames than the nodes send",
        "AG627",
        answering(set_frames(1300)),
        ask=("--cluster",),
        touches=(1, 2),
        heals=set_frames(1500),
    ),
)
