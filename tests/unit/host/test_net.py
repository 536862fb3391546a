"""Interfaces of this machine, the choice of the LAN, and probes of addresses that are our own."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import time
from dataclasses import replace

import pytest

from avahi_gpu.host import net
from avahi_gpu.model import Address, Interface


def interface(name: str, index: int, ip: str = "", **other: object) -> Interface:
    addresses = (Address(ip, 24, 4, "global"),) if ip else ()
    wired = Interface(name, index, "wired", up=True, running=True, multicast=True, addresses=addresses)
    return replace(wired, **other)  # type: ignore[arg-type]


ETHERNET = interface("eth0", 2, "192.0.2.5")
SLOW = interface("eth1", 3, "198.51.100.5", speed_mbit=1000)
FAST = interface("eth2", 4, "203.0.113.5", speed_mbit=10000)
WIRELESS = interface("wlan0", 5, "192.0.2.6", link="wireless")
DOCKER = interface("docker0", 6, "172.17.0.1", link="virtual")
TUNNEL = interface("wg0", 7, "10.9.0.1", link="tunnel")
LOOPBACK = interface("lo", 1, "127.0.0.1", link="loopback")


def test_the_lan_is_wired_before_wireless_before_virtual() -> None:
    everything = (LOOPBACK, DOCKER, WIRELESS, TUNNEL, ETHERNET)

    assert net.lan_interfaces(everything) == (ETHERNET, WIRELESS, DOCKER)


def test_among_wired_ones_the_faster_comes_first() -> None:
    assert net.lan_interfaces((ETHERNET, SLOW, FAST)) == (FAST, SLOW, ETHERNET)


@pytest.mark.parametrize(
    "unfit",
    [
        replace(ETHERNET, running=False),
        replace(ETHERNET, addresses=()),
        replace(ETHERNET, addresses=(Address("fe80::1", 64, 6, "link"),)),
    ],
    ids=["no cable", "no address", "link-local alone"],
)
def test_an_interface_without_cable_or_address_is_no_lan(unfit: Interface) -> None:
    assert net.lan_interfaces((unfit,)) == ()


def test_an_interface_with_ipv6_alone_is_a_lan_but_the_second_choice() -> None:
    six = replace(ETHERNET, addresses=(Address("2001:db8::5", 64, 6, "global"),))

    assert net.lan_interfaces((six, SLOW)) == (SLOW, six)


def test_an_address_belongs_to_its_own_interface_before_the_network_around_it() -> None:
    everything = (LOOPBACK, ETHERNET, WIRELESS, DOCKER)

    assert net.interface_of("192.0.2.6", everything) == WIRELESS
    assert net.interface_of("192.0.2.77", everything) == ETHERNET
    assert net.interface_of("172.17.0.9", everything) == DOCKER


def test_the_narrowest_network_wins() -> None:
    wide = interface("eth0", 2, addresses=(Address("10.0.0.1", 8, 4, "global"),))
    narrow = interface("eth1", 3, addresses=(Address("10.1.2.1", 24, 4, "global"),))

    assert net.interface_of("10.1.2.9", (wide, narrow)) == narrow


@pytest.mark.parametrize("address", ["8.8.8.8", "2001:db8::1", "gpu-node-1", "", "10.0.0.1; rm"])
def test_an_address_behind_a_router_or_none_at_all_has_no_interface(address: str) -> None:
    assert net.interface_of(address, (ETHERNET, WIRELESS)) is None


def test_a_link_local_address_with_its_zone_is_understood() -> None:
    six = replace(ETHERNET, addresses=(Address("fe80::5", 64, 6, "link"),))

    assert net.interface_of("fe80::9%eth0", (six,)) == six


@pytest.mark.skipif(shutil.which("ip") is None, reason="needs iproute2")
def test_what_is_read_agrees_with_ip() -> None:
    told = json.loads(subprocess.run(["ip", "-j", "address"], capture_output=True, check=True).stdout)

    read = net.read_interfaces()

    assert [(i.index, i.name, i.mtu) for i in read] == [(t["ifindex"], t["ifname"], t["mtu"]) for t in told]
    for ours, theirs in zip(read, told, strict=True):
        assert ours.up == ("UP" in theirs["flags"])
        assert ours.multicast == ("MULTICAST" in theirs["flags"])
        settled = [a for a in theirs["addr_info"] if not a.get("tentative")]
        assert [(a.ip, a.prefix) for a in ours.addresses] == [(a["local"], a["prefixlen"]) for a in settled]
    assert read[0].link == "loopback"


def test_reading_works_inside_and_outside_of_an_event_loop() -> None:
    async def inside() -> tuple[Interface, ...]:
        return net.read_interfaces()

    assert asyncio.run(inside()) == net.read_interfaces()


def test_the_source_towards_our_own_address_is_loopback_or_it() -> None:
    assert net.route_source("127.0.0.2") == "127.0.0.1"


@pytest.mark.parametrize("address", ["", "gpu-node-1.local", "300.1.1.1", "fe80::1%nosuch0"])
def test_what_is_no_address_has_no_source(address: str) -> None:
    """Nothing is looked up, whatever it looks like."""
    started = time.monotonic()

    assert net.route_source(address) is None
    assert time.monotonic() - started < 0.5


def probe(address: str, port: int, within_s: float = 1.0) -> bool | None:
    return asyncio.run(net.probe(address, port, within_s))


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def test_a_refused_connection_is_a_sign_of_life() -> None:
    async def connects() -> bool:
        return await net._connects("127.0.0.1", free_port(), 0)

    assert asyncio.run(connects())


def test_an_accepted_connection_is_a_sign_of_life() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert probe("127.0.0.1", server.getsockname()[1]) is True


def test_an_echo_is_a_sign_of_life() -> None:
    async def echoes(address: str) -> bool | None:
        return await net._echoes(address, 0, 1.0)

    answer = asyncio.run(echoes("127.0.0.1"))
    if answer is None:
        pytest.skip("this user may send no echo, and there is no ping")
    assert answer is True


def test_ipv6_is_probed_too() -> None:
    if not any(a.ip == "::1" for i in net.read_interfaces() for a in i.addresses):
        pytest.skip("no IPv6 here")
    assert probe("::1", free_port()) is True
    assert asyncio.run(net._echoes("::1", 0, 1.0)) in (True, None)


def test_an_interface_that_is_not_there_reaches_nobody() -> None:
    assert probe("fe80::1%nosuch0", 1) is False


def test_probing_leaves_no_socket_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        probe("127.0.0.1", free_port())
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("data", "checksum"), [(b"", 0xFFFF), (b"\x00\x01\xf2\x03\xf4\xf5\xf6\xf7", 0x220D), (b"\x01", 0xFEFF)]
)
def test_the_checksum_is_that_of_rfc_1071(data: bytes, checksum: int) -> None:
    assert net.internet_checksum(data) == checksum
