"""What iptables-save(8) and ip6tables-save print as rules to follow. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from avahi_gpu.errors import MalformedInput
from avahi_gpu.files.firewall import (
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

TEXT_MAX = 120  # of a rule, as people see it
HOOKS = {"PREROUTING": "prerouting", "INPUT": "input", "OUTPUT": "output", "POSTROUTING": "postrouting"}
PRIORITIES = {"raw": -300, "mangle": -150, "nat": -100, "filter": 0, "security": 50}
TARGETS: dict[str, Action] = {
    "ACCEPT": "accept",
    "DROP": "drop",
    "REJECT": "drop",
    "RETURN": "return",
    "MARK": "mark",
    "CONNMARK": "mark",
    # translated, and then on its way
    "DNAT": "accept",
    "MASQUERADE": "accept",
    "NETMAP": "accept",
    "REDIRECT": "accept",
    "SNAT": "accept",
}
# what a packet comes out of as it went in
IDLE = frozenset(
    {"LOG", "NFLOG", "ULOG", "TRACE", "AUDIT", "TCPMSS", "CHECKSUM", "CT", "NOTRACK", "DSCP", "TOS",
     "CLASSIFY", "SET", "TTL", "HL", "SECMARK", "CONNSECMARK", "ECN", "LED", "RATEEST", "TEE"}
)  # fmt: skip
NOBODY = Test("l4proto")  # never true
# options that say nothing (a first packet is within limits): option -> how many words follow it
SILENT = {
    "-m": 1, "--match": 1, "--comment": 1, "--limit": 1, "--limit-burst": 1,
    "--hashlimit-upto": 1, "--hashlimit-burst": 1, "--hashlimit-mode": 1, "--hashlimit-name": 1,
    "--hashlimit-htable-expire": 1, "--hashlimit-htable-size": 1, "--hashlimit-htable-max": 1,
    "--hashlimit-srcmask": 1, "--hashlimit-dstmask": 1,
}  # fmt: skip

Reading = tuple[int, list[Test | Choice]]  # words after the option, and what it tests


def parse(text: str, family: Literal[4, 6], tool: str = "") -> list[Table]:
    """Return the tables; ``tool`` is the program that takes their rules.

    Raises MalformedInput where it is not what iptables-save prints.
    """
    tool = tool or ("iptables" if family == 4 else "ip6tables")
    tables: list[Table] = []
    chains: dict[str, Chain] = {}
    rules: dict[str, list[Rule]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = _split(line, f"{tool}-save:{number}")
        if line.startswith("*"):
            chains, rules = {}, {}
            tables.append(Table("ip" if family == 4 else "ip6", line[1:].strip(), chains, tool))
        elif line.startswith(":") and tables and len(words) > 1:
            name = words[0][1:]
            chains[name] = _chain(tables[-1].name, name, words[1])
            rules[name] = []
        elif line.startswith("-A ") and tables and len(words) > 1:
            rules.setdefault(words[1], []).append(read_rule(words[2:]))
        elif line.strip() == "COMMIT":
            for name, chain in list(chains.items()):
                chains[name] = replace(chain, rules=tuple(rules.get(name, ())))
    return tables


def _split(line: str, where: str) -> list[str]:
    if line.startswith("#"):
        return []
    try:
        return shlex.split(line)
    except ValueError:
        raise MalformedInput(where, "not a line that it prints") from None


def read_rule(words: list[str]) -> Rule:
    """Return the rule of the words after ``-A CHAIN``; one that is not of its form may do anything."""
    named = {at + 1 for at, word in enumerate(words) if word in ("-m", "--match")}
    shown = [word for at, word in enumerate(words) if at not in named and at + 1 not in named]
    text = " ".join(shown)[:TEXT_MAX]
    try:
        tests, action, target = _read(words)
    except (IndexError, ValueError):
        return Rule((Test(UNKNOWN),), "unknown", text=text)
    comments = [words[at + 1] for at, word in enumerate(words[:-1]) if word == "--comment"]
    return Rule(tuple(tests), action, target, text, comments[0] if comments else "")


def _read(words: list[str]) -> tuple[list[Test | Choice], Action, str]:
    tests: list[Test | Choice] = []
    place = 0
    while place < len(words):
        negated = words[place] == "!"
        place += negated
        option, arguments = words[place], words[place + 1 :]
        if option in ("-j", "-g", "--jump", "--goto"):
            # what follows are the target's own options
            return tests, *_target(arguments[0], goes=option in ("-g", "--goto"))
        if option in SILENT and not negated:
            place += 1 + SILENT[option]
            continue
        read = _OPTIONS.get(option)
        taken, own = read(arguments, negated) if read is not None else (_foreign(arguments), [Test(UNKNOWN)])
        tests += own
        place += 1 + taken
    return tests, "none", ""


def _chain(table: str, name: str, policy: str) -> Chain:
    kind = "nat" if table == "nat" else "filter"
    hook = HOOKS.get(name, "") if policy != "-" else ""
    priority = 100 if table == "nat" and hook == "postrouting" else PRIORITIES.get(table, 0)
    return Chain(name, (), hook, priority, "drop" if policy == "DROP" else "accept", kind)


def _target(name: str, *, goes: bool) -> tuple[Action, str]:
    if goes:
        return "goto", name
    if name in TARGETS:
        return TARGETS[name], ""
    if name in IDLE:
        return "none", ""
    # a chain of the table; anything else (DNAT, NFQUEUE) is no chain, and so not understood
    return "jump", name


def _foreign(arguments: list[str]) -> int:
    """Return how many words belong to an option that is not known: up to the next one."""
    for count, word in enumerate(arguments):
        if word == "!" or (word.startswith("-") and word[1:2].isalpha()) or word.startswith("--"):
            return count
    return len(arguments)


# --- options -----------------------------------------------------------------------------------------------


def _name(field: str) -> Callable[[list[str], bool], Reading]:
    def read(arguments: list[str], negated: bool) -> Reading:
        pattern = arguments[0][:-1] + "*" if arguments[0].endswith("+") else arguments[0]
        return 1, [Test(field, (pattern,), negated)]

    return read


def _protocol(arguments: list[str], negated: bool) -> Reading:
    name = {"6": "tcp", "17": "udp", "0": "all"}.get(arguments[0], arguments[0].lower())
    return 1, [Test("l4proto", ("*" if name == "all" else name,), negated)]


def _addresses(field: str) -> Callable[[list[str], bool], Reading]:
    def read(arguments: list[str], negated: bool) -> Reading:
        return 1, [Test(field, tuple(address_interval(one) for one in arguments[0].split(",")), negated)]

    return read


def _range(field: str) -> Callable[[list[str], bool], Reading]:
    def read(arguments: list[str], negated: bool) -> Reading:
        low, _, high = arguments[0].partition("-")
        return 1, [Test(field, ((address_interval(low)[0], address_interval(high or low)[0]),), negated)]

    return read


def _ports(*fields: str) -> Callable[[list[str], bool], Reading]:
    def read(arguments: list[str], negated: bool) -> Reading:
        wanted: tuple[Value, ...] = tuple(_port_range(one) for one in arguments[0].split(","))
        if len(fields) == 1:
            return 1, [Test(fields[0], wanted, negated)]
        return 1, [Choice(tuple((Test(field, wanted),) for field in fields), negated)]

    return read


def _port_range(text: str) -> Interval:
    low, colon, high = text.partition(":")
    return int(low or 0), int(high or 65535) if colon else int(low)


def _state(arguments: list[str], negated: bool) -> Reading:
    return 1, [Test("ctstate", tuple(one.lower() for one in arguments[0].split(",")), negated)]


def _packet_type(arguments: list[str], negated: bool) -> Reading:
    name = {"unicast": "host"}.get(arguments[0].lower(), arguments[0].lower())  # as nft calls it
    return 1, [Test("pkttype", (name,), negated)]


def _kind(field: str) -> Callable[[list[str], bool], Reading]:
    def read(arguments: list[str], negated: bool) -> Reading:
        return 1, [Test(field, tuple(one.lower() for one in arguments[0].split(",")), negated)]

    return read


def _mark(arguments: list[str], negated: bool) -> Reading:
    value = int(arguments[0].partition("/")[0], 0)
    return 1, [Test("mark", ((value, value),), negated)]


def _first(arguments: list[str], negated: bool) -> Reading:
    """``--syn``: the first packet of a connection."""
    return 0, [Test("ctstate", ("new",), negated)]


def _flags(arguments: list[str], negated: bool) -> Reading:
    """``--tcp-flags MASK SET``: a first packet has SYN alone; what an established one has is not known."""
    mask, wanted = (set(one.split(",")) for one in arguments[:2])
    every = {"FIN", "SYN", "RST", "PSH", "ACK", "URG"}
    mask = every if "ALL" in mask else mask
    same = ({"SYN"} & mask) == (wanted - {"NONE"})
    return 2, [Test("ctstate", ("new",)), Test("l4proto", ("tcp",) if same != negated else ())]


def _never(arguments: list[str], negated: bool) -> Reading:
    return 1, [Test("l4proto", ("*",)) if negated else NOBODY]


def _extra(arguments: list[str], negated: bool) -> Reading:
    """A header that no packet of ours has, which ``-m rt`` asks for whatever its options say."""
    return 1, [NOBODY]


_OPTIONS: dict[str, Callable[[list[str], bool], Reading]] = {
    "-i": _name("iif"),
    "-o": _name("oif"),
    "-p": _protocol,
    "-s": _addresses("saddr"),
    "-d": _addresses("daddr"),
    "--src-range": _range("saddr"),
    "--dst-range": _range("daddr"),
    "--sport": _ports("sport"),
    "--dport": _ports("dport"),
    "--sports": _ports("sport"),
    "--dports": _ports("dport"),
    "--ports": _ports("sport", "dport"),
    "--ctstate": _state,
    "--state": _state,
    "--ctstatus": _kind("ctstatus"),
    "--src-type": _kind("saddrtype"),
    "--dst-type": _kind("daddrtype"),
    "--pkt-type": _packet_type,
    "--mark": _mark,
    "--syn": _first,
    "--tcp-flags": _flags,
    "--hashlimit-above": _never,
    "--connlimit-above": _never,
    "--rt-type": _extra,  # ufw drops those of type 0
    "--icmp-type": _never,
    "--icmpv6-type": _never,
}
