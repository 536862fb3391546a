"""6xx: the other nodes, and whether they are reached. Each check looks only at peers that passed the step
before, so that one dead peer gives one error and hides nothing about the others."""

from __future__ import annotations

from avahi_gpu.checks.absence import Absence, describe_absent
from avahi_gpu.checks.hosts_line import fix_hosts_line, machine_of
from avahi_gpu.checks.name_servers import dns_wait_s
from avahi_gpu.checks.outcome import Outcome, error, info, ok, skip, unknown, warn
from avahi_gpu.checks.peers import (
    addressed,
    has_link_local_only,
    is_dead,
    is_named,
    is_on_link,
    is_traced_stranger,
    join,
    lan,
    names_of,
    own_addresses,
    present,
    reachable,
    resolved,
    verb,
)
from avahi_gpu.checks.registry import check
from avahi_gpu.files import nsswitch_full
from avahi_gpu.model import AbsentPeer, Facts, PeerFacts

SLOW_LOOKUP_S = (
    1.0  # an mDNS answer from the cache takes milliseconds, from the network a quarter of a second
)
SELF_ASSIGNED = "169.254."  # RFC 3927: what a machine takes where DHCP gives it nothing


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
    # a host name that was traced may be any machine's: AG118 and AG119 say what became of it
    strangers = [name for name in missing if is_traced_stranger(facts, name)]
    missing = [name for name in missing if name not in strangers]
    listed = [f"{p.name} at {p.address}" if p.address else p.name for p in facts.peers]
    if missing:
        words = [_describe_missing(facts, name) for name in missing]
        return error(
            f"{join(missing)} {'is' if len(missing) == 1 else 'are'} not listed: "
            + "; ".join(dict.fromkeys(w.cause for w in words)),
            [w.evidence for w in words] + ([f"listed: {', '.join(listed)}"] if listed else []),
            hint="; ".join(dict.fromkeys(w.hint for w in words)),
        )
    if strangers:
        words = [_describe_missing(facts, name) for name in strangers]
        says = f"{join(strangers)} {'is' if len(strangers) == 1 else 'are'} no listed node"
        return info(says, [w.evidence for w in words])
    if not facts.peers:
        return warn(
            "no other node is seen",
            hint="set up the other machines (avahi-gpu setup); they must be in the same subnet, "
            "and no firewall may drop UDP port 5353",
        )
    return ok(*listed)


def _describe_missing(facts: Facts, name: str) -> Absence:
    return describe_absent(next((a for a in facts.absent if a.name == name), AbsentPeer(name)))


@check(
    "AG603",
    slug="peers-by-name",
    area="cluster",
    says="glibc resolves every node's .local name",
    needs=("AG102", "AG104", "AG203", "AG304", "AG323"),
    follows=("AG109", "AG110", "AG114", "AG116", "AG120"),
)
def peers_by_name(facts: Facts) -> Outcome:
    """What ssh, ping and mpirun use. ``launch`` works without: it takes addresses from Avahi."""
    asked = [(p, p.glibc) for p in present(facts) if p.glibc]
    if not asked:
        return skip("no other node that answers was asked for")
    failed = [(p, lookup) for p, lookup in asked if not lookup.addresses]
    if failed and dns_wait_s(facts) and all(lookup.error == "timeout" for _, lookup in failed):
        return skip("the look-ups did not end in time: see AG108 (dns-answers)")
    if failed and facts.own_name is not None and not facts.own_name.addresses:
        return skip("glibc does not even find this machine's own name: see AG105 (own-name-resolves)")
    widened = nsswitch_full.answer_ipv6(facts.nsswitch.content, machine_of(facts))
    if failed and widened.verdict != "untouched" and all(":" in (p.address or "") for p, _ in failed):
        return error(
            f"{_hosts([p for p, _ in failed])} {verb([p for p, _ in failed], 'has', 'have')} IPv6 alone, "
            "and the mDNS module on the hosts line gives IPv4 addresses only",
            [f"{p.host}: {p.address}" for p, _ in failed],
            fix=fix_hosts_line(facts, widened),
            hint=widened.hint,
        )
    if failed:
        return error(
            f"glibc does not resolve {_hosts([p for p, _ in failed])}, though Avahi does",
            [f"{p.host}: {lookup.error} after {lookup.elapsed_s:.1f} s" for p, lookup in failed],
            hint="see AG105: avahi-gpu doctor --only AG105",
        )
    differing = [
        (p, lookup) for p, lookup in asked if not {p.address, *p.also} & {*lookup.addresses}
    ]  # a node with two interfaces has two addresses, and both ways may pick their own
    others = {q.address: q.name for q in facts.peers or ()} | dict.fromkeys(
        own_addresses(facts), "this machine"
    )
    wrong = [
        (p, lookup) for p, lookup in differing if p.glibc_alive is False or lookup.addresses[0] in others
    ]
    if differing:
        evidence = [
            f"{p.host}: glibc says {', '.join(lookup.addresses)}"
            f"{_whose(p, lookup.addresses[0], others)}, Avahi says {p.address}"
            for p, lookup in differing
        ]
        if wrong:
            return error(
                f"glibc gives a wrong address for {_hosts([p for p, _ in wrong])}",
                evidence,
                hint="look for the name in /etc/hosts, and whether a DNS server answers for .local",
            )
        return warn(
            f"glibc and Avahi give different addresses for {_hosts([p for p, _ in differing])}",
            evidence,
            hint="look for the name in /etc/hosts; a node with two interfaces may be harmless",
        )
    slow = [(p, lookup) for p, lookup in asked if lookup.elapsed_s > SLOW_LOOKUP_S]
    if slow and dns_wait_s(facts):
        return skip(f"looking up {_hosts([p for p, _ in slow])} is slow: see AG108 (dns-answers)")
    if slow:
        return warn(
            f"looking up {_hosts([p for p, _ in slow])} is slow",
            [f"{p.host}: {lookup.elapsed_s:.1f} s" for p, lookup in slow],
            hint="see AG106: avahi-gpu explain AG106",
        )
    return ok(*(f"{p.host} is {', '.join(lookup.addresses)}" for p, lookup in asked))


