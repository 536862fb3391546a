"""2xx: what this machine's own firewall does with mDNS and with torch's connections."""

from __future__ import annotations

from avahi_gpu.checks import openings
from avahi_gpu.checks.boot_rules import describe_wall, keep_open
from avahi_gpu.checks.outcome import Outcome, error, info, ok, skip, unknown, unread, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.model import DEFAULT_PORT, Facts, Fix, PacketFate, PacketKind, Wall

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
        fix = openings.open_walls(facts, ("jobs",)) if len(mended) == len(dropped) else None
        return error(says, _reasons(dropped), fix=fix, hint=openings.BY_HAND if fix else openings.HINT_TCP)
    ways = [p for kind in fate.values() for p in kind]
    open_questions = [p for p in ways if p.outcome == "unknown"]
    if open_questions:
        return unknown(f"whether connections come in depends on {open_questions[0].because}")
    if any(p.outcome == "drop" for p in ways):
        return info("the firewall drops connections on some interfaces", _reasons(ways))
    return ok() if ways else unknown("there is no LAN interface to ask about")


@check(
    "AG215",
    slug="firewall-lan",
    area="network",
    says="the firewall lets the LAN's machines in",
    needs=("AG201",),
    setup=True,
)
def lan_let_in(facts: Facts) -> Outcome:
    """What jobs need of every network of the LAN, over IPv4 and IPv6, and of each machine in it.

    That nothing at all comes in is an error of its own, AG204 to AG206. Only setup --firewall opens for all.
    """
    firewall = facts.network.firewall
    if firewall is None:
        outcome = unread(facts, FIREWALL, "the firewall's rules")
        if facts.opens_firewall and facts.is_root:
            return error(outcome.says, hint="the tool that shows them has to work: nft list ruleset")
        return outcome
    shut = [w for w in firewall.walls if w.shut and not w.public]
    if not facts.opens_firewall:
        causes = {"AG204": mdns_let_in, "AG205": mdns_let_out, "AG206": connections_let_in}
        for id, judge in causes.items():
            if judge(facts).verdict == "error":
                return skip(f"not asked, because of {id}: it is worse")
        if shut:
            says = "the firewall lets only a part of what jobs need in from the LAN"
            return info(says, _walls(shut), hint=openings.BY_HAND)
        return ok()
    if not shut:
        if firewall.unclear:
            return unknown(f"whether the LAN's machines come in depends on {firewall.unclear[0]}")
        return ok()
    fix = openings.open_walls(facts)
    hint = next((_advise(w) for w in shut if not openings.can_open(firewall, w)), "")
    return error("the firewall keeps the LAN's machines out", _walls(shut), fix=fix, hint=hint)


@check(
    "AG216",
    slug="firewall-lasts",
    area="network",
    says="what lets the LAN in outlasts the next boot",
    needs=("AG201",),
    setup=True,
)
def opening_lasts(facts: Facts) -> Outcome:
    """What nft or iptables was told ends with the next boot; ufw and firewalld keep files of their own."""
    firewall = facts.network.firewall
    if firewall is None:
        return unread(facts, FIREWALL, "the firewall's rules")
    opened = [
        w
        for w in firewall.walls
        if not w.public and not openings.keeper_of(firewall, w) and (facts.opens_firewall or not w.shut)
    ]
    fix, unknown_walls = keep_open(firewall, opened)
    if fix is not None:
        hint = "" if facts.opens_firewall else openings.BY_HAND
        fix = fix if facts.opens_firewall else None
        return warn("what lets the LAN in ends with the next boot", _walls(opened), fix=fix, hint=hint)
    if unknown_walls:
        return warn(
            "what lets the LAN in ends with the next boot: which file these rules come from is not known",
            _walls(unknown_walls),
            hint="put it there too; the rules are those whose comment begins with avahi-gpu",
        )
    return ok()


@check(
    "AG217",
    slug="firewall-private-lan",
    area="network",
    says="the firewall is opened for private networks alone",
    needs=("AG201",),
    setup=True,
)
def lan_is_private(facts: Facts) -> Outcome:
    """Whom a public prefix lets in nobody knows from here: such a network is opened by its owner, by hand."""
    firewall = facts.network.firewall
    if firewall is None:
        return unread(facts, FIREWALL, "the firewall's rules")
    public = [w for w in firewall.walls if w.public]
    if not public:
        return ok()
    networks = list(dict.fromkeys(f"{w.network} on {w.interface}" for w in public))
    says = f"{', '.join(networks)} is a public network, and stays shut"
    private = [w for w in firewall.walls if not w.public and w.what == "jobs"]
    if facts.opens_firewall and not private:
        return error(
            f"{', '.join(networks)} is not a private network: its firewall is not opened by this",
            _walls(public),
            fix=Fix("open it by hand", commands=openings.lines_by_hand(firewall, public)),
            hint="be certain that only machines that you trust are in it",
        )
    return info(says, _walls(public))


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
        fix = openings.open_walls(facts, ("mdns",))
        return error(says, _reasons(ways), fix=fix, hint=openings.BY_HAND if fix else openings.HINT_MDNS)
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


def _advise(wall: Wall) -> str:
    """Return what somebody has to do by hand about a wall that no rule of ours would surely open."""
    what = openings.HINT_MDNS if wall.what == "mdns" else openings.HINT_TCP
    others = f", where {wall.others} would no longer count" if wall.others else ""
    return f"{what}; how is not certain in the chain {wall.chain}{others}"


def _walls(walls: list[Wall]) -> list[str]:
    """Return what keeps whom out, each once."""
    return list(dict.fromkeys(map(describe_wall, walls)))[:6]
