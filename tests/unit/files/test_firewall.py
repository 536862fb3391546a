"""Packets through rules that the tools themselves printed, and through rules of every kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.errors import MalformedInput
from avahi_gpu.files import firewall_iptables, firewall_nft
from avahi_gpu.files.firewall import Packet, Table, address_interval, follow

SAMPLES = Path(__file__).with_name("firewalls")
LAN, ME, GROUP = (address_interval(a) for a in ("10.77.0.0/24", "10.77.0.1", "224.0.0.251"))
HIGH = (32768, 60999)


def tcp(port: int | tuple[int, int]) -> Packet:
    """A neighbour's connection to us."""
    dport = (port, port) if isinstance(port, int) else port
    return Packet("in", 4, "eth0", "tcp", LAN, ME, HIGH, dport)


MDNS_IN = Packet("in", 4, "eth0", "udp", LAN, GROUP, (5353, 5353), (5353, 5353), "multicast")
MDNS_IN_6 = Packet(
    "in",
    6,
    "eth0",
    "udp",
    address_interval("fe80::/64"),
    address_interval("ff02::fb"),
    (5353, 5353),
    (5353, 5353),
    "multicast",
)
MDNS_OUT = Packet("out", 4, "eth0", "udp", ME, GROUP, (5353, 5353), (5353, 5353), "multicast")
BACK = Packet("in", 4, "eth0", "tcp", LAN, ME, HIGH, HIGH, state="established")


def saved(rules: str, policy: str = "ACCEPT", family: Literal[4, 6] = 4) -> list[Table]:
    text = f"*filter\n:INPUT {policy} [0:0]\n:OUTPUT ACCEPT [0:0]\n:own - [0:0]\n{rules}\nCOMMIT\n"
    return firewall_iptables.parse(text, family)


def ruleset(
    *expressions: list[Any], policy: str = "accept", more: tuple[Any, ...] = (), **hook: Any
) -> list[Table]:
    at = {"family": "inet", "table": "f"}
    chain = {**at, "name": "c", "type": "filter", "hook": "input", "prio": 0, "policy": policy, **hook}
    items: list[Any] = [{"table": {"family": "inet", "name": "f"}}, {"chain": chain}, *more]
    items += [{"rule": {**at, "chain": "c", "expr": e}} for e in expressions]
    return firewall_nft.parse(json.dumps({"nftables": items}))


def match(left: Any, right: Any, op: str = "==") -> dict[str, Any]:
    return {"match": {"op": op, "left": left, "right": right}}


def payload(protocol: str, field: str) -> dict[str, Any]:
    return {"payload": {"protocol": protocol, "field": field}}


def meta(key: str) -> dict[str, Any]:
    return {"meta": {"key": key}}


ACCEPT: dict[str, Any] = {"accept": None}
DROP: dict[str, Any] = {"drop": None}
UDP_PORT = payload("udp", "dport")
BOTH: dict[str, Any] = {"concat": [payload("ip", "daddr"), UDP_PORT]}


# --- what real tools printed -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sample", "mdns", "store", "high"),
    [("firewalld-server", "drop", "drop", "drop"), ("firewalld-workstation", "pass", "pass", "pass")],
)
def test_firewalls_zones_are_followed_to_their_end(sample: str, mdns: str, store: str, high: str) -> None:
    tables = firewall_nft.parse((SAMPLES / f"{sample}.json").read_text())

    assert [follow(tables, p).outcome for p in (MDNS_IN, MDNS_IN_6)] == [mdns, mdns]
    assert (follow(tables, tcp(29500)).outcome, follow(tables, tcp(HIGH)).outcome) == (store, high)
    assert follow(tables, MDNS_OUT).outcome == "pass"
    assert follow(tables, BACK).outcome == "pass"


def test_what_drops_a_packet_is_named_with_its_chain() -> None:
    tables = firewall_nft.parse((SAMPLES / "firewalld-server.json").read_text())

    fate = follow(tables, MDNS_IN)

    assert fate.because == "inet firewalld filter_IN_public: reject"
    assert fate.table is not None and fate.chain is not None
    assert (fate.table.tool, fate.table.family, fate.chain.name) == ("nft", "inet", "filter_INPUT")


def test_ufw_lets_mdns_in_and_connections_not() -> None:
    tables = firewall_iptables.parse((SAMPLES / "ufw.save").read_text(), 4)

    assert follow(tables, MDNS_IN).outcome == "pass"
    assert follow(tables, tcp(22)).outcome == "pass"
    assert follow(tables, BACK).outcome == "pass"
    dropped = follow(tables, tcp(29500))
    assert (dropped.outcome, dropped.because) == (
        "drop",
        "iptables filter INPUT: policy DROP".replace("DROP", "drop"),
    )


