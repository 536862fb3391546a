"""6xx: why a node is silent: off, behind a firewall, without avahi-daemon, or its records never come."""

from __future__ import annotations

from avahi_gpu.checks.firewall import drops_answers
from avahi_gpu.checks.outcome import Outcome, error, ok, skip, unknown
from avahi_gpu.checks.peers import (
    is_dead,
    is_leftover,
    listening,
    names_of,
    peers_of_cluster,
    reachable,
    verb,
)
from avahi_gpu.checks.registry import check
from avahi_gpu.model import Facts, PeerFacts


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
    if dead and drops_answers(facts):
        return skip("not asked, because of AG206 (firewall-tcp): it drops what they answer")
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
    "AG618",
    slug="peers-speak",
    area="cluster",
    says="the avahi-daemon of every listed node answers now",
    needs=("AG203", "AG304"),
)
def peers_speak(facts: Facts) -> Outcome:
    """A node stays listed, and resolves for two minutes, after its avahi-daemon was killed or has hung."""
    peers = listening(facts)
    silent = [p for p in peers if p.speaks is False]
    if silent and len(silent) < len(peers) and not any(p.speaks for p in peers):
        return unknown(
            f"{names_of(silent)} did not answer mDNS, and the others could not be asked often enough "
            "to tell whether the network or the node is at fault",
            hint="ask again in ten seconds",
        )
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
