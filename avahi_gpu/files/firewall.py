"""Follow a packet through the rules of a firewall, as the kernel does. Pure.

``firewall_nft`` and ``firewall_iptables`` make these rules of what the tools print. Whatever they do not
understand is a test of field ``UNKNOWN``, or the action ``unknown``: it makes the answer open, never a guess.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Literal

Interval = tuple[int, int]  # both ends belong to it
Value = str | Interval
Action = Literal["accept", "drop", "jump", "goto", "return", "mark", "unknown", "none"]
Outcome = Literal["pass", "drop", "unknown"]

UNKNOWN = "unknown"  # the field of a test that was not understood
ANY_NUMBER: Interval = (0, (1 << 128) - 1)
JUMPS_MAX = 32  # the kernel allows 16 (NFT_JUMP_STACK_SIZE)
HOOKS: dict[str, tuple[str, ...]] = {
    "in": ("ingress", "prerouting", "input"),
    "out": ("output", "postrouting", "egress"),
}


@dataclass(frozen=True)
class Packet:
    """A kind of packet that goes to (``in``) or leaves (``out``) this machine.

    Addresses and ports are intervals of what they may be: a rule that fits some of them and not others leaves
    the answer open.
    """

    way: Literal["in", "out"]
    family: Literal[4, 6]
    interface: str
    protocol: Literal["udp", "tcp"]
    source: Interval
    destination: Interval
    sport: Interval
    dport: Interval
    kind: Literal["unicast", "multicast"] = "unicast"
    state: Literal["new", "established"] = "new"  # as connection tracking sees it

    def value_of(self, field: str) -> Value | None:
        """Return what a field holds; None where this packet has no such field: no test of it is true then."""
        ours: dict[str, Value | None] = {
            "iif": self.interface if self.way == "in" else None,
            "oif": self.interface if self.way == "out" else None,
            "nfproto": f"ipv{self.family}",
            "l4proto": self.protocol,
            "saddr": self.source,
            "daddr": self.destination,
            "sport": self.sport,
            "dport": self.dport,
            "ctstate": self.state,
            "ctstatus": "",  # no translation of addresses
            "pkttype": self._kind_on_the_link,
            "daddrtype": self._destination_type,
            "saddrtype": "unicast" if self.way == "in" else "local",
        }
        return ours[field]

    @property
    def _kind_on_the_link(self) -> str:
        # what leaves is "host" until the card sends it
        return "multicast" if self.kind == "multicast" and self.way == "in" else "host"

    @property
    def _destination_type(self) -> str:
        if self.kind == "multicast":
            return "multicast"
        return "local" if self.way == "in" else "unicast"


@dataclass(frozen=True)
class Test:
    """True where the field holds one of the values. Names may end in ``*``; numbers are intervals."""

    field: str
    values: tuple[Value, ...] = ()
    negated: bool = False


@dataclass(frozen=True)
class Choice:
    """True where all tests of one of the alternatives are."""

    alternatives: tuple[tuple[Test, ...], ...]
    negated: bool = False


@dataclass(frozen=True)
class Rule:
    """All tests true: the action. ``text`` names it for people, ``comment`` is what its maker wrote to it."""

    tests: tuple[Test | Choice, ...]
    action: Action
    target: str = ""  # of jump and goto
    text: str = ""
    comment: str = ""


@dataclass(frozen=True)
class Chain:
    """A list of rules; a base chain has a hook, and a policy for what reaches its end."""

    name: str
    rules: tuple[Rule, ...] = ()
    hook: str = ""
    priority: int = 0
    policy: Literal["accept", "drop"] = "accept"
    type: str = "filter"
    devices: tuple[str, ...] = ()  # of a hook of the families netdev and inet ingress


@dataclass(frozen=True)
class Table:
    """The chains of one table; ``tool``: who takes its rules, nft or a kind of iptables."""

    family: str  # ip, ip6, inet, netdev, bridge, arp
    name: str
    chains: Mapping[str, Chain] = field(default_factory=dict)
    tool: str = "nft"


@dataclass(frozen=True)
class Fate:
    """What becomes of a packet, and which rule or policy makes it so."""

    outcome: Outcome
    because: str = ""
    table: Table | None = None  # that drops it
    chain: Chain | None = None  # the base chain that drops it


Ends = dict[str, str]  # accept, drop, fall (the end is reached), open (not understood) -> which rule


@dataclass(frozen=True)
class Stop:
    """One base chain on a packet's way. ``ends``: accept, drop, and open where that is not certain."""

    table: Table
    chain: Chain
    ends: Ends


def follow(tables: Iterable[Table], packet: Packet) -> Fate:
    """Return what the rules do with the packet: every base chain on its way must let it through."""
    open_question = ""
    for stop in stops_of(tables, packet):
        if "accept" not in stop.ends:
            return Fate("drop", stop.ends["drop"], stop.table, stop.chain)
        if "drop" in stop.ends:
            open_question = open_question or stop.ends.get("open") or stop.ends["drop"]
    return Fate("unknown", open_question) if open_question else Fate("pass")


def stops_of(tables: Iterable[Table], packet: Packet) -> list[Stop]:
    """Return the base chains on the packet's way in their order, each with what it may do with the packet."""
    way = [
        (HOOKS[packet.way].index(chain.hook), chain.priority, table, chain)
        for table in tables
        if _concerns(table, packet)
        for chain in table.chains.values()
        if chain.hook in HOOKS[packet.way] and (not chain.devices or packet.interface in chain.devices)
    ]
    way.sort(key=lambda stop: stop[:2])
    marked = any(_Walk(table, packet, marked=True).meets_mark(chain) for _, _, table, chain in way)
    return [Stop(table, chain, _Walk(table, packet, marked).through(chain)) for _, _, table, chain in way]


