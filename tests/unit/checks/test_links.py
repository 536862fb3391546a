"""More interfaces than one, and ways that lead astray."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.checks.registry import run_checks
from avahi_gpu.model import Address, Facts, Finding, Interface, KernelNet, Link, Lookup, WayBack


def interface(name: str, ip: str, prefix: int = 24, link: Link = "wired", **more: object) -> Interface:
    index = 10 + sum(map(ord, name))
    card = Interface(name, index, link, up=True, running=True, multicast=link != "tunnel")
    return replace(card, addresses=(Address(ip, prefix, 4, "global"),), **more)  # type: ignore[arg-type]


def judge(facts: Facts, *more: Interface) -> dict[str, Finding]:
    return {f.id: f for f in run_checks(replace(facts, interfaces=(*facts.interfaces, *more)))}


def ways(facts: Facts, *way: WayBack, most: int = 20) -> Facts:
    return replace(facts, network=replace(facts.network, kernel=KernelNet(way, most)))


def test_a_vpn_that_takes_the_lans_subnet_is_an_error(healthy: Facts) -> None:
    tunnel = interface("wg0", "10.99.0.1", 32, "tunnel")
    found = judge(ways(healthy, WayBack("eth0", "10.77.0.254", "10.99.0.1", strict=True)), tunnel)["AG208"]

    assert found.verdict == "error" and "wg0" in found.says
    assert any("rp_filter" in line for line in found.evidence)


def test_a_lan_without_a_route_is_an_error(healthy: Facts) -> None:
    found = judge(ways(healthy, WayBack("eth0", "10.77.0.254", None, strict=False)))["AG208"]

    assert found.verdict == "error"


def test_a_second_card_in_the_subnet_is_no_wrong_way(healthy: Facts) -> None:
    wifi = interface("wlan0", "10.77.0.101", link="wireless")
    way = WayBack("wlan0", "10.77.0.254", "10.77.0.1", strict=False)

    assert judge(ways(healthy, way), wifi)["AG208"].verdict == "ok"


def test_a_bridge_of_containers_is_not_asked_for_its_way(healthy: Facts) -> None:
    bridge = interface("docker0", "172.17.0.1", 16, "virtual")
    way = WayBack("docker0", "172.17.0.2", "172.17.0.1", strict=True)

    assert judge(ways(healthy, way), bridge)["AG208"].verdict == "ok"


def test_two_cards_in_one_subnet_are_a_warning_with_the_faster_one(healthy: Facts) -> None:
    wifi = interface("wlan0", "10.77.0.101", link="wireless")
    found = judge(healthy, wifi)["AG210"]

    assert found.verdict == "warn" and "allow-interfaces=eth0" in found.hint


def test_two_cards_in_two_subnets_are_fine(healthy: Facts) -> None:
    assert judge(healthy, interface("eth1", "192.168.7.1"))["AG210"].verdict == "ok"


def test_a_vpn_is_worth_knowing_and_a_name_in_it_a_warning(healthy: Facts) -> None:
    tunnel = interface("tailscale0", "100.64.0.1", 32, "tunnel")
    inside = replace(healthy, kernel_name=Lookup("gpu-node-1", ("100.64.0.1",), 0.001))

    assert judge(healthy, tunnel)["AG211"].verdict == "info"
    assert judge(inside, tunnel)["AG211"].verdict == "warn"


@pytest.mark.parametrize(("joined", "verdict"), [(True, "warn"), (False, "error")])
def test_too_many_interfaces_are_an_error_where_the_lan_is_left_out(
    joined: bool, verdict: str, healthy: Facts
) -> None:
    bridges = [interface(f"br-{n}", f"172.18.{n}.1", link="virtual") for n in range(30)]
    kernel = KernelNet((), 20, frozenset({"eth0"} if joined else ()))
    found = judge(replace(healthy, network=replace(healthy.network, kernel=kernel)), *bridges)["AG212"]

    assert found.verdict == verdict
    assert found.fix is not None and found.fix.changes[0].undo[-1].endswith("=20")


def test_virtual_interfaces_are_worth_knowing(healthy: Facts) -> None:
    bridge = interface("docker0", "172.17.0.1", 16, "virtual", in_mdns_group=True)

    assert judge(healthy, bridge)["AG213"].verdict == "info"


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({"mtu": 1200}, "warn"),
        ({"addresses": (Address("10.77.0.1", 32, 4, "global"),)}, "info"),
        ({"addresses": (Address("fd77::1", 64, 6, "global"),)}, "info"),
    ],
)
def test_odd_addresses_are_told(changed: dict[str, object], verdict: str, healthy: Facts) -> None:
    cards = tuple(replace(i, **changed) if i.name == "eth0" else i for i in healthy.interfaces)  # type: ignore[arg-type]
    found = {f.id: f for f in run_checks(replace(healthy, interfaces=cards))}

    assert found["AG214"].verdict == verdict