def test_no_rules_drop_nothing() -> None:
    assert follow(firewall_nft.parse('{"nftables": [{"metainfo": {}}]}'), MDNS_IN).outcome == "pass"
    assert follow(firewall_iptables.parse("", 4), MDNS_IN).outcome == "pass"


# --- nft ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "outcome"),
    [
        ([match(UDP_PORT, 5353), DROP], "drop"),
        ([match(UDP_PORT, 5354), DROP], "pass"),
        ([match(UDP_PORT, 5353, "!="), DROP], "pass"),
        ([match(UDP_PORT, {"set": [67, {"range": [5000, 6000]}]}), DROP], "drop"),
        ([match(UDP_PORT, 1024, ">="), DROP], "drop"),
        ([match(UDP_PORT, 1024, "<"), DROP], "pass"),
        ([match(payload("tcp", "dport"), 5353), DROP], "pass"),
        ([match(payload("th", "dport"), 5353), DROP], "drop"),
        ([match(meta("l4proto"), "udp"), DROP], "drop"),
        ([match(meta("l4proto"), {"set": ["tcp", 17]}), DROP], "drop"),
        ([match(meta("iifname"), "eth*"), DROP], "drop"),
        ([match(meta("iifname"), "wlan0"), DROP], "pass"),
        ([match(meta("oifname"), "wlan0", "!="), DROP], "pass"),  # nothing that comes in has an oifname
        ([match(meta("pkttype"), {"set": ["broadcast", "multicast"]}), DROP], "drop"),
        ([match(meta("nfproto"), "ipv6"), DROP], "pass"),
        ([match(payload("ip", "daddr"), "224.0.0.251"), DROP], "drop"),
        ([match(payload("ip", "daddr"), {"prefix": {"addr": "224.0.0.0", "len": 4}}), DROP], "drop"),
        ([match(payload("ip", "saddr"), {"prefix": {"addr": "10.0.0.0", "len": 8}}, "!="), DROP], "pass"),
        ([match(payload("ip6", "daddr"), "ff02::fb", "!="), DROP], "pass"),  # a rule about IPv6 is for IPv6
        ([match({"ct": {"key": "state"}}, ["established", "related"], "in"), DROP], "pass"),
        ([match({"ct": {"key": "state"}}, "new"), DROP], "drop"),
        ([match({"ct": {"key": "status"}}, "dnat", "in"), DROP], "pass"),
        ([match({"fib": {"result": "type", "flags": ["daddr"]}}, "multicast"), DROP], "drop"),
        ([match({"fib": {"result": "oif", "flags": ["saddr", "iif"]}}, False), DROP], "pass"),
        ([match(meta("mark"), 8), DROP], "pass"),
        ([match({"&": [meta("mark"), 32768]}, 32768), DROP], "pass"),
        ([{"counter": {"packets": 0, "bytes": 0}}, {"log": None}, DROP], "drop"),
        ([{"limit": {"rate": 10, "per": "second"}}, DROP], "drop"),
        ([{"limit": {"rate": 10, "per": "second", "inv": True}}, DROP], "pass"),
        ([{"reject": {"type": "icmpx", "expr": "port-unreachable"}}], "drop"),
        ([{"vmap": {"key": UDP_PORT, "data": {"set": [[22, ACCEPT], [5353, DROP]]}}}], "drop"),
        ([{"vmap": {"key": UDP_PORT, "data": {"set": [[22, DROP]]}}}], "pass"),
        ([match(BOTH, {"set": [{"concat": ["224.0.0.251", 5353]}]}), DROP], "drop"),
        ([match(BOTH, {"set": [{"concat": ["224.0.0.251", 53]}]}), DROP], "pass"),
        # what depends, or is not understood, is left open
        ([match(payload("ip", "saddr"), "10.77.0.9"), DROP], "unknown"),
        ([match(meta("skuid"), 0), DROP], "unknown"),
        ([match(payload("ether", "saddr"), "02:00:00:00:00:01"), DROP], "unknown"),
        ([{"queue": {"num": 0}}], "unknown"),
        ([{"xt": {"type": "match", "name": "u32"}}, DROP], "unknown"),
        ([{"xt": {"type": "target", "name": "LOG"}}], "pass"),
        ([{"something new": 1}], "unknown"),
        ([{"jump": {"target": "nowhere"}}], "unknown"),
    ],
)  # fmt: skip
def test_a_rule_of_nft_is_understood_or_left_open(expression: list[Any], outcome: str) -> None:
    assert follow(ruleset(expression), MDNS_IN).outcome == outcome


