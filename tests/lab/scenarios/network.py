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


LAN = "ct state established,related accept", "iifname lo accept", "meta l4proto { 1, 58 } accept"


def stop_multicast(lab: Cluster) -> None:
    """Let the switch pass no mDNS on, as one that snoops IGMP and hears no querier; all else passes."""
    drops = "ip daddr 224.0.0.251 drop\nip6 daddr ff02::fb drop"
    chain = f"chain forward {{\ntype filter hook forward priority 0;\n{drops}\n}}"
    inside(lab[0].switch, ["nft", "-f", "-"], f"table bridge snooping {{\n{chain}\n}}\n")


def pass_multicast(lab: Cluster) -> None:
    """Mend the switch."""
    inside(lab[0].switch, ["nft", "delete", "table", "bridge", "snooping"])


def share_the_port(lab: Cluster) -> None:
    """Start a program that binds mDNS's port beside avahi-daemon, as libraries for mDNS do."""
    program = (
        "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
        "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1);"
        "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1);"
        "s.bind(('', 5353)); print('bound', flush=True); time.sleep(600)"
    )
    other = lab[0].popen(["python3", "-c", program])
    assert other.stdout is not None and other.stdout.readline() == "bound\n"
    lab[0].restart_avahi()


def commands(*lines: str, restart: bool = False) -> Callable[[Cluster], None]:
    """Return what runs these commands of ip on the first host; ``{lan}`` is its subnet's first half."""

    def break_it(lab: Cluster) -> None:
        for line in lines:
            lab[0].run(line.format(lan=f"{lab.subnet}.0/25").split(), check=True)
        if restart:
            lab[0].restart_avahi()

    return break_it


def fill_with_bridges(lab: Cluster) -> None:
    """Give the host more bridges than one socket may join groups, and its LAN card last."""
    host = lab[0]
    host.stop_avahi()
    for number in range(25):
        host.run(["ip", "link", "add", f"br-{number}", "type", "bridge"], check=True)
        host.run(["ip", "addr", "add", f"172.30.{number}.1/24", "dev", f"br-{number}"], check=True)
        host.run(["ip", "link", "set", f"br-{number}", "up"], check=True)
    host.start_avahi()


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
        "A-14",
        "firewall-of-a-kind-nobody-knows",
        "nft drops what has a TTL of 255, as mDNS has: a rule that the doctor does not follow",
        "AG207",
        rules(base("input", "ip ttl 255 udp sport 5353 drop")),
    ),
    Scenario(
        "A-13",
        "switch-drops-multicast",
        "the switch passes nothing to 224.0.0.251 and ff02::fb on, while pings pass",
        "AG207",
        stop_multicast,
        heals=pass_multicast,
    ),
    Scenario(
        "A-15",
        "another-program-on-the-port",
        "a program with an mDNS library of its own binds UDP port 5353",
        "AG209",
        share_the_port,
    ),
    Scenario(
        "A-27",
        "vpn-takes-the-lan",
        "a route for the LAN's subnet leads into a tunnel",
        "AG208",
        commands(
            "ip link add wg0 type bridge",
            "ip link set wg0 multicast off",
            "ip addr add 10.99.0.1/32 dev wg0",
            "ip link set wg0 up",
            "ip route add {lan} dev wg0",
        ),
    ),
    Scenario(
        "A-32",
        "more-interfaces-than-groups",
        "25 bridges came before the LAN's card, and a socket may join 20 groups",
        "AG212",
        fill_with_bridges,
        mends=True,
    ),
    Scenario(
        "A-27",
        "no-multicast-flag",
        "`ip link set eth0 multicast off`",
        "AG202",
        commands("ip link set eth0 multicast off"),
        mends=True,
    ),
)
