"""2xx: what this machine's own firewall does with mDNS and with torch's connections."""

from __future__ import annotations

from avahi_gpu.checks import openings
from avahi_gpu.checks.outcome import Outcome, error, info, ok, skip, unknown, unread
from avahi_gpu.checks.registry import check
from avahi_gpu.model import DEFAULT_PORT, Facts, PacketFate, PacketKind

FIREWALL = "network.firewall"
CONNECTIONS: tuple[PacketKind, ...] = ("tcp-in", "tcp-high-in", "tcp-out", "tcp-back")


@check(
    "AG204",
    slug="firewall-mdns-in",
    area="network",
    says="the firewall lets mDNS in",
    needs=("AG201",),
)
def mdns_let_in(facts: Facts) -> Outcome:
    """A host that drops UDP 5353 hears nobody, not even itself, while the others still list it."""
    return _judge_mdns(
        facts,
        "mdns-in",
        "the firewall of this machine drops mDNS (UDP port 5353), so avahi-daemon hears nobody",
    )


@check(
    "AG205",
    slug="firewall-mdns-out",
    area="network",
    says="the firewall lets mDNS out",
    needs=("AG201",),
)
def mdns_let_out(facts: Facts) -> Outcome:
    """A host whose questions and answers never leave is seen by nobody."""
    return _judge_mdns(
        facts,
        "mdns-out",
        "the firewall of this machine keeps mDNS (UDP port 5353) from leaving, so nobody sees this machine",
    )


@check(
    "AG206",
    slug="firewall-tcp",
    area="network",
    says="the firewall lets the other nodes' connections in",
    needs=("AG201",),
)
def connections_let_in(facts: Facts) -> Outcome:
    """gloo and NCCL listen on ports that the kernel chooses: port 29500 alone is not enough."""
    if facts.network.firewall is None:
        return unread(facts, FIREWALL, "the firewall's rules")
    fate = {kind: _fates(facts, kind) for kind in CONNECTIONS}
    low, high = facts.network.firewall.high_ports
    shut = {kind: ways for kind, ways in fate.items() if _all_dropped(ways)}
    barred = {p.because for p in _fates(facts, "mdns-in") if p.outcome == "drop"}
    if shut and all(p.because in barred for ways in shut.values() for p in ways):
        return skip("not asked, because of AG204 (firewall-mdns-in): the same rule drops connections")
    if shut:
        if {"tcp-in", "tcp-high-in"} <= set(shut):
            says = "the firewall of this machine drops the other nodes' connections"
        elif "tcp-high-in" in shut:
            says = (
                f"the firewall of this machine lets connections to port {DEFAULT_PORT} in, and none to the "
                f"ports {low}–{high} that gloo and NCCL listen on"
            )
        elif "tcp-in" in shut:
            says = f"the firewall of this machine drops connections to port {DEFAULT_PORT}"
        else:
            says = "the firewall of this machine drops its own connections to the other nodes"
        dropped = [p for kind in shut for p in fate[kind]]
        inward = [p for p in dropped if p.kind in ("tcp-in", "tcp-high-in")]
        # what lets the LAN in lets its answers in too, where the same chain drops them
        chains = {(p.tool, p.table, p.chain, p.interface, p.family) for p in inward}
        mended = [
            p
            for p in dropped
            if p in inward
            or (p.kind == "tcp-back" and (p.tool, p.table, p.chain, p.interface, p.family) in chains)
        ]
        fix = openings.open_lan(facts, inward) if len(mended) == len(dropped) else None
        return error(says, _reasons(dropped), fix=fix, hint="" if fix else openings.HINT_TCP)
    ways = [p for kind in fate.values() for p in kind]
    open_questions = [p for p in ways if p.outcome == "unknown"]
    if open_questions:
        return unknown(f"whether connections come in depends on {open_questions[0].because}")
    if any(p.outcome == "drop" for p in ways):
        return info("the firewall drops connections on some interfaces", _reasons(ways))
    return ok() if ways else unknown("there is no LAN interface to ask about")


def drops_answers(facts: Facts) -> bool:
    """Whether this machine's own firewall drops what other nodes answer, so that all of them seem silent."""
    return facts.network.firewall is not None and _all_dropped(_fates(facts, "tcp-back"))


def _judge_mdns(facts: Facts, kind: PacketKind, says: str) -> Outcome:
    # who answers just now has been asked, and is heard
    answered = [
        f"{', '.join(e.answered)} answered on {e.interface}"
        for e in facts.network.hearing or ()
        if e.answered
    ]
    if facts.network.firewall is None:
        return ok(*answered) if answered else unread(facts, FIREWALL, "the firewall's rules")
    ways = _fates(facts, kind)
    if _all_dropped(ways):
        fix = openings.open_mdns(facts, ways)
        return error(says, _reasons(ways), fix=fix, hint="" if fix else openings.HINT_MDNS)
    open_questions = [p for p in ways if p.outcome == "unknown"]
    if open_questions and answered:
        return ok(*answered)
    if open_questions:
        return unknown(f"whether mDNS passes depends on {open_questions[0].because}")
    if any(p.outcome == "drop" for p in ways):
        return info("the firewall drops mDNS on some interfaces", _reasons(ways))
    return ok(*(p.interface for p in ways)) if ways else unknown("there is no LAN interface to ask about")


def _fates(facts: Facts, kind: PacketKind) -> list[PacketFate]:
    """Return what becomes of such packets on the LAN: of its cards, where there are any."""
    firewall = facts.network.firewall
    found = [p for p in (firewall.fates if firewall else ()) if p.kind == kind]
    cards = {i.name for i in facts.interfaces if i.link in ("wired", "wireless")}
    return [p for p in found if p.interface in cards] or found


def _all_dropped(ways: list[PacketFate]) -> bool:
    return bool(ways) and all(p.outcome == "drop" for p in ways)


def _reasons(ways: list[PacketFate]) -> list[str]:
    """Return who drops what, each rule once."""
    words = {f"{p.because} ({p.interface})": None for p in ways if p.outcome == "drop"}
    return list(words)[:6]
