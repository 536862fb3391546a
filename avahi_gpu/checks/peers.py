"""Which peers a check of the cluster asks about: each looks only at those that passed the step before."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import replace

from avahi_gpu.files import etc_hosts, txt
from avahi_gpu.model import Facts, Interface, PeerFacts


def restrict_peers(facts: Facts, names: tuple[str, ...]) -> Facts:
    """Return the facts with the peers of these names alone, which must then be there; none named: all.

    Whoever gives each node the same list names this machine too, which is no peer and is there.
    """
    names = tuple(name for name in names if not is_own(facts, name))
    if not names:
        return replace(facts, wanted_peers=())
    peers = (
        None if facts.peers is None else tuple(p for p in facts.peers if any(is_named(p, n) for n in names))
    )
    return replace(facts, peers=peers, wanted_peers=names)


def is_own(facts: Facts, name: str) -> bool:
    """Tell whether ``name``, as a user writes it, means this machine: its name or one of its addresses."""
    wanted = name.lower().rstrip(".")
    host = facts.hostname.lower()
    bare = host.partition(".")[0]
    published = facts.daemon.host_name.lower() or bare
    # where Avahi had to take another name, the host's own one is another machine's on the LAN
    names = {published, "localhost"} | ({host, bare} if published == bare else set())
    address = wanted.partition("%")[0]
    is_address = address in own_addresses(facts) or etc_hosts.is_loopback(address)
    return wanted.removesuffix(".local") in names or is_address


def is_traced_stranger(facts: Facts, name: str) -> bool:
    """Whether a name that the user gave is that of a host which is no listed node and never was one."""
    traced = any(t.asked == name and "." in name.rstrip(".") for t in facts.names.traces or ())
    listed = any(is_named(p, name) for p in facts.peers or ())
    known = any(a.name == name and a.seen_ago_s is not None for a in facts.absent)
    return traced and not listed and not known


def is_named(peer: PeerFacts, name: str) -> bool:
    """Tell whether ``name``, as a user writes it, means this peer: its name, host name or address."""
    wanted = name.lower().rstrip(".")
    host = peer.host.lower().rstrip(".")
    return wanted in {peer.name.lower(), host, host.removesuffix(".local"), peer.address or ""} - {""}


def own_cluster(facts: Facts) -> str | None:
    """Return the name of the cluster that this machine publishes, None where it publishes nothing."""
    return next((txt.read(s.txt).cluster for s in facts.own_service or ()), None)


def peers_of_cluster(facts: Facts) -> list[PeerFacts]:
    """Return the peers that matter here: of this machine's cluster, all where it has none.

    What has no address told its cluster before it lost that: the others' dead nodes are no concern of ours.
    """
    cluster = own_cluster(facts)
    return [p for p in facts.peers or () if cluster is None or p.cluster == cluster]


def is_leftover(peer: PeerFacts, facts: Facts) -> bool:
    """Tell whether a peer is the old name of a node that is there under another one."""
    if not peer.id:
        return False
    gone = peer.address is None or peer.alive is False
    if peer.id == facts.node_id:
        return gone or peer.address in own_addresses(facts)
    others = [p for p in facts.peers or () if p.id == peer.id and p.name != peer.name]
    return gone and any(p.alive for p in others)


def resolved(facts: Facts) -> list[PeerFacts]:
    """Return the peers that have an address."""
    return [p for p in peers_of_cluster(facts) if p.address is not None and not is_leftover(p, facts)]


def one_each(peers: Iterable[PeerFacts]) -> list[PeerFacts]:
    """Return one peer for each address, the one that tells an id.

    A machine may announce several services, or linger under two names.
    """
    return list({p.address or p.name: p for p in sorted(peers, key=lambda p: p.id != "")}.values())


def addressed(facts: Facts) -> list[PeerFacts]:
    """Return the peers whose address is of use to torch."""
    return [p for p in resolved(facts) if not has_link_local_only(p)]


def reachable(facts: Facts) -> list[PeerFacts]:
    """Return the peers that are on the link, or answer by way of a router."""
    return [p for p in addressed(facts) if is_on_link(p, facts) or (p.gateway and p.alive)]


def present(facts: Facts) -> list[PeerFacts]:
    """Return the peers that are not known to be silent."""
    return [p for p in reachable(facts) if not is_dead(p)]


def listening(facts: Facts) -> list[PeerFacts]:
    """Return the peers that are there and near enough to hear mDNS."""
    return [p for p in present(facts) if p.alive and is_on_link(p, facts)]


def has_link_local_only(peer: PeerFacts) -> bool:
    """Tell whether all that is known of a peer is an IPv6 address that means nothing off its link."""
    ip = _parsed(peer.address)
    return ip is not None and ip.version == 6 and ip.is_link_local


def is_dead(peer: PeerFacts) -> bool:
    """Tell whether nobody answers at a peer's address, by any way that was open to us."""
    return peer.alive is False or (peer.alive is None and peer.cards == ())


def is_on_link(peer: PeerFacts, facts: Facts) -> bool:
    """Tell whether a peer's address lies in a subnet of the interface on which it was seen."""
    ip = _parsed(peer.address)
    if ip is None:
        return False
    if ip.version == 6 and ip.is_link_local:
        return True
    return any(
        ip in ipaddress.ip_network(f"{a.ip.partition('%')[0]}/{a.prefix}", strict=False)
        for i in facts.interfaces
        if i.link != "loopback" and peer.interface in {None, i.name}
        for a in i.addresses
    )


def own_addresses(facts: Facts) -> set[str]:
    """Return the addresses of this machine, loopback's left out."""
    return {a.ip.partition("%")[0] for i in lan(facts.interfaces) for a in i.addresses}


def lan(interfaces: Iterable[Interface]) -> list[Interface]:
    """Return all interfaces but loopback."""
    return [i for i in interfaces if i.link != "loopback"]


def join(names: Iterable[str]) -> str:
    """Return ``a``, ``a and b``, ``a, b and c``."""
    *most, last = list(names) or [""]
    return f"{', '.join(most)} and {last}" if most else last


def names_of(peers: Iterable[PeerFacts]) -> str:
    """Return the names of peers as words."""
    return join(p.name for p in peers)


def verb(peers: list[PeerFacts], one: str, several: str) -> str:
    """Return the form of a verb that fits so many."""
    return one if len(peers) == 1 else several


def _parsed(address: str | None) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address((address or "").partition("%")[0])
    except ValueError:
        return None
