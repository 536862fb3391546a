"""What a measurement means: the slowest link, and which links or nodes give less than they should. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from avahi_gpu.gauge.figures import median, slowest
from avahi_gpu.model.gauge import GaugedLink, GaugedNode, Judgement, Measurement
from avahi_gpu.model.units import show_rate, show_speed

FAR_BELOW = 0.6  # of what the other links give, or of the card's speed: TCP's own overhead takes 0.06
FAST_MBIT = 10_000  # cards from here on are not always filled by one stream of one process …
FAR_BELOW_FAST = 0.3  # … so that less of them is no fault yet
ONE_WAY = 0.6  # of the way back: the two ways of a good cable are equal
RESENT_MUCH = 0.01  # of all segments; a good cable loses one in a million, a full switch one in a thousand
ROUND_TRIP_LONG_S = 0.005  # of wired nodes on one switch: they take a tenth of a millisecond
VIRTUAL_SURPLUS = 1.05  # a card that gives more than its speed is none: the speed of veth is made up


def judge(measured: Measurement) -> Judgement:
    """Return what is to be said."""
    links, nodes = measured.links, measured.nodes
    slow = slowest(links)
    if slow is None:
        return Judgement()
    behind = [link for link in links if is_behind(link, measured)]
    below = [link for link in links if link not in behind and is_below_cards(link, nodes)]
    blamed, rest = blame(behind, measured)
    troubles = [describe_node(node, behind, measured) for node in blamed]
    if below and len(below) == len(links) - len(behind) and len(links) > 2:
        troubles.append(describe_all(below, nodes))
    else:
        rest += below
    troubles += [describe_pair(pair, measured) for pair in pairs_of(rest)]
    troubles += [told for node in nodes if (told := describe_card(node, nodes))]
    troubles += describe_delay(measured)
    return Judgement(slow, tuple(behind + below), summarize(slow, measured), tuple(troubles))


def card_bits(link: GaugedLink, nodes: Sequence[GaugedNode]) -> float | None:
    """Return what the slower card of the two gives at most, in bits per second; None where it is not told."""
    speeds = (nodes[link.source].speed_mbit, nodes[link.target].speed_mbit)
    known = [speed for speed in speeds if speed]
    if len(known) < 2:
        return None
    most = min(known) * 1e6
    return None if (link.bits_per_s or 0.0) > most * VIRTUAL_SURPLUS else most


def card_share(link: GaugedLink, nodes: Sequence[GaugedNode]) -> float | None:
    """Return the rate as a share of what the cards give, None where that is not known."""
    most = card_bits(link, nodes)
    return None if most is None or link.bits_per_s is None else link.bits_per_s / most


def is_below_cards(link: GaugedLink, nodes: Sequence[GaugedNode]) -> bool:
    """Whether a link gives far less than its cards."""
    most, share = card_bits(link, nodes), card_share(link, nodes)
    if most is None or share is None:
        return False
    return share < (FAR_BELOW_FAST if most >= FAST_MBIT * 1e6 else FAR_BELOW)


def is_behind(link: GaugedLink, measured: Measurement) -> bool:
    """Whether a link failed, or gives far less than the others and its cards do not explain that."""
    if not link.bits_per_s:
        return True
    # the best is compared with, not the middle one: one bad cable of three slows four of six links
    best = max((x.bits_per_s for x in measured.links if x is not link and x.bits_per_s), default=0.0)
    share = card_share(link, measured.nodes)
    explained = share is not None and share >= FAR_BELOW
    return link.bits_per_s < FAR_BELOW * best and not explained


def blame(weak: Sequence[GaugedLink], measured: Measurement) -> tuple[list[int], list[GaugedLink]]:
    """Return the nodes whose own cable explains weak links, and the links that no node explains.

    A node's cable is to blame where its links with all others are weak, one way or both, and with two others
    at least. The node with the most weak links comes first; what it explains does not count against others.
    """
    left, blamed = list(weak), list[int]()
    while left:
        worst = max(range(len(measured.nodes)), key=lambda node: sum(touches(x, node) for x in left))
        partners = {x.source + x.target - worst for x in left if touches(x, worst)}
        known = {x.source + x.target - worst for x in measured.links if touches(x, worst)} - set(blamed)
        if len(known) < 2 or not known <= partners:
            break
        blamed.append(worst)
        left = [x for x in left if not touches(x, worst)]
    return blamed, left


def touches(link: GaugedLink, node: int) -> bool:
    """Whether a link begins or ends at a node."""
    return node in (link.source, link.target)


def pairs_of(links: Sequence[GaugedLink]) -> list[list[GaugedLink]]:
    """Return the links by pairs of nodes, one way or both in each."""
    found: dict[frozenset[int], list[GaugedLink]] = {}
    for link in links:
        found.setdefault(frozenset((link.source, link.target)), []).append(link)
    return list(found.values())


def summarize(slow: GaugedLink, measured: Measurement) -> str:
    """Return the sentence on the slowest link."""
    way = f"{measured.nodes[slow.source].host} to {measured.nodes[slow.target].host}"
    if slow.bits_per_s is None:
        return f"slowest link: {way}, which could not be measured ({slow.error})"
    most, share = card_bits(slow, measured.nodes), card_share(slow, measured.nodes)
    of = (
        f", {show_share(share)} of the {show_speed(round(most / 1e6))} of its cards" if most and share else ""
    )
    return f"slowest link: {way}, {show_rate(slow.bits_per_s)}{of}"


def show_share(share: float) -> str:
    """Return ``0.94``, and ``0.002`` where two digits would say nothing."""
    return f"{share:.2f}" if share >= 0.01 else f"{share:.1g}"


def describe_all(below: Sequence[GaugedLink], nodes: Sequence[GaugedNode]) -> str:
    """Return the sentence on links that all give far less than their cards."""
    best = max(below, key=lambda link: link.bits_per_s or 0.0)
    speed = show_speed(round((card_bits(best, nodes) or 0.0) / 1e6))
    return (
        f"no link gives what its cards could: {show_rate(best.bits_per_s or 0.0)} at best, "
        f"{show_share(card_share(best, nodes) or 0.0)} of {speed}. "
        "A slower switch in between, a rate limit, or machines too busy to send?"
    )


def describe_node(node: int, weak: Sequence[GaugedLink], measured: Measurement) -> str:
    """Return the sentence on a node whose links with all others are weak."""
    out = [x for x in weak if x.source == node]
    into = [x for x in weak if x.target == node]
    rates = [x.bits_per_s for x in (*out, *into) if x.bits_per_s]
    rest = [x.bits_per_s for x in measured.links if x not in weak and x.bits_per_s]
    gives = f"about {show_rate(median(rates))}" if rates else "nothing"
    beside = f", the others give {show_rate(median(rest))}" if rest else ""
    one = measured.nodes[node]
    ways = "to and from" if out and into else "from" if out else "to"
    resent = max((x.resent for x in measured.links if touches(x, node)), default=0.0)
    why = guess(one, resent, one_way=not (out and into), own=f"{one.host}'s own ")
    return f"every link {ways} {one.host} is slow, {gives}{beside}. {why}"


def describe_pair(links: Sequence[GaugedLink], measured: Measurement) -> str:
    """Return the sentence on the weak links of one pair: one way, or both."""
    link = links[0]
    one, other = measured.nodes[link.source], measured.nodes[link.target]
    way = f"the link between {one.host} and {other.host}" if len(links) > 1 else f"{one.host} to {other.host}"
    failed = next((x for x in links if x.bits_per_s is None), None)
    if failed is not None:
        return f"{way} could not be measured: {failed.error}"
    back = next((x for x in measured.links if (x.source, x.target) == (link.target, link.source)), None)
    one_way = (
        len(links) == 1 and back is not None and (link.bits_per_s or 0.0) < ONE_WAY * (back.bits_per_s or 0.0)
    )
    share = card_share(link, measured.nodes)
    of = f", {show_share(share)} of what the cards give" if share is not None else ""
    suspect = next((n for n in (one, other) if n.link == "wireless" or n.duplex == "half"), one)
    why = guess(suspect, max(x.resent for x in links), one_way=one_way)
    ways = " both ways" if len(links) > 1 else ""
    return f"{way} is slow{ways}, {show_rate(link.bits_per_s or 0.0)}{of}. {why}"


def guess(node: GaugedNode, resent: float, *, one_way: bool, own: str = "") -> str:
    """Return what may be the cause. ``own``: whose cable it is, where that is known."""
    if node.link == "wireless":
        return f"{node.host} is on Wi-Fi, which all share and where one sends at a time: take a cable"
    if node.duplex == "half":
        return (
            f"{node.interface} of {node.host} runs half duplex: let both ends of its cable negotiate, "
            f"`ethtool {node.interface}` shows it"
        )
    lost = (
        f"TCP sent {resent:.1%} of the segments again, so frames are lost. " if resent >= RESENT_MUCH else ""
    )
    if one_way:
        return f"{lost}The way back is fine: a bad pair in {own or 'the '}cable, a duplex mismatch, or load?"
    return f"{lost}Is it {own or 'a '}cable, port or card, a slower switch in between, a rate limit, or load?"


def describe_card(node: GaugedNode, nodes: Sequence[GaugedNode]) -> str:
    """Return the sentence on a card that runs far below those of the others; '' for a good one."""
    speeds = [n.speed_mbit for n in nodes if n is not node and n.speed_mbit]
    if not node.speed_mbit or not speeds or node.speed_mbit > FAR_BELOW * max(speeds):
        return ""
    return (
        f"{node.interface} of {node.host} runs at {show_speed(node.speed_mbit)}, others at "
        f"{show_speed(max(speeds))}, and all wait for it. A cable with too few wires, an old port or card?"
    )


def describe_delay(measured: Measurement) -> list[str]:
    """Return the sentence on round trips that are long for a LAN; none where they are fine."""
    wired = {i for i, node in enumerate(measured.nodes) if node.link != "wireless"}
    far = [
        x
        for x in measured.links
        if {x.source, x.target} <= wired and (x.round_trip_s or 0.0) > ROUND_TRIP_LONG_S
    ]
    if not far:
        return []
    worst = max(far, key=lambda x: x.round_trip_s or 0.0)
    way = f"{measured.nodes[worst.source].host} to {measured.nodes[worst.target].host}"
    return [
        f"round trips are long for cables: {1000 * (worst.round_trip_s or 0.0):.1f} ms {way}. "
        "A tunnel, a router or a radio bridge in between?"
    ]
