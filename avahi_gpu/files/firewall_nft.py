"""What ``nft -j list ruleset`` prints (libnftables-json(5)) as rules to follow. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from avahi_gpu.errors import MalformedInput
from avahi_gpu.files.firewall import (
    ANY_NUMBER,
    UNKNOWN,
    Action,
    Chain,
    Choice,
    Interval,
    Rule,
    Table,
    Test,
    Value,
    address_interval,
)

TEXT_MAX = 100  # of a rule, as people see it
NUMBERS = {1: "icmp", 6: "tcp", 17: "udp", 58: "ipv6-icmp"}
# statements that neither test nor end anything
IDLE = frozenset(
    {"counter", "log", "comment", "last", "set", "ct helper", "ct timeout", "ct expectation", "flow", "map",
     "dup", "quota", "notrack"}
)  # fmt: skip
META = {"iifname": "iif", "iif": "iif", "oifname": "oif", "oif": "oif", "l4proto": "l4proto",
        "nfproto": "nfproto", "pkttype": "pkttype", "mark": "mark"}  # fmt: skip
CONNECTION = {"state": "ctstate", "status": "ctstatus", "mark": "mark"}
VERDICTS: dict[str, Action] = {"accept": "accept", "drop": "drop", "reject": "drop", "return": "return"}
LOG_TARGETS = frozenset({"LOG", "NFLOG", "TRACE", "AUDIT", "TCPMSS", "CHECKSUM", "CT", "NOTRACK", "DSCP"})
NOBODY = Test("l4proto")  # never true


def parse(text: str) -> list[Table]:
    """Return the tables with chains and rules. Raises MalformedInput where it is no such JSON."""
    try:
        items = json.loads(text)["nftables"]
        tables: dict[tuple[str, str], dict[str, Chain]] = {}
        rules: dict[tuple[str, str, str], list[Rule]] = {}
        sets: dict[tuple[str, str, str], list[Any]] = {}
        for item in items:
            _note_set(item, sets)
        for item in items:
            _note(item, tables, rules, sets)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
        raise MalformedInput("nft", f"not what nft prints as JSON ({type(fault).__name__})", "") from None
    return [
        Table(family, name, {n: _with_rules(c, rules.get((family, name, n), [])) for n, c in chains.items()})
        for (family, name), chains in tables.items()
    ]


def has_foreign_rules(text: str) -> bool:
    """Tell whether iptables has put rules there that nft only shows as ``xt``."""
    return '"xt"' in text


def _note_set(item: dict[str, Any], sets: dict[tuple[str, str, str], list[Any]]) -> None:
    for kind in ("set", "map", "element"):
        if kind in item:
            one = item[kind]
            sets.setdefault((one["family"], one["table"], one["name"]), []).extend(one.get("elem", []))


def _note(
    item: dict[str, Any],
    tables: dict[tuple[str, str], dict[str, Chain]],
    rules: dict[tuple[str, str, str], list[Rule]],
    sets: dict[tuple[str, str, str], list[Any]],
) -> None:
    if "table" in item:
        tables.setdefault((item["table"]["family"], item["table"]["name"]), {})
    elif "chain" in item:
        one = item["chain"]
        device = one.get("dev", [])
        tables.setdefault((one["family"], one["table"]), {})[one["name"]] = Chain(
            name=str(one["name"]),
            hook=str(one.get("hook", "")),
            priority=int(one.get("prio", 0)),
            policy="drop" if one.get("policy") == "drop" else "accept",
            type=str(one.get("type", "filter")),
            devices=tuple(map(str, [device] if isinstance(device, str) else device)),
        )
    elif "rule" in item:
        one = item["rule"]
        reader = _Reader(one["family"], one["table"], sets)
        key = (one["family"], one["table"], one["chain"])
        comment = str(one.get("comment", ""))
        rules.setdefault(key, []).extend(
            replace(rule, comment=comment) for rule in reader.read(one.get("expr", []), comment)
        )


def _with_rules(chain: Chain, rules: list[Rule]) -> Chain:
    return Chain(
        chain.name, tuple(rules), chain.hook, chain.priority, chain.policy, chain.type, chain.devices
    )


class _Reader:
    """Reads the expressions of one rule."""

    def __init__(self, family: str, table: str, sets: dict[tuple[str, str, str], list[Any]]) -> None:
        self._family = family
        self._table = table
        self._sets = sets

    def read(self, expressions: list[dict[str, Any]], comment: str) -> Iterator[Rule]:
        """Yield the rule; one for each entry of a verdict map."""
        tests: list[Test | Choice] = []
        words: list[str] = []
        for expression in expressions:
            ((kind, body),) = expression.items()
            words += [_words(kind, body)]
            text = " ".join(w for w in [*words, f'"{comment}"' if comment else ""] if w)[:TEXT_MAX]
            if kind in VERDICTS:
                yield Rule(tuple(tests), VERDICTS[kind], text=text)
            elif kind in ("jump", "goto"):
                yield Rule(tuple(tests), "jump" if kind == "jump" else "goto", str(body["target"]), text)
            elif kind == "match":
                tests += self._match(body)
            elif kind == "vmap":
                yield from self._verdict_map(body, tests, text)
            elif kind in ("limit", "ct count"):
                # a first packet is within every limit
                tests += [NOBODY] if isinstance(body, dict) and body.get("inv") else []
            elif kind == "mangle":
                if _is_mark(body.get("key")):
                    yield Rule(tuple(tests), "mark", text=text)
            elif kind == "xt":
                yield from _foreign(body, tests, text)
            elif kind in ("dnat", "masquerade", "redirect", "snat"):
                yield Rule(tuple(tests), "accept", text=text)  # translated, and then on its way
            elif kind not in IDLE:
                yield Rule(tuple(tests), "unknown", text=text)

    def _match(self, body: dict[str, Any]) -> list[Test | Choice]:
        left, right, operator = body["left"], body["right"], body.get("op", "==")
        if operator in ("==", "!=", "in"):
            return self._equals(left, self._listed(right), negated=operator == "!=")
        bounds: dict[str, Interval] = {}
        if isinstance(right, int):
            top = ANY_NUMBER[1]
            bounds = {"<": (0, right - 1), "<=": (0, right), ">": (right + 1, top), ">=": (right, top)}
        field, before = self._field(left)
        return [*before, Test(field, (bounds[operator],)) if operator in bounds else Test(UNKNOWN)]

    def _equals(self, left: Any, wanted: list[Any], *, negated: bool) -> list[Test | Choice]:
        if isinstance(left, dict) and "concat" in left:
            fields = left["concat"]
            alternatives = []
            for one in wanted:
                parts = one["concat"] if isinstance(one, dict) and "concat" in one else None
                if parts is None or len(parts) != len(fields):
                    return [Test(UNKNOWN)]
                flat = [
                    t for f, p in zip(fields, parts, strict=True) for t in self._one(f, [p], negated=False)
                ]
                alternatives.append(tuple(flat))
            return [Choice(tuple(alternatives), negated)]
        return list(self._one(left, wanted, negated=negated))

    def _one(self, left: Any, wanted: list[Any], *, negated: bool) -> list[Test]:
        if isinstance(left, dict) and "fib" in left:
            return [_route(left["fib"], wanted, negated=negated)]
        if _is_flags(left):
            return [Test("l4proto", ("tcp",)), *_flags(left, wanted, negated=negated)]
        field, before = self._field(left)
        if field == UNKNOWN:
            return [*before, Test(UNKNOWN)]
        values = tuple(v for one in wanted for v in _values(field, one))
        if len(values) < len(wanted):  # one of them was not understood
            return [*before, Test(UNKNOWN)]
        return [*before, Test(field, values, negated)]

    def _field(self, left: Any) -> tuple[str, list[Test]]:
        """Return the packet's field, and what nft itself tests before it: a rule about udp is for udp."""
        if not isinstance(left, dict) or len(left) != 1:
            return UNKNOWN, []
        ((kind, body),) = left.items()
        if kind == "meta":
            return META.get(body["key"], UNKNOWN), []
        if kind == "ct":
            return CONNECTION.get(body["key"], UNKNOWN), []
        if kind == "&" and _is_mark(body[0]):
            return "mark", []  # nothing but zero is left of zero
        if kind == "payload" and "protocol" in body:
            return self._payload(str(body["protocol"]), str(body["field"]))
        return UNKNOWN, []

    def _payload(self, protocol: str, field: str) -> tuple[str, list[Test]]:
        if protocol in ("ip", "ip6"):
            before = [Test("nfproto", ("ipv4" if protocol == "ip" else "ipv6",))]
            names = {"saddr": "saddr", "daddr": "daddr", "protocol": "l4proto", "nexthdr": "l4proto"}
            return names.get(field, UNKNOWN), before
        if protocol in ("udp", "tcp", "th"):
            before = [] if protocol == "th" else [Test("l4proto", (protocol,))]
            return (field if field in ("sport", "dport") else UNKNOWN), before
        if protocol in ("ether", "vlan"):
            return UNKNOWN, []
        return UNKNOWN, [NOBODY]  # of a protocol that is neither UDP nor TCP

    def _listed(self, right: Any) -> list[Any]:
        """Return the values of a right side: a set, a named set, a list of flags, or one."""
        if isinstance(right, str) and right.startswith("@"):
            return [_bare(e) for e in self._sets.get((self._family, self._table, right[1:]), [])]
        if isinstance(right, dict) and "set" in right:
            inner = right["set"]
            return [_bare(e) for e in inner] if isinstance(inner, list) else [inner]
        return list(right) if isinstance(right, list) else [right]

    def _verdict_map(self, body: dict[str, Any], tests: list[Test | Choice], text: str) -> Iterator[Rule]:
        for entry in self._listed(body["data"]):
            if not isinstance(entry, list) or len(entry) != 2:
                yield Rule((*tests, Test(UNKNOWN)), "unknown", text=text)
                continue
            key, verdict = _bare(entry[0]), entry[1]
            ((kind, target),) = verdict.items()
            own = (*tests, *(() if key == "*" else self._equals(body["key"], [key], negated=False)))
            if kind in VERDICTS:
                yield Rule(own, VERDICTS[kind], text=text)
            elif kind in ("jump", "goto"):
                yield Rule(own, "jump" if kind == "jump" else "goto", str(target["target"]), text)
            elif kind != "continue":
                yield Rule(own, "unknown", text=text)


