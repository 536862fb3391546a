"""A-12 … A-32 and C-07: firewalls, switches, mDNS's port, and the interfaces of a host."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.cluster import Cluster
from tests.lab.network import inside
from tests.lab.scenarios.scenario import Scenario


def rules(text: str, *, host: int = 0) -> Callable[[Cluster], None]:
    """Return what gives a host these rules of nft."""

    def break_it(lab: Cluster) -> None:
        lab[host].run(["nft", "-f", "-"], input=text, check=True)

    return break_it


def base(hook: str, *lines: str, policy: str = "accept") -> str:
    """Return a table with one base chain."""
    body = "\n".join(lines)
    head = f"type filter hook {hook} priority 0; policy {policy};"
    return f"table inet filter {{\nchain {hook} {{\n{head}\n{body}\n}}\n}}\n"


LAN = "ct state established,related accept", "iifname lo accept", "meta l4proto { icmp, ipv6-icmp } accept"


def stop_multicast(lab: Cluster) -> None:
    """Let the switch pass no mDNS on, as one that snoops IGMP and hears no querier; all else passes."""
    drops = "ip daddr 224.0.0.251 drop\nip6 daddr ff02::fb drop"
    chain = f"chain forward {{\ntype filter hook forward priority 0;\n{drops}\n}}"
    inside(lab[0].switch, ["nft", "-f", "-"], f"table bridge snooping {{\n{chain}\n}}\n")


def pass_multicast(lab: Cluster) -> None:
    """Mend the switch."""
    inside(lab[0].switch, ["nft", "delete", "table", "bridge", "snooping"])


SCENARIOS = (
    Scenario(
        "A-14",
        "firewall-drops-mdns",
        "nft drops incoming UDP port 5353",
        "AG204",
        rules(base("input", "udp dport 5353 drop")),
        mends=True,
    ),
    Scenario(
        "A-14",
        "firewall-lets-ssh-in-alone",
        "an nft chain with policy drop that knows nothing of mDNS",
        "AG204",
        rules(base("input", *LAN, "tcp dport 22 accept", policy="drop")),
        mends=True,
    ),
    Scenario(
        "A-14",
        "firewall-keeps-mdns-in",
        "nft drops outgoing UDP port 5353: the others do not see this machine",
        "AG205",
        rules(base("output", "udp dport 5353 counter drop")),
        mends=True,
    ),
    Scenario(
        "C-07",
        "firewall-opens-29500-alone",
        "nft lets UDP 5353 and TCP 29500 in and drops every other port",
        "AG206",
        rules(base("input", *LAN, "udp dport 5353 accept", "tcp dport { 22, 29500 } accept", policy="drop")),
        mends=True,
    ),
    Scenario(
        "A-13",
        "switch-drops-multicast",
        "the switch passes nothing to 224.0.0.251 and ff02::fb on, while pings pass",
        "AG207",
        stop_multicast,
        heals=pass_multicast,
    ),
)
