"""What is read of the network: the firewall's answers, who hears whom, the ways of the kernel."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Literal

from avahi_gpu.model.machine_file import FileState

MDNS_PORT = 5353
NFT_FILE = "/etc/avahi-gpu/firewall.nft"  # rules of ours, for the file that nftables.service loads
LAN_GROUPS = {4: "224.0.0.251", 6: "ff02::fb"}  # RFC 6762 section 3
LINK_LOCAL = "fe80::/10"
PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")  # RFC 1918, RFC 4193

PacketKind = Literal[
    "mdns-in",  # from a neighbour to the mDNS group
    "mdns-unicast-in",  # from a neighbour's port 5353 to ours
    "mdns-out",  # from us to the group
    "tcp-in",  # a neighbour's connection to torch's customary port
    "tcp-high-in",  # … to any port that the kernel gives to a program that does not care which
    "tcp-out",  # our connection to a neighbour
    "tcp-back",  # what a neighbour answers to that
]


@dataclass(frozen=True)
class PacketFate:
    """What the firewall does with one kind of packet on one interface. ``because``: the rule that decides.

    ``table`` and ``chain`` name the base chain that drops it, ``tool`` who takes rules for it: nft, or a kind
    of iptables.
    """

    kind: PacketKind
    interface: str
    family: Literal[4, 6]
    outcome: Literal["pass", "drop", "unknown"]
    because: str = ""
    tool: str = ""
    table: tuple[str, str] = ("", "")  # family and name
    chain: str = ""


WallKind = Literal["mdns", "jobs"]


@dataclass(frozen=True)
class Wall:
    """A base chain that keeps the machines of one network out, or this one in.

    ``by_policy``: nothing but its policy does, so a rule at its end helps. ``others``: a rule that drops
    some of the machines only; it would count no more behind one that lets the network in.
    """

    what: WallKind
    way: Literal["in", "out"]
    interface: str
    family: Literal[4, 6]
    network: str  # 10.77.0.0/24
    because: str
    tool: str
    table: tuple[str, str]
    chain: str
    by_policy: bool = False
    others: str = ""
    shut: bool = True  # now; False: a rule of ours opens it

    @property
    def public(self) -> bool:
        """Whether the network is neither private nor of this link alone."""
        return self.network != LINK_LOCAL and not is_private(self.network)


def is_private(network: str) -> bool:
    """Whether a network is one of those that nobody routes through the Internet."""
    one = ipaddress.ip_network(network, strict=False)
    return any(
        isinstance(one, type(whole := ipaddress.ip_network(text))) and one.subnet_of(whole)  # type: ignore[arg-type]
        for text in PRIVATE
    )


@dataclass(frozen=True)
class BootRules:
    """A file that a service of the system loads rules from at boot. ``ours``: what it may include of ours.

    ``included``: the texts of all other files that it includes.
    """

    kind: Literal["nft", "iptables", "ip6tables"]
    file: FileState
    ours: FileState | None = None
    included: tuple[str, ...] = ()


@dataclass(frozen=True)
class ZoneRule:
    """A rich rule of one of firewalld's zones."""

    zone: str
    lasting: bool  # in its own files; else in force now
    rule: str


@dataclass(frozen=True)
class Firewall:
    """The firewall of this machine, as it treats the LAN."""

    fates: tuple[PacketFate, ...]
    keeper: Literal["", "firewalld", "ufw"] = ""  # who writes the rules
    zones: tuple[tuple[str, str], ...] = ()  # firewalld: interface and its zone
    high_ports: tuple[int, int] = (32768, 60999)  # net.ipv4.ip_local_port_range
    walls: tuple[Wall, ...] = ()  # without our own rules
    unclear: tuple[str, ...] = ()  # rules that may drop the LAN's packets, and that nobody understands
    ports: tuple[tuple[int, int], ...] = ()  # TCP ports of jobs
    boot: tuple[BootRules, ...] = ()
    zone_rules: tuple[ZoneRule, ...] = ()  # rich rules of the zones in ``zones``


@dataclass(frozen=True)
class Ear:
    """Who was asked by mDNS on one interface, and what came of it. Members of the tuples are addresses.

    Each was asked for the name of its own address: only itself answers that. Without a tap on the card (root
    only) ``sent``, ``replied`` and ``seen`` are None.
    """

    interface: str
    asked: tuple[str, ...]
    nodes: tuple[str, ...] = ()  # of those asked: the ones that Avahi lists as nodes, or the user named
    answered: tuple[str, ...] = ()  # whose answer avahi-daemon has heard just now
    remembered: tuple[str, ...] = ()  # whose answer it had before: heard within the last two minutes
    alive: tuple[str, ...] = ()  # of those that were silent: who answers a connection or a ping
    sent: bool | None = None  # a question of ours has left the card
    replied: tuple[str, ...] | None = None  # whose answer has come to the card
    seen: tuple[str, ...] | None = None  # whose packets of any kind have
    hardly_asked: tuple[str, ...] = ()  # alive and silent, but too few questions have left to blame anybody


@dataclass(frozen=True)
class WayBack:
    """Which of its addresses the kernel would use towards a neighbour on an interface's subnet."""

    interface: str
    neighbour: str
    source: str | None  # None: no route
    strict: bool  # net.ipv4.conf.*.rp_filter is 1: packets whose way back is another one are dropped


@dataclass(frozen=True)
class KernelNet:
    """Settings and routes of the kernel that decide over multicast."""

    ways_back: tuple[WayBack, ...] = ()
    memberships_max: int | None = None  # net.ipv4.igmp_max_memberships, of one socket
    in_group: frozenset[str] | None = None  # interfaces that are in 224.0.0.251, the group of IPv4


@dataclass(frozen=True)
class ResolvedMdns:
    """mDNS in systemd-resolved: ``yes`` (asks and answers), ``resolve`` (asks) or ``no``, by link."""

    overall: str
    links: tuple[tuple[str, str], ...] = ()