def _bare(element: Any) -> Any:
    """Return an element of a set without its counter, timeout or comment."""
    if isinstance(element, dict) and "elem" in element:
        return element["elem"]["val"]
    return element


def _values(field: str, one: Any) -> list[Value]:
    """Return what a value says for a field: [] where it is not understood."""
    if field in ("saddr", "daddr", "sport", "dport", "mark"):
        interval = _interval(one)
        return [] if interval is None else [interval]
    if field == "l4proto" and isinstance(one, int):
        return [NUMBERS.get(one, str(one))]
    if field == "pkttype" and one == "unicast":
        return ["host"]
    return [one] if isinstance(one, str) else []


def _interval(one: Any) -> Interval | None:
    try:
        if isinstance(one, dict) and "prefix" in one:
            return address_interval(f"{one['prefix']['addr']}/{one['prefix']['len']}")
        if isinstance(one, dict) and "range" in one:
            low, high = (_interval(end) for end in one["range"])
            return None if low is None or high is None else (low[0], high[1])
        if isinstance(one, bool):
            return None
        return (one, one) if isinstance(one, int) else address_interval(str(one))
    except (ValueError, KeyError, TypeError):
        return None


def _route(fib: dict[str, Any], wanted: list[Any], *, negated: bool) -> Test:
    """Return the test of what the routing table says of an address."""
    if fib.get("result") == "type" and all(isinstance(one, str) for one in wanted):
        flags = fib.get("flags", [])
        if "daddr" in flags or "saddr" in flags:
            return Test("daddrtype" if "daddr" in flags else "saddrtype", tuple(wanted), negated)
    if fib.get("result") == "oif" and wanted == [False]:
        return NOBODY if not negated else Test("l4proto", ("*",))  # packets of the LAN have a way back
    return Test(UNKNOWN)


