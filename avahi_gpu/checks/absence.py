"""Why a node is not listed, from what was learnt of it by other ways; and who was there before and is not."""

from __future__ import annotations

from dataclasses import dataclass

from avahi_gpu.checks.outcome import Outcome, error, info, ok, skip, warn
from avahi_gpu.checks.peers import join
from avahi_gpu.checks.registry import check
from avahi_gpu.model import AbsentPeer, Facts

SEEN = {"mdns": "by mDNS", "glibc": "by glibc", "memory": "to us", "given": "from you"}


@dataclass(frozen=True)
class Absence:
    """One absent node in words."""

    cause: str
    evidence: str
    hint: str


@check(
    "AG617",
    slug="peers-kept",
    area="cluster",
    says="nobody who was listed today is missing",
    needs=("AG203", "AG304"),
)
def peers_kept(facts: Facts) -> Outcome:
    """A switch that drops multicast lets nodes vanish two minutes after they were seen, one by one or all.

    The doctor keeps who answered since this machine's start, and asks at their old addresses.
    """
    if facts.peers is None:
        return skip("nobody looked for other nodes")
    gone = [a for a in facts.absent if a.seen_ago_s is not None and a.name not in facts.wanted_peers]
    there = [a for a in gone if a.alive]
    words = [describe_absent(a) for a in there or gone]
    evidence = [w.evidence for w in words]
    if there and not facts.peers and not any(a.source == "mdns" for a in there):
        return error(
            f"{join(a.name for a in there)}, seen before, {'is' if len(there) == 1 else 'are'} on, "
            "but nobody is heard by mDNS any more",
            evidence,
            hint="a switch or access point drops multicast (IGMP snooping without a querier is the usual "
            "cause), or avahi-daemon runs on none of them",
        )
    if there:
        return warn(
            f"{join(a.name for a in there)}, seen before, {'is' if len(there) == 1 else 'are'} on, "
            "but not listed any more",
            evidence,
            hint=words[0].hint,
        )
    if len(gone) > 1 and not facts.peers and not facts.wanted_peers:
        return warn(
            f"none of those that were seen before is there: {join(a.name for a in gone)}",
            evidence,
            hint="all of them are off, or this machine is cut off: look at its cable, switch port and VLAN",
        )
    if gone:
        return info(f"{join(a.name for a in gone)}, seen before, {_has(gone)} gone", evidence)
    return ok() if facts.peers else skip("nobody was seen before")


def describe_absent(peer: AbsentPeer) -> Absence:
    """Return the likeliest cause, what shows it, and what to do."""
    if not peer.address:
        return Absence(
            "nobody answers for that name",
            f"{peer.name}: no address by mDNS, nor by any other way",
            "run avahi-gpu doctor there: that it is on, set up (avahi-gpu setup) and in the same subnet",
        )
    known = f"{peer.name}: {peer.address}, known {SEEN[peer.source or 'given']}{_ago(peer.seen_ago_s)},"
    if peer.alive and peer.source == "mdns":
        return Absence(
            "it is on and its Avahi answers, but it does not announce itself as a node",
            f"{known} answers",
            "run avahi-gpu doctor there: it was not set up (avahi-gpu setup), or its service file is broken",
        )
    if peer.alive:
        return Absence(
            "it is on, but is not heard by mDNS",
            f"{known} answers; for its .local name nobody does",
            "run avahi-gpu doctor there: avahi-daemon does not run, or a firewall or switch between the two "
            "drops multicast",
        )
    if peer.cards:
        return Absence(
            "it is on, but its firewall drops everything",
            f"{known} answers ARP, and neither TCP nor ping",
            "open its firewall to the other nodes: UDP port 5353, and all TCP ports",
        )
    if peer.cards == ():
        return Absence(
            "no machine is at its address: off, unplugged or cut off",
            f"{known} answers neither TCP, nor ping, nor ARP",
            "look at the machine and its cable",
        )
    return Absence(
        "it does not answer",
        f"{known} does not answer",
        "look at the machine and its cable, then at its firewall",
    )


def _ago(seconds: float | None) -> str:
    if seconds is None:
        return ""
    minutes = int(seconds // 60)
    if minutes < 2:
        return " from a minute ago"
    return f" from {minutes // 60} hours ago" if minutes >= 120 else f" from {minutes} minutes ago"


def _has(peers: list[AbsentPeer]) -> str:
    return "has" if len(peers) == 1 else "have"
