"""6xx: the other nodes. Each check looks only at peers that passed the step before, so that one dead peer
gives one error and hides nothing about the others."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from dataclasses import replace

from avahi_gpu.checks.name_servers import dns_wait_s
from avahi_gpu.checks.outcome import Outcome, error, info, ok, skip, unknown, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.model import Facts, Interface, PeerFacts

SLOW_LOOKUP_S = (
    1.0  # an mDNS answer from the cache takes milliseconds, from the network a quarter of a second
)


@check(
    "AG601",
    slug="peers-listed",
    area="cluster",
    says="the other nodes are listed",
    needs=("AG203", "AG304"),
)
def peers_listed(facts: Facts) -> Outcome:
    """Avahi lists their ``_torch._tcp``; a named peer that is not listed is an error."""
    if facts.peers is None:
        return unknown("nobody looked for other nodes")
    missing = [name for name in facts.wanted_peers if not any(is_named(p, name) for p in facts.peers)]
    listed = [f"{p.name} at {p.address}" if p.address else p.name for p in facts.peers]
    if missing:
        return error(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not listed",
            [f"listed: {', '.join(listed)}" if listed else "no other node is listed"],
            hint="run avahi-gpu doctor there: that it is on, set up (avahi-gpu setup) and in the same subnet",
        )
    if not facts.peers:
        return warn(
            "no other node is seen",
            hint="set up the other machines (avahi-gpu setup); they must be in the same subnet, "
            "and no firewall may drop UDP port 5353",
        )
    return ok(*listed)


@check(
    "AG602",
    slug="peers-resolved",
    area="cluster",
    says="Avahi resolves every listed node",
    needs=("AG203", "AG304"),
)
def peers_resolved(facts: Facts) -> Outcome:
    """A node that left without goodbye stays listed for up to 75 minutes (RFC 6762 section 10)."""
    peers = facts.peers or ()
    lost = [p for p in peers if p.address is None]
    if lost:
        return error(
            f"{_names(lost)} {_is(lost)} listed, but nobody answers for the name",
            [f"{p.name}: {p.resolve_error or 'no address'}" for p in lost],
            hint="the machine is probably off or unplugged: who vanished stays listed for up to 75 minutes",
        )
    return ok(*(f"{p.host} is {p.address}" for p in peers)) if peers else skip("no other node is seen")


@check(
    "AG603",
    slug="peers-by-name",
    area="cluster",
    says="glibc resolves every node's .local name",
    needs=("AG102", "AG104", "AG203", "AG304", "AG323"),
    follows=("AG109", "AG110", "AG114"),
)
def peers_by_name(facts: Facts) -> Outcome:
    """What ssh, ping and mpirun use. ``launch`` works without: it takes addresses from Avahi."""
    asked = [p for p in facts.peers or () if p.address is not None and p.alive is not False and p.glibc]
    if not asked:
        return skip("no other node that answers was asked for")
    failed = [(p, p.glibc) for p in asked if p.glibc and not p.glibc.addresses]
    if failed and dns_wait_s(facts) and all(lookup.error == "timeout" for _, lookup in failed):
        return skip("the look-ups did not end in time: see AG108 (dns-answers)")
    if failed:
        return error(
            f"glibc does not resolve {_hosts([p for p, _ in failed])}, though Avahi does",
            [f"{p.host}: {lookup.error} after {lookup.elapsed_s:.1f} s" for p, lookup in failed],
            hint="see AG105: avahi-gpu doctor --only AG105",
        )
    wrong = [(p, p.glibc) for p in asked if p.glibc and p.address not in p.glibc.addresses]
    if wrong:
        return warn(
            f"glibc and Avahi give different addresses for {_hosts([p for p, _ in wrong])}",
            [
                f"{p.host}: glibc says {', '.join(lookup.addresses)}, Avahi says {p.address}"
                for p, lookup in wrong
            ],
            hint="look for the name in /etc/hosts; a node with two interfaces may be harmless",
        )
    slow = [(p, p.glibc) for p in asked if p.glibc and p.glibc.elapsed_s > SLOW_LOOKUP_S]
    if slow and dns_wait_s(facts):
        return skip(f"looking up {_hosts([p for p, _ in slow])} is slow: see AG108 (dns-answers)")
    if slow:
        return warn(
            f"looking up {_hosts([p for p, _ in slow])} is slow",
            [f"{p.host}: {lookup.elapsed_s:.1f} s" for p, lookup in slow],
            hint="see AG106: avahi-gpu explain AG106",
        )
    return ok(*(f"{p.host} is {', '.join(p.glibc.addresses)}" for p in asked if p.glibc))


@check(
    "AG604",
    slug="peers-alive",
    area="cluster",
    says="every listed node answers",
    needs=("AG203", "AG304"),
)
def peers_alive(facts: Facts) -> Outcome:
    """Answering is a TCP connection, accepted or refused, or an ICMP echo."""
    resolved = [p for p in facts.peers or () if p.address is not None]
    if not resolved:
        return skip("no other node has an address")
    dead = [p for p in resolved if p.alive is False]
    if dead:
        return error(
            f"{_names(dead)} {_is(dead)} listed, but {'does' if len(dead) == 1 else 'do'} not answer",
            [f"{p.name}: no answer from {p.address} on {p.interface or 'any interface'}" for p in dead],
            hint="the machine is off, its cable is out, or a firewall there drops everything; "
            "Avahi's list remembers nodes that have gone",
        )
    if all(p.alive is None for p in resolved):
        return unknown("nobody could test whether the nodes answer")
    return ok(*(f"{p.name} answers" for p in resolved if p.alive))


@check(
    "AG605",
    slug="peers-on-link",
    area="cluster",
    says="every node's address is in a subnet of this machine",
    needs=("AG203", "AG304"),
)
def peers_on_link(facts: Facts) -> Outcome:
    """mDNS crosses subnets that happen to share a wire; torch's connections then do not."""
    resolved = [p for p in facts.peers or () if p.address is not None]
    if not resolved:
        return skip("no other node has an address")
    away = [p for p in resolved if p.address and not _on_link(p.address, p.interface, facts.interfaces)]
    if away:
        return error(
            f"the address of {_names(away)} is in none of this machine's subnets",
            [f"{p.name}: {p.address}, seen on {p.interface}" for p in away]
            + [f"{i.name}: {i.ipv4}" for i in facts.interfaces if i.ipv4 and i.link != "loopback"],
            hint="give all nodes addresses in one subnet; one of them may have a stale static address",
        )
    return ok(*(f"{p.name}: {p.address}" for p in resolved))