def _is_flags(left: Any) -> bool:
    if isinstance(left, dict) and "&" in left:
        left = left["&"][0]
    return isinstance(left, dict) and left.get("payload") == {"protocol": "tcp", "field": "flags"}


def _flags(left: Any, wanted: list[Any], *, negated: bool) -> list[Test]:
    """Return the test of the flags of a connection's first packet, which has SYN alone."""
    mask = left["&"][1] if "&" in left else ["syn"]
    mask = mask.get("|", []) if isinstance(mask, dict) else mask
    names = wanted[0].get("|", []) if len(wanted) == 1 and isinstance(wanted[0], dict) else wanted
    if not all(isinstance(one, str) for one in (*mask, *names)):
        return [Test(UNKNOWN)]
    # an established one is not a first packet: what it has is not known here
    first = Test("ctstate", ("new",))
    same = ({"syn"} & set(mask)) == set(names) if "&" in left else "syn" in names
    return [first, Test("l4proto", ("tcp",) if same != negated else ())]


def _is_mark(key: Any) -> bool:
    return isinstance(key, dict) and (key.get("meta") or key.get("ct") or {}).get("key") == "mark"


def _foreign(body: Any, tests: list[Test | Choice], text: str) -> Iterator[Rule]:
    """Yield what a match or target of iptables may do, of which nft tells the name at most."""
    kind = body.get("type") if isinstance(body, dict) else None
    if kind == "match":
        tests.append(Test(UNKNOWN))
    elif kind != "target" or body.get("name") not in LOG_TARGETS:
        tests.append(Test(UNKNOWN))
        yield Rule(tuple(tests), "unknown", text=text)


def _words(kind: str, body: Any) -> str:
    """Return a statement for people: ``udp dport 5353``, ``drop``."""
    if kind == "match":
        left = body.get("left")
        operator = body.get("op", "==")
        operator = "" if operator in ("==", "in") else f"{operator} "
        return f"{_left_words(left)} {operator}{_right_words(body.get('right'))}"
    if kind in VERDICTS:
        return kind
    if kind in ("jump", "goto"):
        return f"{kind} {body.get('target', '')}"
    return "" if kind in ("counter", "log", "comment") else kind


def _left_words(left: Any) -> str:
    if isinstance(left, dict):
        if "payload" in left and "protocol" in left["payload"]:
            return f"{left['payload']['protocol']} {left['payload'].get('field', '')}"
        for kind in ("meta", "ct"):
            if kind in left:
                return f"{kind} {left[kind].get('key', '')}"
        return " ".join(map(str, left))
    return str(left)


def _right_words(right: Any) -> str:
    if isinstance(right, dict):
        if "set" in right and isinstance(right["set"], list):
            return "{ " + ", ".join(_right_words(_bare(one)) for one in right["set"][:6]) + " }"
        if "prefix" in right:
            return f"{right['prefix'].get('addr')}/{right['prefix'].get('len')}"
        if "range" in right:
            return "-".join(_right_words(end) for end in right["range"])
    if isinstance(right, list):
        return ",".join(map(str, right[:6]))
    return str(right)