def test_what_comes_first_counts() -> None:
    open_first = ruleset([match(UDP_PORT, 5353), ACCEPT], [DROP])
    shut_first = ruleset([match(UDP_PORT, 5353), DROP], [ACCEPT])

    assert (follow(open_first, MDNS_IN).outcome, follow(shut_first, MDNS_IN).outcome) == ("pass", "drop")


def test_an_open_question_does_not_matter_where_every_answer_leads_to_the_same_end() -> None:
    tables = ruleset([match(meta("skuid"), 0), DROP], policy="drop")

    assert follow(tables, MDNS_IN).outcome == "drop"


def test_every_base_chain_on_the_way_must_let_it_through() -> None:
    first = ruleset([ACCEPT], prio=-10)
    second = ruleset([match(UDP_PORT, 5353), DROP], prio=0)

    assert follow([*first, *second], MDNS_IN).outcome == "drop"


def test_a_named_set_and_a_named_map_are_looked_into() -> None:
    at = {"family": "inet", "table": "f"}
    ports = {
        "set": {**at, "name": "p", "type": "inet_service", "elem": [{"elem": {"val": 5353, "counter": {}}}]}
    }
    ways = {"map": {**at, "name": "m", "type": "inet_service", "map": "verdict", "elem": [[5353, DROP]]}}

    assert follow(ruleset([match(UDP_PORT, "@p"), DROP], more=(ports,)), MDNS_IN).outcome == "drop"
    assert (
        follow(ruleset([{"vmap": {"key": UDP_PORT, "data": "@m"}}], more=(ways,)), MDNS_IN).outcome == "drop"
    )


def test_a_hook_on_a_card_is_for_that_card() -> None:
    drop = [match(UDP_PORT, 5353), DROP]

    assert follow(ruleset(drop, hook="ingress", dev="eth0"), MDNS_IN).outcome == "drop"
    assert follow(ruleset(drop, hook="ingress", dev=["eth1", "eth2"]), MDNS_IN).outcome == "pass"


def test_rules_for_outgoing_packets_are_for_those() -> None:
    tables = ruleset([match(UDP_PORT, 5353), DROP], hook="output")

    assert (follow(tables, MDNS_OUT).outcome, follow(tables, MDNS_IN).outcome) == ("drop", "pass")


def test_chains_that_jump_in_circles_end() -> None:
    at = {"family": "inet", "table": "f"}
    circle = (
        {"chain": {**at, "name": "d"}},
        {"rule": {**at, "chain": "d", "expr": [{"jump": {"target": "d"}}]}},
    )

    assert follow(ruleset([{"jump": {"target": "d"}}], more=circle), MDNS_IN).outcome == "unknown"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"nftables": 1}', '{"nftables": [{"rule": {}}]}', '{"nftables": [1]}']
)
def test_what_nft_never_prints_is_refused(text: str) -> None:
    with pytest.raises(MalformedInput):
        firewall_nft.parse(text)


WORDS = ["match", "left", "right", "op", "meta", "key", "payload", "vmap", "data", "set", "jump", "drop"]
VALUES = ["udp", "@s", "drop", "eth0", "ff02::fb"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 70000) | st.sampled_from(VALUES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=4))
def test_any_expression_gives_an_answer_or_is_refused(expressions: list[Any]) -> None:
    try:
        tables = ruleset(expressions)
    except MalformedInput:
        return
    assert follow(tables, MDNS_IN).outcome in ("pass", "drop", "unknown")


def test_the_rule_of_ufw_against_routing_headers_concerns_nobody() -> None:
    tables = saved("-A INPUT -m rt --rt-type 0 -j DROP\n-A INPUT -m rt ! --rt-type 1 -j DROP", family=6)

    assert follow(tables, MDNS_IN_6).outcome == "pass"