@check(
    "AG606",
    slug="unique-ids",
    area="cluster",
    says="every node has an id of its own",
    needs=("AG203", "AG304", "AG306"),
)
def unique_ids(facts: Facts) -> Outcome:
    """Cloned disks share /etc/machine-id: harmless to jobs, but their nodes are hard to tell apart."""
    owners: dict[str, set[str]] = defaultdict(set)
    for peer in facts.peers or ():
        if peer.id:
            owners[peer.id].add(peer.name)
    if facts.node_id in owners:
        owners[facts.node_id].add(f"{facts.daemon.host_name or facts.hostname} (this machine)")
    shared = {id: sorted(names) for id, names in owners.items() if len(names) > 1}
    if shared:
        return warn(
            f"{' and '.join(sorted(n for names in shared.values() for n in names))} have the same id",
            [f"{id}: {', '.join(names)}" for id, names in sorted(shared.items())],
            hint="on all but one, as root: rm /etc/machine-id && systemd-machine-id-setup, "
            "then avahi-gpu setup (cloned disks share the id)",
        )
    return ok() if owners else skip("no other node told its id")


@check(
    "AG607",
    slug="same-torch",
    area="cluster",
    says="all nodes run the same torch",
    needs=("AG203", "AG304"),
)
def same_torch(facts: Facts) -> Outcome:
    """``launch`` refuses nodes whose torch differs in major or minor version."""
    own = facts.versions.torch
    told = {p.name: p.versions.torch for p in facts.peers or () if p.versions.torch}
    if not own or not told:
        return skip("fewer than two nodes told which torch they have")
    lines = [f"this machine: {own}"] + [f"{name}: {version}" for name, version in sorted(told.items())]
    differ = sorted(name for name, version in told.items() if _minor(version) != _minor(own))
    if differ:
        return warn(
            f"{' and '.join(differ)} {'has' if len(differ) == 1 else 'have'} another torch than this machine",
            lines,
            hint="launch refuses to mix them: install the same version on all nodes, "
            "then run avahi-gpu setup there again",
        )
    if any(version != own for version in told.values()):
        return info("the nodes' torch differs in its last number only", lines)
    return ok(*lines)


def restrict_peers(facts: Facts, names: tuple[str, ...]) -> Facts:
    """Return the facts with the peers of these names alone, which must then be there; none named: all."""
    if not names:
        return facts
    peers = (
        None if facts.peers is None else tuple(p for p in facts.peers if any(is_named(p, n) for n in names))
    )
    return replace(facts, peers=peers, wanted_peers=names)


def is_named(peer: PeerFacts, name: str) -> bool:
    """Tell whether ``name``, as a user writes it, means this peer: its name, host name or address."""
    wanted = name.lower().rstrip(".")
    host = peer.host.lower().rstrip(".")
    return wanted in {peer.name.lower(), host, host.removesuffix(".local"), peer.address or ""} - {""}


def _on_link(address: str, interface: str | None, interfaces: tuple[Interface, ...]) -> bool:
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if ip.is_link_local:
        return True
    return any(
        ip in ipaddress.ip_network(f"{a.ip.partition('%')[0]}/{a.prefix}", strict=False)
        for i in interfaces
        if i.link != "loopback" and (interface is None or i.name == interface)
        for a in i.addresses
    )


def _minor(version: str) -> tuple[str, ...]:
    return tuple(version.split(".")[:2])


def _names(peers: list[PeerFacts]) -> str:
    return " and ".join(p.name for p in peers)


def _hosts(peers: list[PeerFacts]) -> str:
    return " and ".join(p.host for p in peers)


def _is(peers: list[PeerFacts]) -> str:
    return "is" if len(peers) == 1 else "are"
