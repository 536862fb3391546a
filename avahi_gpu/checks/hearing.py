"""2xx: whether questions get out, answers come back, and avahi-daemon gets them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from avahi_gpu.checks.outcome import Outcome, error, ok, skip, unknown, unread
from avahi_gpu.checks.peers import listening, one_each
from avahi_gpu.checks.registry import check
from avahi_gpu.model import Ear, Facts

PEERS_HINT = "until then name the nodes yourself: avahi-gpu launch --peers ADDRESS,ADDRESS …"

SEVERAL = 2  # of one node alone it cannot be told whether it or the network is silent


@check(
    "AG207",
    slug="hears-others",
    area="network",
    says="the answers of other machines reach avahi-daemon",
    needs=("AG202", "AG304", "AG305"),
    follows=("AG204", "AG205", "AG208", "AG212"),
)
def hears_others(facts: Facts) -> Outcome:
    """Asked and watched just now: deaf, mute and cut off look alike to everybody else."""
    ears = facts.network.hearing
    if ears is None:
        return unread(facts, "network.hearing", "what avahi-daemon hears")
    if not any(i.in_mdns_group for i in facts.interfaces):
        return skip("avahi-daemon listens on no interface")
    heard = [e for e in ears if e.answered or (e.remembered and not set(e.replied or ()) - set(e.remembered))]
    if heard:
        return ok(*(_tell_heard(e) for e in heard))
    for judge in (_deaf, _mute, _cut_off):
        outcomes = [outcome for e in ears if (outcome := judge(e, facts)) is not None]
        if outcomes:
            return outcomes[0]
    if (outcome := _all_silent(ears, facts)) is not None:
        return outcome
    if any(e.hardly_asked for e in ears):
        return unknown(
            "avahi-daemon asked too seldom to tell who hears whom", hint="ask again in ten seconds"
        )
    return skip("no other machine is known that could be asked")


def _deaf(ear: Ear, facts: Facts) -> Outcome | None:
    if not ear.replied:
        return None
    return error(
        "mDNS answers arrive at this machine, but avahi-daemon does not get them",
        [f"{', '.join(ear.replied)} answered on {ear.interface}: seen at the card, not by avahi-daemon"],
        hint="a firewall on this machine, or the kernel's reverse path filter, drops them in between",
    )


def _mute(ear: Ear, facts: Facts) -> Outcome | None:
    if ear.sent is not False or not set(ear.asked) - set(ear.remembered):
        return None
    return error(
        f"avahi-daemon's questions do not leave {ear.interface}",
        [f"asked for {', '.join(ear.asked)}: no packet was seen at the card"],
        hint="a firewall on this machine drops what goes out, or there is no route for 224.0.0.251",
    )


def _cut_off(ear: Ear, facts: Facts) -> Outcome | None:
    if not ear.alive:
        return None
    names = {p.address: p.name for p in facts.peers or ()}
    silent = [f"{names[a]} ({a})" if a in names else a for a in ear.alive]
    told = [f"asked on {ear.interface}: {', '.join(silent)}; no answer, though each answers otherwise"]
    if ear.sent is None:
        return error(
            f"no mDNS answer comes from {' and '.join(silent)}, though alive",
            told,
            hint="a firewall on this machine, or a switch or access point that does not pass multicast on; "
            "run this as root to tell which",
        )
    others = [a for a in ear.seen or () if a not in ear.alive]
    if others:
        return error(
            "this machine's mDNS questions are not heard by the other nodes",
            [*told, f"mDNS of {', '.join(others)} does arrive"],
            hint=f"the network passes multicast in one direction only; {PEERS_HINT}",
        )
    if len(ear.nodes) == 1:
        says = f"{silent[0]} does not answer mDNS, though it is there"
        hint = "its firewall or avahi-daemon (run avahi-gpu doctor there), or a switch that drops multicast"
        return error(says, told, hint=f"{hint}; {PEERS_HINT}")
    return error(
        "the network passes no multicast on, so nodes are lost from sight within two minutes",
        [*told, f"the questions left {ear.interface}, and no mDNS of anybody came in"],
        hint="on the switch or access point: switch IGMP snooping off, or an IGMP querier on; "
        f"no client isolation, no multicast filter; {PEERS_HINT}",
    )


def _all_silent(ears: Sequence[Ear], facts: Facts) -> Outcome | None:
    """Judge by the nodes where the ears cannot tell, as on a slow machine: each was asked three times.

    That none of several avahi-daemons runs is less likely than one network that passes nothing on.
    """
    peers = one_each(listening(facts))
    if len(peers) < SEVERAL or not all(p.speaks is False for p in peers):
        return None
    card = peers[0].interface or "the LAN"
    addresses = tuple(p.address for p in peers if p.address is not None and p.interface == peers[0].interface)
    ear = next((e for e in ears if e.interface == card), Ear(card, addresses))
    # who was asked without an answer proves that the questions left, and that the card was watched
    return _cut_off(replace(ear, nodes=addresses, alive=addresses, sent=True), facts)


def _tell_heard(ear: Ear) -> str:
    if ear.answered:
        return f"{', '.join(ear.answered)} answered on {ear.interface}"
    return f"{', '.join(ear.remembered)} was heard on {ear.interface} within the last two minutes"
