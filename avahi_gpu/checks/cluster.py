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
    is_leftover,
    is_named,
    is_on_link,
    is_traced_stranger,
    join,
    lan,
    names_of,
    own_addresses,
    peers_of_cluster,
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
            [w.evidence for w in words]
            + [f"listed: {', '.join(listed)}" if listed else "nobody else of those named is listed"],
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
    "AG602",
    slug="peers-resolved",
    area="cluster",
    says="Avahi resolves every listed node",
    needs=("AG203", "AG304"),
)
def peers_resolved(facts: Facts) -> Outcome:
    """A node that left without goodbye stays listed for up to 75 minutes (RFC 6762 section 10)."""
    peers = [p for p in peers_of_cluster(facts) if not is_leftover(p, facts)]
    lost = [p for p in peers if p.address is None]
    if not lost:
        return ok(*(f"{p.host} is {p.address}" for p in peers)) if peers else skip("no other node is seen")
    too_large = [p for p in lost if p.txt_missing]
    homeless = [p for p in lost if p.speaks and p not in too_large]
    silent = [p for p in lost if p.alive and p not in too_large and p not in homeless]
    gone = [p for p in lost if p not in too_large and p not in silent and p not in homeless]
    says, hints = [], []
    if too_large:
        says.append(
            f"{names_of(too_large)} {verb(too_large, 'is', 'are')} on, but the TXT record of "
            f"{verb(too_large, 'its', 'their')} service never arrives: it is too large for a packet"
        )
        hints.append("run there: avahi-gpu setup, which writes a service file whose records fit")
    if homeless:
        says.append(
            f"the avahi-daemon of {names_of(homeless)} answers, "
            f"but publishes no address of {verb(homeless, 'its', 'their')} host"
        )
        hints.append("set publish-addresses=yes in its avahi-daemon.conf, and restart avahi-daemon there")
    if silent:
        says.append(
            f"{names_of(silent)} {verb(silent, 'is', 'are')} on, "
            f"but nobody answers for {verb(silent, 'its', 'their')} service"
        )
        hints.append(
            "run avahi-gpu doctor there: its avahi-daemon has ended, hangs, or keeps the service back"
        )
    if gone:
        says.append(
            f"{names_of(gone)} {verb(gone, 'is', 'are')} listed, but nobody answers for the name: "
            "switched off, unplugged or cut off, or its avahi-daemon has ended"
        )
        hints.append("who vanished without goodbye stays listed for up to 75 minutes; nothing waits for it")
    return error("; ".join(says), [_lost(p) for p in lost], hint="; ".join(hints))


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
    "AG604",
    slug="peers-alive",
    area="cluster",
    says="every listed node answers",
    needs=("AG203", "AG304"),
)
def peers_alive(facts: Facts) -> Outcome:
    """Answering is a TCP connection, accepted or refused, or an ICMP echo.

    Who does not, but has a network card that answers ARP, is there behind a firewall; who has none is not.
    """
    peers = [p for p in reachable(facts) if not p.elsewhere]
    if not peers:
        return skip("no other node has an address that could answer")
    dead = [p for p in peers if is_dead(p)]
    if not dead:
        if all(p.alive is None for p in peers):
            return unknown("nobody could test whether the nodes answer")
        return ok(*(f"{p.name} answers" for p in peers if p.alive))
    says, hints = [], []
    off = [p for p in dead if p.cards == ()]
    walled = [p for p in dead if p.cards]
    unclear = [p for p in dead if p.cards is None]
    if off and len(off) == len(peers) > 1:
        says.append(
            f"no machine is at the address of any listed node ({names_of(off)}): "
            "this machine is cut off from them, or all are off"
        )
        hints.append(
            "look at this machine's own cable, switch port and VLAN first; "
            "Avahi remembers the addresses of nodes for two minutes"
        )
    elif off:
        says.append(
            f"{names_of(off)} {verb(off, 'is', 'are')} listed, but no machine is at "
            f"{verb(off, 'its', 'their')} address any more: off, unplugged or cut off"
        )
        hints.append(
            "look at the machine and its cable; Avahi remembers the address of one that left without goodbye "
            "for two minutes"
        )
    if walled:
        says.append(
            f"{names_of(walled)} {verb(walled, 'is', 'are')} on, but "
            f"{verb(walled, 'does', 'do')} not answer: a firewall there drops everything"
        )
        hints.append("open its firewall to the other nodes, all TCP ports: torch uses many")
    if unclear:
        says.append(
            f"{names_of(unclear)} {verb(unclear, 'is', 'are')} listed, "
            f"but {verb(unclear, 'does', 'do')} not answer"
        )
        hints.append(
            "the machine is off, its cable is out, or a firewall there drops everything; "
            "as root the doctor tells which"
        )
    return error("; ".join(says), [_silence(p) for p in dead], hint="; ".join(hints))


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
    return error(
        f"{names_of(bare)} {verb(bare, 'has', 'have')} no address but IPv6 link-local",
        [f"{p.name}: {p.address} on {p.interface}" for p in bare],
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


@check(
    "AG618",
    slug="peers-speak",
    area="cluster",
    says="the avahi-daemon of every listed node answers now",
    needs=("AG203", "AG304"),
)
def peers_speak(facts: Facts) -> Outcome:
    """A node stays listed, and resolves for two minutes, after its avahi-daemon was killed or has hung."""
    peers = [p for p in present(facts) if p.alive and is_on_link(p, facts)]
    silent = [p for p in peers if p.speaks is False]
    if silent:
        return error(
            f"{names_of(silent)} {verb(silent, 'is', 'are')} on, but {verb(silent, 'its', 'their')} "
            "avahi-daemon is silent: the list remembers it",
            [f"{p.name}: {p.address} answers, but no mDNS question" for p in silent],
            hint="run avahi-gpu doctor there: avahi-daemon has ended or hangs, or the firewall drops UDP "
            "port 5353; if nothing answers there at all but ping, the whole machine hangs",
        )
    if not any(p.speaks for p in peers):
        return (
            skip("this needs root: whether the nodes' avahi-daemons answer now")
            if peers
            else skip("no other node answers")
        )
    return ok(*(f"{p.name} answers mDNS" for p in peers if p.speaks))


def _lost(peer: PeerFacts) -> str:
    if peer.txt_missing:
        return f"{peer.name}: host, port and address are answered for, TXT is not"
    if peer.host_address:
        word = "answers" if peer.alive else "does not answer"
        return f"{peer.name}: {peer.resolve_error}; {peer.host_address}, known of its host, {word}"
    return f"{peer.name}: {peer.resolve_error or 'no address'}"


def _silence(peer: PeerFacts) -> str:
    what = f"{peer.name}: no answer from {peer.address} on {peer.interface or 'any interface'}"
    way = "neighbour discovery" if ":" in (peer.address or "") else "ARP"
    if peer.cards:
        return f"{what} to TCP and ping, but its network card ({', '.join(peer.cards)}) answers {way}"
    if peer.cards == ():
        # a firewall for IPv6 may stop neighbour discovery too; none for IPv4 sees ARP
        return f"{what} to TCP, ping and {way}{', which no firewall stops' if way == 'ARP' else ''}"
    return what


def _whose(peer: PeerFacts, address: str, others: dict[str | None, str]) -> str:
    if address in others:
        return f" ({others[address]})"
    return " (nobody answers there)" if peer.glibc_alive is False else ""


def _by_router(peer: PeerFacts) -> str:
    return f", by the router {peer.gateway}" if peer.gateway else ""


def _hosts(peers: list[PeerFacts]) -> str:
    return join(p.host for p in peers)
