"""Which nodes the files for other launchers name, and in which order: that of the ranks of a job. Pure.

Everybody on the LAN may publish a record. What goes into a file is an address that ``ipaddress`` has written
anew, a host name of letters, digits and hyphens, and numbers: no line, option or word of a shell comes from
the LAN.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from avahi_gpu.model import DEFAULT_PORT, DOMAIN, Peer, natural_order
from avahi_gpu.render.inventory import HOST_LABEL, INTERFACE, RESERVED, numeric_address

PORTS = range(1024, 65536)  # below them only root may listen
GPUS_MAX = 1024  # of one machine; more is no machine but a mistake or a joke
# names that every machine already means something by
TAKEN = RESERVED | {"ip6-localhost", "ip6-loopback", "ip6-allnodes", "ip6-allrouters", "broadcasthost"}


@dataclass(frozen=True)
class Entry:
    """One node as a file names it. ``interface``: as seen from here, '' if that has a strange name."""

    name: str  # host name without .local
    address: str  # numeric
    interface: str
    port: int  # for the workers' store
    gpus: int
    own: bool  # this machine

    @property
    def processes(self) -> int:
        """One a GPU; one where no node has any."""
        return max(self.gpus, 1)


@dataclass(frozen=True)
class Lineup:
    """The nodes in the order of their ranks, and a sentence about each that is left out."""

    entries: tuple[Entry, ...]
    notes: tuple[str, ...]

    @property
    def own_rank(self) -> int | None:
        """The place of this machine, None where it is not among them."""
        return next((rank for rank, entry in enumerate(self.entries) if entry.own), None)


def line_up(
    peers: Iterable[Peer], cluster: str, own_addresses: Mapping[str, str], *, training: bool
) -> Lineup:
    """Return the nodes of ``cluster`` that are there.

    ``training``: only those that a training job can use, which are those with GPUs where any has some, by
    IPv4 addresses: other launchers were not tried with IPv6. ``own_addresses``: the first IPv4
    address of this machine on each interface.
    """
    notes: list[str] = []
    there: list[Peer] = []
    for peer in peers:
        why = _why_not(peer, cluster, training=training)
        if why:
            notes.append(f"{peer.name} is left out: {why}")
        else:
            there.append(peer)
    if training and any(p.gpus for p in there):
        notes += [f"{p.name} is left out: it has no GPU, and others have" for p in there if not p.gpus]
        there = [p for p in there if p.gpus]
    seen_by = [p.interface for p in there if not p.self and p.interface]
    # whoever else names our own host or address is a mistake or a lie: it takes no rank from us
    ours = [_entry(p) for p in there if p.self]
    entries: list[Entry] = []
    for peer in rank_order(there):
        entry = _entry(peer)
        if not entry.own and (same := _same(entry, ours)):
            notes.append(_second(entry, same))
            continue
        if entry.own and seen_by and entry.interface not in seen_by and seen_by[0] in own_addresses:
            # Avahi tells any of our own addresses; the others are where they are
            entry = replace(entry, interface=seen_by[0], address=own_addresses[seen_by[0]])
        same = _same(entry, entries)
        if same is None:
            entries.append(entry)
        else:
            notes.append(_second(entry, same))
    return Lineup(tuple(entries), tuple(notes))


def _same(entry: Entry, others: Iterable[Entry]) -> Entry | None:
    return next((e for e in others if entry.address == e.address or entry.name == e.name), None)


def _second(entry: Entry, same: Entry) -> str:
    what = f"the address {same.address}" if same.address == entry.address else f"the name {same.name}"
    return f"a second node with {what} is left out: {entry.name} at {entry.address}"


def rank_order(peers: Sequence[Peer]) -> list[Peer]:
    """Return the peers as a job ranks its nodes: the leader first, the others by host name."""
    by_name = sorted(peers, key=lambda p: (natural_order(label_of(p)), p.id))
    leader = min(by_name, key=lambda p: -p.priority, default=None)
    return sorted(by_name, key=lambda p: p is not leader)


def label_of(peer: Peer) -> str:
    """Return its host name without the domain."""
    return peer.host.lower().removesuffix(f".{DOMAIN}")


def _why_not(peer: Peer, cluster: str, *, training: bool) -> str:
    if peer.cluster != cluster:
        return f"it is of cluster {peer.cluster}, not of {cluster}"
    name, address = label_of(peer), numeric_address(peer)
    if address is None:
        return "its address is not known"
    if peer.alive is False:
        return "it does not answer"
    if not HOST_LABEL.fullmatch(name) or name in TAKEN:
        return f"{peer.host or 'nothing'} is no name for a host"
    ip = ipaddress.ip_address(address.partition("%")[0])
    if ip.is_loopback or ip.is_unspecified or ip.is_multicast:
        return f"{address} is no address of a machine"
    if training and ip.version == 6:
        return f"it has no IPv4 address, and over {address} only avahi-gpu launch was tried"
    return ""


def _entry(peer: Peer) -> Entry:
    return Entry(
        name=label_of(peer),
        address=numeric_address(peer) or "",
        interface=peer.interface if peer.interface and INTERFACE.fullmatch(peer.interface) else "",
        port=peer.port if peer.port in PORTS else DEFAULT_PORT,
        gpus=min(peer.gpus, GPUS_MAX),
        own=peer.self,
    )
