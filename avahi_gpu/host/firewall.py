"""What this machine's firewall does with mDNS and torch's connections: its rules are read, and followed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from avahi_gpu.errors import AvahiGpuError
from avahi_gpu.files import firewall_iptables, firewall_nft
from avahi_gpu.files.firewall import Fate, Interval, Packet, Table, address_interval, follow
from avahi_gpu.files.firewall_walls import find_walls, job_ports, settle
from avahi_gpu.host.aside import aside
from avahi_gpu.host.configuration import read_settings
from avahi_gpu.host.firewall_boot import read_boot_rules
from avahi_gpu.host.hearing import read_neighbours
from avahi_gpu.host.net import lan_interfaces
from avahi_gpu.host.system import System
from avahi_gpu.model import (
    DEFAULT_PORT,
    LAN_GROUPS,
    MDNS_PORT,
    Firewall,
    Interface,
    PacketFate,
    PacketKind,
    ZoneRule,
)

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

LIST_S = 5.0  # ten thousand rules take half a second to print
ASK_S = 3.0  # firewall-cmd is a Python program that asks a daemon
READ_S = LIST_S + 4.0  # with firewalld it is asked four times, each in half a second
RULES_MAX = 16 << 20  # characters; a cluster of containers has some megabytes
FIREWALLD_PID = "/run/firewalld.pid"
PORT_RANGE = "/proc/sys/net/ipv4/ip_local_port_range"
HIGH_PORTS: Interval = (32768, 60999)  # the kernel's default
LINK_LOCAL = "fe80::/64"
_ZONE = re.compile(r"[A-Za-z0-9_-]{1,32}")


class Unreadable(AvahiGpuError):
    """The rules are there, and this process may not or cannot read them."""


async def read(ground: Ground) -> Firewall:
    """Return what becomes of packets on each LAN interface. Raises Unreadable, MalformedInput."""
    return await aside(read_firewall, ground.system, ground.interfaces, ground.environment)


def read_firewall(
    system: System, interfaces: Iterable[Interface], environ: Mapping[str, str] = MappingProxyType({})
) -> Firewall:
    """Do what ``read`` says, blocking. ``environ``: variables that count as settings."""
    if not system.is_root:
        raise Unreadable("only root can read them")
    tables = read_tables(system)
    high = parse_port_range((system.read(PORT_RANGE).content or b"").decode("ascii", "replace"))
    lan = lan_interfaces(interfaces)
    neighbours = read_neighbours(system)
    fates = tuple(p for i in lan for p in fates_of(tables, i, high, neighbours))
    keeper = keeper_of(tables)
    port, chosen = _read_settings(system, environ)
    ports = job_ports(high, port)
    # what joins virtual machines and containers is no LAN, whatever its addresses
    cards = [i for i in lan if i.link in ("wired", "wireless") and (not chosen or i.name in chosen)]
    walls, unclear = find_walls(tables, cards, ports)
    if keeper == "ufw" and not any("ufw6-before-input" in t.chains for t in tables):
        walls = [
            w for w in walls if w.family == 4
        ]  # ufw is told to leave IPv6 alone, and refuses rules for it
    zones: tuple[tuple[str, str], ...] = ()
    if keeper == "firewalld":
        zones = tuple((i.name, _zone(system, i.name)) for i in lan)
    return Firewall(
        fates,
        keeper,
        zones,
        high,
        tuple(walls),
        tuple(unclear),
        ports,
        read_boot_rules(system) if any(w.tool == "nft" or not keeper for w in walls) else (),
        _zone_rules(system, zones),
    )


def _read_settings(system: System, environ: Mapping[str, str]) -> tuple[int, tuple[str, ...]]:
    """Return the port that is published, and the interfaces that count, () for all."""
    try:
        config = read_settings(system, environ).config
    except AvahiGpuError:  # which is told elsewhere
        return DEFAULT_PORT, ()
    return config.port, config.interfaces


def read_tables(system: System) -> list[Table]:
    """Return all tables of this network namespace that a tool on this machine shows."""
    tables: list[Table] = []
    native = system.find_program("nft")
    if native is not None:
        done = system.run([native, "--json", "list", "ruleset"], LIST_S)
        if not done.ok or len(done.stdout) > RULES_MAX:
            raise Unreadable(f"nft list ruleset: {done.reason}")
        tables = firewall_nft.parse(done.stdout)
        if firewall_nft.has_foreign_rules(done.stdout):
            tables = _replace_foreign(system, tables)
    else:
        # ufw and others need no nft; a kernel that has nf_tables built in lists no module of that name
        tables = _saved(system, "nft")
        if not tables and _loaded(system, "nf_tables"):
            raise Unreadable("the kernel has nf_tables, and neither nft nor iptables is here to show it")
        if system.exists(FIREWALLD_PID) and keeper_of(tables) != "firewalld":
            raise Unreadable("firewalld runs, and nft (package nftables) is not here to show its rules")
    if any(system.read(f"/proc/net/{name}").content for name in ("ip_tables_names", "ip6_tables_names")):
        legacy = _saved(system, "legacy")
        if not legacy:
            raise Unreadable("the kernel has rules of the old iptables, which is not here to show them")
        tables += legacy
    return tables


def _replace_foreign(system: System, tables: Sequence[Table]) -> list[Table]:
    """Take the tables of iptables as iptables itself shows them: nft does not tell their matches."""
    saved = _saved(system, "nft")
    known = {(t.family, t.name) for t in saved}
    return [*(t for t in tables if (t.family, t.name) not in known), *saved]


def _saved(system: System, kind: Literal["nft", "legacy"]) -> list[Table]:
    tables: list[Table] = []
    for family, tool in ((4, "iptables"), (6, "ip6tables")):
        program = system.find_program(f"{tool}-{kind}-save") or system.find_program(f"{tool}-save")
        if program is None:
            continue
        done = system.run([program], LIST_S)
        if not done.ok or len(done.stdout) > RULES_MAX:
            raise Unreadable(f"{tool}-save: {done.reason}")
        name = program.rpartition("/")[2].removesuffix("-save")
        tables += firewall_iptables.parse(done.stdout, 4 if family == 4 else 6, name)
    return tables


def _loaded(system: System, module: str) -> bool:
    modules = (system.read("/proc/modules").content or b"").decode("ascii", "replace")
    return any(line.startswith(f"{module} ") for line in modules.splitlines())


def _zone(system: System, interface: str) -> str:
    """Return firewalld's zone of an interface: the default one where none is named for it."""
    for question in (f"--get-zone-of-interface={interface}", "--get-default-zone"):
        done = system.run(["firewall-cmd", question], ASK_S)
        if done.ok and _ZONE.fullmatch(done.stdout.strip()):
            return done.stdout.strip()
    return ""


