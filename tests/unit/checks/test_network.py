"""The checks of interfaces on facts that are broken in one place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.checks.network import lan_interface, mdns_group, missing_cards, multicast
from avahi_gpu.checks.registry import run_checks
from avahi_gpu.model import Address, Facts


def with_lan(facts: Facts, **changed: object) -> Facts:
    loopback, lan = facts.interfaces
    return replace(facts, interfaces=(loopback, replace(lan, **changed)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"up": False}, "eth0: is down"),
        ({"running": False}, "eth0: has no carrier"),
        ({"addresses": ()}, "eth0: has no address of its own"),
    ],
)
def test_an_interface_that_is_not_ready_says_why(
    changed: dict[str, object], reason: str, healthy: Facts
) -> None:
    found = lan_interface(with_lan(healthy, **changed))

    assert found.verdict == "error" and found.evidence == (reason,)


def test_loopback_and_tunnels_are_no_lan(healthy: Facts) -> None:
    found = lan_interface(with_lan(healthy, name="wg0", link="tunnel"))

    assert found.verdict == "error" and "no LAN interface" in found.says
    assert found.evidence == ("lo: loopback", "wg0: tunnel")


def test_a_lan_interface_is_described(healthy: Facts) -> None:
    assert lan_interface(with_lan(healthy, speed_mbit=1000)).evidence == (
        "eth0 10.77.0.1/24 wired 1000 Mbit/s",
    )


def test_no_multicast_is_one_error_with_its_command(healthy: Facts) -> None:
    broken = with_lan(healthy, multicast=False, in_mdns_group=False)

    found = [f for f in run_checks(broken) if f.verdict == "error"]

    assert [f.id for f in found] == ["AG202"]
    assert found[0].fix is not None
    (change,) = found[0].fix.changes
    assert (change.argv[-1], change.undo[-1]) == ("on", "off") and change.question
    assert multicast(healthy).verdict == "ok"


def test_a_daemon_that_listens_nowhere_is_an_error(healthy: Facts) -> None:
    found = mdns_group(with_lan(healthy, in_mdns_group=False))

    assert found.verdict == "error" and found.evidence == ("eth0 is not in 224.0.0.251",)


def test_a_lan_without_ipv4_lacks_the_group_of_ipv6(healthy: Facts) -> None:
    six = (Address("fd77::1", 64, 6, "global"),)

    assert mdns_group(with_lan(healthy, addresses=six)).verdict == "ok"
    found = mdns_group(with_lan(healthy, addresses=six, in_mdns_group=False))
    assert found.evidence == ("eth0 is not in ff02::fb",)


def test_unread_groups_are_unknown(healthy: Facts) -> None:
    assert mdns_group(with_lan(healthy, in_mdns_group=None)).verdict == "unknown"


def test_a_second_card_without_the_group_is_a_warning(healthy: Facts) -> None:
    second = replace(healthy.interfaces[1], name="eth1", index=3, in_mdns_group=False)

    found = mdns_group(replace(healthy, interfaces=(*healthy.interfaces, second)))

    assert found.verdict == "warn" and found.evidence == ("eth1 is not in 224.0.0.251",)


def test_only_the_interfaces_of_the_settings_count_where_they_name_any(healthy: Facts) -> None:
    eth0 = next(i for i in healthy.interfaces if i.name == "eth0")
    two = (*healthy.interfaces, replace(eth0, name="eth1", index=9, in_mdns_group=False))
    facts = replace(healthy, interfaces=two, cards=("eth0",), cards_source="/c.toml:2")

    assert mdns_group(facts).verdict == "ok"
    assert mdns_group(replace(facts, cards=())).verdict == "warn"
    assert mdns_group(replace(facts, cards=("eth1",))).verdict == "error"


def test_an_interface_of_the_settings_that_is_not_there_is_told_with_its_line(healthy: Facts) -> None:
    some = lan_interface(replace(healthy, cards=("eth0", "ib0"), cards_source="/c.toml:2"))
    none = lan_interface(replace(healthy, cards=("ib0",), cards_source="/c.toml:2"))

    assert (some.verdict, none.verdict) == ("warn", "error")
    assert missing_cards(replace(healthy, cards=("eth0", "ib0"))) == ["ib0"]
    assert some.says == none.says == "/c.toml:2: interfaces names ib0, which this machine does not have"


def test_a_loopback_that_is_down_is_set_up_again(healthy: Facts) -> None:
    down = tuple(replace(i, up=False) if i.link == "loopback" else i for i in healthy.interfaces)

    (found,) = [f for f in run_checks(replace(healthy, interfaces=down)) if f.verdict == "error"]

    assert found.id == "AG200" and found.fix is not None
    assert found.fix.changes[0].argv == ("ip", "link", "set", "lo", "up")
