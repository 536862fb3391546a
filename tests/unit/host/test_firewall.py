"""Which packets are asked about, and who keeps the rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.files import firewall_iptables
from avahi_gpu.files.firewall import Chain, Table
from avahi_gpu.host.firewall import (
    HIGH_PORTS,
    Unreadable,
    fates_of,
    keeper_of,
    packets_of,
    parse_port_range,
    read_firewall,
)
from avahi_gpu.host.system import System
from avahi_gpu.model import Address, Interface

CARD = Interface(
    "eth0",
    2,
    "wired",
    up=True,
    running=True,
    multicast=True,
    addresses=(Address("10.77.0.1", 24, 4, "global"), Address("fe80::1", 64, 6, "link")),
)


def test_a_card_with_ipv4_is_asked_about_over_ipv4() -> None:
    assert {packet.family for _, packet in packets_of(CARD, HIGH_PORTS)} == {4}


def test_a_card_without_ipv4_is_asked_about_over_ipv6() -> None:
    alone = replace(CARD, addresses=(Address("fd77::1", 64, 6, "global"), Address("fe80::1", 64, 6, "link")))

    assert {packet.family for _, packet in packets_of(alone, HIGH_PORTS)} == {6}


def test_a_card_without_an_address_is_not_asked_about() -> None:
    assert packets_of(replace(CARD, addresses=()), HIGH_PORTS) == []


def test_a_port_alone_does_not_let_the_other_connections_in() -> None:
    text = "*filter\n:INPUT DROP [0:0]\n-A INPUT -p tcp -m tcp --dport 29500 -j ACCEPT\nCOMMIT\n"

    fates = {p.kind: p for p in fates_of(firewall_iptables.parse(text, 4), CARD)}

    assert (fates["tcp-in"].outcome, fates["tcp-high-in"].outcome) == ("pass", "drop")
    assert fates["mdns-in"].because == "iptables filter INPUT: policy drop"
    assert (fates["mdns-in"].tool, fates["mdns-in"].table, fates["mdns-in"].chain) == (
        "iptables",
        ("ip", "filter"),
        "INPUT",
    )
    assert fates["mdns-out"].outcome == "pass"


def test_rules_for_single_addresses_are_asked_about_the_neighbours() -> None:
    rules = "".join(f"-A INPUT -s 10.77.0.{n}/32 -j ACCEPT\n" for n in (2, 3))
    tables = firewall_iptables.parse(f"*filter\n:INPUT DROP [0:0]\n{rules}COMMIT\n", 4)

    def of(*neighbours: str) -> str:
        return next(f.outcome for f in fates_of(tables, CARD, HIGH_PORTS, neighbours) if f.kind == "tcp-in")

    assert (of(), of("10.77.0.2", "10.77.0.3"), of("10.77.0.9"), of("10.77.0.2", "10.77.0.9")) == (
        "unknown",
        "pass",
        "drop",
        "unknown",
    )


def test_a_narrowed_range_of_ports_is_what_must_be_open() -> None:
    text = "*filter\n:INPUT DROP [0:0]\n-A INPUT -p tcp -m tcp --dport 30000:30100 -j ACCEPT\nCOMMIT\n"
    tables = firewall_iptables.parse(text, 4)

    def of(high: tuple[int, int]) -> str:
        return next(p.outcome for p in fates_of(tables, CARD, high) if p.kind == "tcp-high-in")

    assert (of((30000, 30100)), of((30000, 30200)), of(HIGH_PORTS)) == ("pass", "unknown", "drop")


@pytest.mark.parametrize(
    ("text", "range"),
    [("32768\t60999\n", (32768, 60999)), ("1 2", (1, 2)), ("", HIGH_PORTS), ("a b", HIGH_PORTS)],
)
def test_the_kernels_port_range_is_read(text: str, range: tuple[int, int]) -> None:
    assert parse_port_range(text) == range


@pytest.mark.parametrize(
    ("table", "keeper"),
    [
        (Table("inet", "firewalld"), "firewalld"),
        (Table("ip", "filter", {"INPUT_direct": Chain("INPUT_direct")}, "iptables"), "firewalld"),
        (Table("ip", "filter", {"ufw-before-input": Chain("ufw-before-input")}, "iptables"), "ufw"),
        (Table("inet", "filter"), ""),
    ],
)
def test_who_keeps_the_rules_is_seen_by_their_chains(table: Table, keeper: str) -> None:
    assert keeper_of([table]) == keeper


def test_nobody_but_root_is_told_the_rules() -> None:
    class Users(System):
        is_root = False

    with pytest.raises(Unreadable, match="root"):
        read_firewall(Users(), [CARD])
