"""Which base chains keep the LAN's machines out, and what they would have to let through. Pure.

A rule may fit some addresses and ports of a network and not others, so each network is cut where rules make
a difference, and every piece is followed on its own. Rules that drop single machines are the administrator's
own business: what is asked is whether the others come through.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from avahi_gpu.files.firewall import (
    Chain,
    Choice,
    Fate,
    Interval,
    Packet,
    Stop,
    Table,
    Test,
    address_interval,
    describe,
    follow,
    policy_words,
    stops_of,
    tests_true,
)
from avahi_gpu.model import LAN_GROUPS, LINK_LOCAL, MDNS_PORT, Address, Interface, Wall, WallKind, is_private

MARK = "avahi-gpu"  # begins the comment of every rule of ours
WORK_MAX = 200_000  # rules followed for one kind of packet: a tenth of a second or so
CONTROL_PORTS: Interval = (29400, 29429)  # of jobs, and of the doctor that answers
STORE_PORTS: Interval = (29500, 29999)  # torch's store for the workers of a round
ANY_PORT: Interval = (1024, 65535)


@dataclass(frozen=True)
class Need:
    """Packets between an interface and one network that a node lives on."""

    what: WallKind
    way: Literal["in", "out"]
    interface: str
    network: str
    packets: tuple[Packet, ...]


def job_ports(high: Interval, port: int) -> tuple[Interval, ...]:
    """Return the TCP ports that jobs listen on: control, stores, ``port``, and what the kernel hands out."""
    merged: list[Interval] = []
    for low, top in sorted((CONTROL_PORTS, STORE_PORTS, (port, port), high)):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], top))
        else:
            merged.append((low, top))
    return tuple(merged)


def find_walls(
    tables: Sequence[Table], interfaces: Iterable[Interface], ports: Sequence[Interval]
) -> tuple[list[Wall], list[str]]:
    """Return what keeps the machines of these interfaces' networks out, and the rules nobody understands.

    Walls are told as they are without our own rules; ``shut`` tells whether they are so with them.
    """
    walls: list[Wall] = []
    unclear: dict[str, None] = {}
    plain = without_ours(tables)
    for need in (n for i in interfaces for n in needs_of(i, ports)):
        barriers, questions = _barriers(plain, need)
        closed = {(b.table, b.chain) for b in _barriers(tables, need)[0]} if tables != plain else None
        unclear.update(dict.fromkeys(questions))
        for b in barriers:
            shut = closed is None or (b.table, b.chain) in closed
            walls.append(replace(b, shut=shut))
    return walls, list(unclear)


def settle(tables: Sequence[Table], packet: Packet, among: Sequence[Interval] | None = None) -> Fate | None:
    """Return what becomes of the packet where its neighbour's address matters, None where that still is open.

    It is asked for each of ``among``, or for all pieces of the network. Machines that a rule of their own
    keeps out say nothing of the others.
    """
    pieces = [replace(packet, source=one) for one in among] if among is not None else _pieces(tables, packet)
    fates = [follow(tables, piece) for piece in pieces]
    fates = [f for f in fates if f.table is None or not _names_some(f.table, f.because, packet)]
    return fates[0] if len({f.outcome for f in fates}) == 1 else None


def without_ours(tables: Sequence[Table]) -> list[Table]:
    """Return the tables without rules whose comment says that they are ours."""
    return [
        replace(
            table,
            chains={
                name: replace(chain, rules=tuple(r for r in chain.rules if not is_ours(r.comment)))
                for name, chain in table.chains.items()
            },
        )
        for table in tables
    ]


def is_ours(comment: str) -> bool:
    """Whether the comment of a rule says that it is ours."""
    return comment == MARK or comment.startswith(f"{MARK}:")


def needs_of(interface: Interface, ports: Sequence[Interval]) -> list[Need]:
    """Return what has to pass between the interface and each of its networks."""
    own = [a for a in interface.addresses if a.scope == "global"]
    first = {str(_network(a)): a for a in reversed(own)}
    networks = {text: a for text, a in sorted(first.items()) if _network(a).num_addresses > 1}
    needs: list[Need] = []
    for text, address in networks.items():
        if address.family == 4:
            needs += _mdns(interface.name, text, address, text)
        needs += _jobs(interface.name, text, address, ports)
    link_local = next((a for a in interface.addresses if a.family == 6 and a.scope == "link"), None)
    if link_local is not None and any(is_private(text) for text in networks):
        needs += _mdns(interface.name, LINK_LOCAL, link_local, "fe80::/64")
    return needs


def _network(address: Address) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    return ipaddress.ip_network(f"{address.ip}/{address.prefix}", strict=False)


def _mdns(name: str, network: str, own: Address, around: str) -> list[Need]:
    me, lan = address_interval(own.ip), address_interval(around)
    group = address_interval(LAN_GROUPS[own.family])
    port = (MDNS_PORT, MDNS_PORT)
    asked = Packet("in", own.family, name, "udp", lan, group, port, port, "multicast")
    answered = replace(asked, destination=me, kind="unicast")
    told = Packet("out", own.family, name, "udp", me, group, port, port, "multicast")
    return [
        Need("mdns", "in", name, network, (asked, answered)),
        Need("mdns", "out", name, network, (told,)),
    ]


def _jobs(name: str, network: str, own: Address, ports: Sequence[Interval]) -> list[Need]:
    me, lan = address_interval(own.ip), address_interval(network)
    inward = tuple(Packet("in", own.family, name, "tcp", lan, me, ANY_PORT, one) for one in ports)
    outward = tuple(Packet("out", own.family, name, "tcp", me, lan, ANY_PORT, one) for one in ports)
    return [Need("jobs", "in", name, network, inward), Need("jobs", "out", name, network, outward)]


# --- one need, all chains ----------------------------------------------------------------------------------


@dataclass
class _Seen:
    """What one base chain does with the pieces of a need: reason of a drop -> whom it concerns."""

    stop: Stop
    drops: dict[str, set[Interval]] = field(default_factory=dict)


def _barriers(tables: Sequence[Table], need: Need) -> tuple[list[Wall], list[str]]:
    seen: dict[tuple[str, ...], _Seen] = {}
    unclear: list[str] = []
    for packet in need.packets:
        for piece in _pieces(tables, packet):
            for stop in stops_of(tables, piece):
                reason = stop.ends.get("drop")
                if reason is None:
                    continue
                if "accept" in stop.ends and reason != policy_words(stop.table, stop.chain):
                    unclear.append(stop.ends.get("open") or reason)
                    continue
                key = (stop.table.tool, stop.table.family, stop.table.name, stop.chain.name)
                one = seen.setdefault(key, _Seen(stop))
                one.drops.setdefault(reason, set()).add(_neighbours(piece))
    walls = [w for one in seen.values() if (w := _wall(need, one)) is not None]
    return walls, unclear


def _wall(need: Need, seen: _Seen) -> Wall | None:
    """Return the wall, None where only rules about single machines drop."""
    size = {
        reason: sum(high - low + 1 for low, high in whom)
        for reason, whom in seen.drops.items()
        if not _names_some(seen.stop.table, reason, need.packets[0])
    }
    if not size:
        return None
    general = [reason for reason in seen.drops if size.get(reason, 0) * 2 >= max(size.values())]
    table, chain = seen.stop.table, seen.stop.chain
    return Wall(
        what=need.what,
        way=need.way,
        interface=need.interface,
        family=need.packets[0].family,
        network=need.network,
        because=general[0],
        tool=table.tool,
        table=(table.family, table.name),
        chain=chain.name,
        by_policy=general == [policy_words(table, chain)],
        others=next((reason for reason in seen.drops if reason not in general), ""),
    )


def _names_some(table: Table, reason: str, packet: Packet) -> bool:
    """Whether the rule of this reason drops some machines of the network only, by their addresses."""
    side = _side(packet)
    for chain in table.chains.values():
        here = describe(table, chain)
        if not reason.startswith(f"{here}: "):
            continue
        for rule in chain.rules:
            tests = [t for t in rule.tests if side in set(_fields((t,)))]
            if f"{here}: {rule.text}" == reason and tests and tests_true(tests, packet) is not True:
                return True
    return False


# --- pieces ------------------------------------------------------------------------------------------------


def _side(packet: Packet) -> Literal["saddr", "daddr"]:
    return "saddr" if packet.way == "in" else "daddr"


def _neighbours(packet: Packet) -> Interval:
    return packet.source if packet.way == "in" else packet.destination


def _pieces(tables: Sequence[Table], packet: Packet) -> Iterator[Packet]:
    """Yield the packet in pieces that no test of address or port tells apart, where they are not too many."""
    chains = [chain for table in tables for chain in table.chains.values()]
    rules = sum(len(chain.rules) for chain in chains)
    side = _side(packet)
    # of a group's address there is one, whoever is meant
    lans = _cut(_neighbours(packet), _edges(chains, side))
    ports = _cut(packet.dport, _edges(chains, "dport"))
    if len(lans) * len(ports) * (rules + 1) > WORK_MAX:
        lans = [_neighbours(packet)]
    if len(ports) * (rules + 1) > WORK_MAX:
        ports = [packet.dport]
    for lan in lans:
        there = replace(packet, source=lan) if packet.way == "in" else replace(packet, destination=lan)
        for port in ports:
            yield replace(there, dport=port)


def _edges(chains: Iterable[Chain], field: str) -> set[int]:
    """Return where tests of this field begin to be true, and where they cease to be."""
    found: set[int] = set()
    for chain in chains:
        for rule in chain.rules:
            for value in _values(rule.tests, field):
                found.update((value[0], value[1] + 1))
    return found


def _values(tests: Iterable[Test | Choice], field: str) -> Iterator[Interval]:
    for test in tests:
        if isinstance(test, Choice):
            for alternative in test.alternatives:
                yield from _values(alternative, field)
        elif test.field == field:
            yield from (v for v in test.values if not isinstance(v, str))


def _fields(tests: Iterable[Test | Choice]) -> Iterator[str]:
    for test in tests:
        if isinstance(test, Choice):
            for alternative in test.alternatives:
                yield from _fields(alternative)
        else:
            yield test.field


def _cut(whole: Interval, edges: Iterable[int]) -> list[Interval]:
    low, high = whole
    starts = [low, *sorted(e for e in edges if low < e <= high)]
    return list(zip(starts, [*(s - 1 for s in starts[1:]), high], strict=True))