def tests_true(tests: Iterable[Test | Choice], packet: Packet, *, marked: bool = False) -> bool | None:
    """Return whether all tests are true for the packet; None where that depends."""
    truth: bool | None = True
    for test in tests:
        one = _truth(test, packet, marked)
        if one is False:
            return False
        truth = None if one is None else truth
    return truth


def address_interval(text: str) -> Interval:
    """Return the numbers of an address or a network (``10.0.0.0/8``). Raises ValueError."""
    network = ipaddress.ip_network(text, strict=False)
    return int(network.network_address), int(network.broadcast_address)


# --- one base chain ----------------------------------------------------------------------------------------


class _Walk:
    """One packet's way through the chains of a table; each chain is walked once, however often jumped to."""

    def __init__(self, table: Table, packet: Packet, marked: bool) -> None:
        self._table = table
        self._packet = packet
        self._marked = marked
        self._known: dict[str, Ends] = {}
        self._marks = False

    def through(self, base: Chain) -> Ends:
        """Return the possible ends: accept, drop, and open beside both where a rule is not understood."""
        ends = dict(self._walk(base, 0))
        if ends.pop("fall", None) is not None:
            reason = policy_words(self._table, base)
            ends.setdefault(base.policy, reason)
        return ends

    def meets_mark(self, base: Chain) -> bool:
        """Return whether a rule on the way may have set the packet's mark."""
        self._walk(base, 0)
        return self._marks

    def _walk(self, chain: Chain, depth: int) -> Ends:
        if chain.name in self._known:
            return self._known[chain.name]
        here = describe(self._table, chain)
        self._known[chain.name] = {"open": here, "accept": here, "drop": here}  # should it lead back here
        ends: Ends = {}
        for rule in chain.rules:
            truth = tests_true(rule.tests, self._packet, marked=self._marked)
            if truth is not False and self._take(rule, chain, ends, depth, sure=truth is True):
                break
        else:
            ends["fall"] = ""
        self._known[chain.name] = ends
        return ends

    def _take(self, rule: Rule, chain: Chain, ends: Ends, depth: int, *, sure: bool) -> bool:
        """Note what the rule may do; return whether nothing after it can matter."""
        here = f"{describe(self._table, chain)}: {rule.text}"
        if not sure and rule.action not in ("none", "mark"):
            ends.setdefault("open", here)
        if rule.action in ("jump", "goto"):
            target = self._table.chains.get(rule.target)
            if target is None or depth >= JUMPS_MAX:
                return self._give_up(ends, here, sure=sure)
            below = self._walk(target, depth + 1)
            for end, reason in below.items():
                if end != "fall":
                    ends.setdefault(end, reason)
            if "fall" in below and rule.action == "goto":
                ends["fall"] = ""
            return sure and (rule.action == "goto" or "fall" not in below)
        if rule.action == "return":
            ends["fall"] = ""
            return sure
        if rule.action == "unknown":
            return self._give_up(ends, here, sure=sure)
        if rule.action == "mark":
            self._marks = True
        elif rule.action in ("accept", "drop"):
            ends.setdefault(rule.action, here)
            return sure
        return False

    @staticmethod
    def _give_up(ends: Ends, here: str, *, sure: bool) -> bool:
        for end in ("open", "accept", "drop"):
            ends.setdefault(end, here)
        return sure


def policy_words(table: Table, base: Chain) -> str:
    """Return the reason where no rule decides: ``inet filter input: policy drop``."""
    return f"{describe(table, base)}: policy {base.policy}"


def describe(table: Table, chain: Chain) -> str:
    """Return ``inet filter input`` or ``iptables filter INPUT``."""
    return f"{table.family if table.tool == 'nft' else table.tool} {table.name} {chain.name}"


def _concerns(table: Table, packet: Packet) -> bool:
    """Tell whether packets of this family pass the table. What a bridge does comes before this machine."""
    return table.family in ("inet", "netdev", "ip" if packet.family == 4 else "ip6")


# --- tests -------------------------------------------------------------------------------------------------


def _truth(test: Test | Choice, packet: Packet, marked: bool) -> bool | None:
    if isinstance(test, Choice):
        answers = [tests_true(one, packet, marked=marked) for one in test.alternatives]
        truth: bool | None = True if True in answers else None if None in answers else False
        return _negate(truth, test.negated)
    if test.field == UNKNOWN:
        return None
    if test.field == "mark":
        return None if marked else _negate(_holds((0, 0), test.values), test.negated)
    value = packet.value_of(test.field)
    if value is None:
        return False
    return _negate(_holds(value, test.values), test.negated)


def _negate(truth: bool | None, negated: bool) -> bool | None:
    return truth if truth is None or not negated else not truth


def _holds(value: Value, wanted: tuple[Value, ...]) -> bool | None:
    """Return whether all that ``value`` may be is wanted; None where some of it is."""
    if isinstance(value, str):
        return any(_fits(value, name) for name in wanted if isinstance(name, str))
    low, high = value
    touching = sorted(w for w in wanted if not isinstance(w, str) and w[0] <= high and w[1] >= low)
    covered = reduce(lambda reached, w: max(reached, w[1] + 1) if w[0] <= reached else reached, touching, low)
    return True if covered > high else None if touching else False


def _fits(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