@check(
    "AG605",
    slug="peers-on-link",
    area="cluster",
    says="every node's address is in a subnet of this machine",
    needs=("AG203", "AG304"),
)
def peers_on_link(facts: Facts) -> Outcome:
    """mDNS crosses subnets that happen to share a wire; torch's connections then do not."""
    peers = addressed(facts)
    if not peers:
        return skip("no other node has an address")
    away = [p for p in peers if not is_on_link(p, facts)]
    if not away:
        return ok(*(f"{p.name}: {p.address}" for p in peers))
    own = [
        f"{i.name}: {a.ip}/{a.prefix}" for i in lan(facts.interfaces) for a in i.addresses if a.family == 4
    ]
    evidence = [f"{p.name}: {p.address}, seen on {p.interface}{_by_router(p)}" for p in away] + own
    lost = [p for p in away if not (p.gateway and p.alive)]
    if not lost:
        return warn(
            f"the address of {names_of(away)} is in none of this machine's subnets, but a router leads there",
            evidence,
            hint="something carries mDNS between the subnets; a job's traffic goes through the router",
        )
    hint = "give all nodes addresses in one subnet; one of them may have a stale static address"
    if len(lost) == len(peers) > 1:
        hint = "all other nodes are elsewhere, so this machine's own address is probably the wrong one"
    if any((p.address or "").startswith(SELF_ASSIGNED) for p in lost):
        hint = "an address 169.254.… is what a machine takes that got none by DHCP: look at its DHCP client"
    return error(f"the address of {names_of(lost)} is in none of this machine's subnets", evidence, hint=hint)


@check(
    "AG608",
    slug="peers-routable",
    area="cluster",
    says="every node has an address beyond IPv6 link-local",
    needs=("AG203", "AG304"),
)
def peers_routable(facts: Facts) -> Outcome:
    """An address fe80::… means nothing without an interface, which torch's addresses do not carry."""
    peers = resolved(facts)
    if not peers:
        return skip("no other node has an address")
    bare = [p for p in peers if has_link_local_only(p)]
    if not bare:
        return ok()
    places = [f"{p.name}: {p.address} on {p.interface}" for p in bare]
    if all(p.alive is False for p in bare):
        return error(
            f"nobody answers at all that Avahi knows of {names_of(bare)}, an IPv6 link-local address",
            places,
            hint="look whether the machine is on, and run avahi-gpu doctor there: Avahi remembers an address "
            "for two minutes",
        )
    return error(
        f"{names_of(bare)} {verb(bare, 'has', 'have')} no address but IPv6 link-local",
        places,
        hint="give the machine an IPv4 address, or a global or ULA IPv6 one: its DHCP may have failed, "
        "or use-ipv4=no is set in its avahi-daemon.conf",
    )


@check(
    "AG609",
    slug="peers-current",
    area="cluster",
    says="the address that Avahi gives for each node is one that it has",
    needs=("AG203", "AG304"),
)
def peers_current(facts: Facts) -> Outcome:
    """Avahi keeps an address for two minutes; a machine that loses it cannot always take it back."""
    peers = reachable(facts)
    if not peers:
        return skip("no other node has an address that could answer")
    moved = [p for p in peers if is_dead(p) and p.elsewhere]
    if not moved:
        return ok()
    bare = [p for p in moved if p.elsewhere.startswith("fe80:")]
    return error(
        f"{names_of(moved)} no longer {verb(moved, 'has', 'have')} the address that Avahi still gives",
        [f"{p.name}: {p.address} is silent, {p.elsewhere} answers" for p in moved],
        hint="the machine lost its IPv4 address, or has another one that has not been heard of here: look at "
        "it with `ip address` there, then restart avahi-daemon there"
        if bare
        else "its address has changed: restart avahi-daemon on this machine, or wait for two minutes",
    )


def _whose(peer: PeerFacts, address: str, others: dict[str | None, str]) -> str:
    if address in others:
        return f" ({others[address]})"
    return " (nobody answers there)" if peer.glibc_alive is False else ""


def _by_router(peer: PeerFacts) -> str:
    return f", by the router {peer.gateway}" if peer.gateway else ""


def _hosts(peers: list[PeerFacts]) -> str:
    return join(p.host for p in peers)