def _zone_rules(system: System, zones: Iterable[tuple[str, str]]) -> tuple[ZoneRule, ...]:
    """Return the rich rules of the zones, those in force and those in firewalld's files."""
    found: list[ZoneRule] = []
    for zone in sorted({zone for _, zone in zones if zone}):
        for lasting in (False, True):
            when = ["--permanent"] if lasting else []
            done = system.run(["firewall-cmd", *when, f"--zone={zone}", "--list-rich-rules"], ASK_S)
            lines = done.stdout.splitlines() if done.ok else []
            found += [ZoneRule(zone, lasting, line.strip()) for line in lines]
    return tuple(found)


def parse_port_range(text: str) -> Interval:
    """Return the ports of ip_local_port_range (ip(7)): what the kernel gives to those who name none."""
    words = text.split()
    return (
        (int(words[0]), int(words[1])) if len(words) == 2 and all(w.isdigit() for w in words) else HIGH_PORTS
    )


def keeper_of(tables: Iterable[Table]) -> Literal["", "firewalld", "ufw"]:
    """Return who writes these rules, by the chains that each makes."""
    for table in tables:
        if table.name == "firewalld" or "INPUT_direct" in table.chains:
            return "firewalld"
        if "ufw-before-input" in table.chains:
            return "ufw"
    return ""


# --- packets, pure -----------------------------------------------------------------------------------------


def fates_of(
    tables: Sequence[Table],
    interface: Interface,
    high: Interval = HIGH_PORTS,
    neighbours: Sequence[str] = (),
) -> list[PacketFate]:
    """Return what becomes of every kind of packet on the interface: of IPv4, or IPv6 where it has no IPv4.

    Rules that tell the LAN's addresses apart are asked about those of ``neighbours``.
    """
    found = []
    for packet_kind, packet in packets_of(interface, high):
        fate = follow(tables, packet)
        if fate.outcome == "unknown" and packet.way == "in":
            fate = _of_neighbours(tables, packet, neighbours) or settle(tables, packet) or fate
        table, chain = fate.table, fate.chain
        found.append(
            PacketFate(
                packet_kind,
                interface.name,
                packet.family,
                fate.outcome,
                fate.because,
                table.tool if table else "",
                (table.family, table.name) if table else ("", ""),
                chain.name if chain else "",
            )
        )
    return found


def _of_neighbours(tables: Sequence[Table], packet: Packet, neighbours: Sequence[str]) -> Fate | None:
    """Return what becomes of the packet from each of the neighbours, None where that differs."""
    known = [address_interval(a) for a in neighbours if (":" in a) == (packet.family == 6)]
    low, high = packet.source
    return settle(tables, packet, [a for a in known if low <= a[0] <= high])


def packets_of(interface: Interface, high: Interval) -> list[tuple[PacketKind, Packet]]:
    """Return the kinds of packets that a node lives on, between this interface and its subnet."""
    family: Literal[4, 6] = 4 if interface.ipv4 is not None else 6
    own = next((a for a in interface.addresses if a.family == family and a.scope == "global"), None)
    if own is None:
        return []
    me = address_interval(own.ip)
    lan = address_interval(f"{own.ip}/{own.prefix}")
    group = address_interval(LAN_GROUPS[family])
    # over IPv6 neighbours ask and answer from link-local addresses
    around = lan if family == 4 else address_interval(LINK_LOCAL)
    mdns, torch = (MDNS_PORT, MDNS_PORT), (DEFAULT_PORT, DEFAULT_PORT)
    name = interface.name

    def inward(protocol: Literal["udp", "tcp"], sport: Interval, dport: Interval, **more: Any) -> Packet:
        return Packet("in", family, name, protocol, sport=sport, dport=dport, **more)

    return [
        ("mdns-in", inward("udp", mdns, mdns, source=around, destination=group, kind="multicast")),
        ("mdns-unicast-in", inward("udp", mdns, mdns, source=around, destination=me)),
        (
            "mdns-out",
            Packet("out", family, name, "udp", me, group, mdns, mdns, "multicast"),
        ),
        ("tcp-in", inward("tcp", high, torch, source=lan, destination=me)),
        ("tcp-high-in", inward("tcp", high, high, source=lan, destination=me)),
        ("tcp-out", Packet("out", family, name, "tcp", me, lan, high, high)),
        ("tcp-back", inward("tcp", high, high, source=lan, destination=me, state="established")),
    ]