# --- iptables -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "outcome"),
    [
        ("-p udp -m udp --dport 5353 -j DROP", "drop"),
        ('-p udp -m udp --dport 5353 -m comment --comment "no mdns" -j DROP', "drop"),
        ("-p udp -m udp --dport 5000:6000 -j REJECT --reject-with icmp-port-unreachable", "drop"),
        ("-p udp -m multiport --dports 67,5353 -j DROP", "drop"),
        ("-p udp -m multiport --ports 67,5353 -j DROP", "drop"),
        ("-p tcp -m tcp --dport 5353 -j DROP", "pass"),
        ("! -p udp -j DROP", "pass"),
        ("! -i lo -j DROP", "drop"),
        ("-i eth+ -j DROP", "drop"),
        ("-o eth0 -j DROP", "pass"),
        ("! -s 10.77.0.0/24 -j DROP", "pass"),
        ("-d 224.0.0.0/4 -j DROP", "drop"),
        ("-m addrtype --dst-type MULTICAST -j DROP", "drop"),
        ("-m pkttype --pkt-type multicast -j DROP", "drop"),
        ("-m conntrack --ctstate NEW -j DROP", "drop"),
        ("-m state --state RELATED,ESTABLISHED -j DROP", "pass"),
        ("-m limit --limit 3/min -j LOG", "pass"),
        ("-m mark --mark 0x8000/0x8000 -j DROP", "pass"),
        ("-m iprange --src-range 10.77.0.0-10.77.0.255 -j DROP", "drop"),
        ("-j own", "pass"),
        ("-s 10.77.0.9/32 -j DROP", "unknown"),
        ("-m set --match-set friends src -j DROP", "unknown"),
        ("-m u32 --u32 0x0>>0x16&0x3c=0x1 -j DROP", "unknown"),
        ("-p udp -j NFQUEUE --queue-num 0", "unknown"),
        ("-p udp -m udp --dport -j DROP", "unknown"),
    ],
)
def test_a_rule_of_iptables_is_understood_or_left_open(rule: str, outcome: str) -> None:
    assert follow(saved(f"-A INPUT {rule}"), MDNS_IN).outcome == outcome


def test_a_chain_of_the_users_own_returns_to_where_it_was_called() -> None:
    tables = saved(
        "-A own -p udp -j RETURN\n-A own -j DROP\n-A INPUT -j own\n-A INPUT -p udp -j ACCEPT", "DROP"
    )

    assert (follow(tables, MDNS_IN).outcome, follow(tables, tcp(22)).outcome) == ("pass", "drop")


def test_what_leaves_is_no_multicast_yet_as_its_packet_type_goes() -> None:
    """Seen on a real kernel: such a rule drops nothing."""
    leaving = saved("-A OUTPUT -p udp -m pkttype --pkt-type multicast -j DROP")
    routed = saved("-A OUTPUT -p udp -m addrtype --dst-type MULTICAST -j DROP")
    host = saved("-A OUTPUT -m pkttype --pkt-type unicast -j DROP")

    assert [follow(tables, MDNS_OUT).outcome for tables in (leaving, routed, host)] == [
        "pass",
        "drop",
        "drop",
    ]


def test_published_ports_of_containers_leave_nothing_open() -> None:
    text = "*nat\n:PREROUTING ACCEPT [0:0]\n:DOCKER - [0:0]\n"
    text += "-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER\n"
    text += (
        "-A DOCKER ! -i docker0 -p tcp -m tcp --dport 40000 -j DNAT --to-destination 172.17.0.2:80\nCOMMIT\n"
    )

    assert follow(firewall_iptables.parse(text, 4), tcp(HIGH)).outcome == "pass"
    assert (
        follow(ruleset([{"redirect": {"port": 80}}], hook="prerouting", type="nat"), tcp(22)).outcome
        == "pass"
    )


def test_a_mark_that_a_rule_may_have_set_leaves_the_answer_open() -> None:
    marks = "-A INPUT -p udp -j MARK --set-xmark 0x8000/0x8000\n-A INPUT -m mark --mark 0x8000/0x8000 -j DROP"

    assert follow(saved(marks), MDNS_IN).outcome == "unknown"
    assert follow(saved(marks), tcp(22)).outcome == "pass"


def test_rules_for_ipv4_do_not_touch_ipv6() -> None:
    assert follow(saved("-A INPUT -p udp -j DROP"), MDNS_IN_6).outcome == "pass"
    assert follow(saved("-A INPUT -p udp -j DROP", family=6), MDNS_IN_6).outcome == "drop"


@given(
    st.lists(
        st.sampled_from(["-p", "udp", "!", "-m", "--dport", "5353", "-j", "DROP", "own", "--x", "-s", "a"])
    )
)
def test_any_words_give_a_rule(words: list[str]) -> None:
    tables = saved("-A INPUT " + " ".join(words))

    assert follow(tables, MDNS_IN).outcome in ("pass", "drop", "unknown")


@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        tables = firewall_iptables.parse(text, 4)
    except MalformedInput:
        return
    assert follow(tables, MDNS_IN).outcome in ("pass", "drop", "unknown")
