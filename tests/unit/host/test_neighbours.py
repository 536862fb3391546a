"""ARP and neighbour discovery: packets as they stand in the RFCs, and what comes back."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.host import neighbours
from avahi_gpu.model import Address, Interface

CARD = bytes.fromhex("020000000003")
REQUEST = bytes.fromhex(
    "ffffffffffff" "020000000001" "0806" "0001" "0800" "06" "04" "0001"
    "020000000001" "0a4d0001" "000000000000" "0a4d0003" + 18 * "00"
)  # fmt: skip
REPLY = bytes.fromhex(
    "020000000001" "020000000003" "0806" "0001" "0800" "06" "04" "0002"
    "020000000003" "0a4d0003" "020000000001" "0a4d0001"
)  # fmt: skip


def test_a_request_asks_everybody() -> None:
    assert neighbours.arp_request(bytes.fromhex("020000000001"), "10.77.0.1", "10.77.0.3") == REQUEST


def test_a_reply_tells_the_card_of_the_address_that_was_asked_for() -> None:
    assert neighbours.read_arp(REPLY, "10.77.0.3") == "02:00:00:00:00:03"
    assert neighbours.read_arp(REPLY, "10.77.0.4") is None
    assert neighbours.read_arp(REQUEST, "10.77.0.3") is None
    assert neighbours.read_arp(REPLY[:41], "10.77.0.3") is None


def test_the_owner_of_an_ipv6_address_is_asked_in_its_group() -> None:
    assert neighbours.solicited_node("fe80::1:2:3") == "ff02::1:ff02:3"


@pytest.mark.parametrize(("option", "card"), [(b"\x02\x01" + CARD, "02:00:00:00:00:03"), (b"", "?")])
def test_an_advertisement_tells_the_card(option: bytes, card: str) -> None:
    packet = b"\x88\0\0\0\x60\0\0\0" + bytes.fromhex("fe80000000000000000000000000000a") + option

    assert neighbours.read_advertisement(packet, "fe80::a") == card
    assert neighbours.read_advertisement(packet, "fe80::b") is None


@given(st.binary(max_size=80))
def test_any_packet_is_survived(packet: bytes) -> None:
    assert neighbours.read_arp(packet, "10.77.0.3") in {None, packet[22:28].hex(":")}
    neighbours.read_advertisement(packet, "fe80::a")


class Entry(dict[str, Any]):
    def get_attr(self, name: str) -> Any:
        return self.get(name)


@pytest.mark.parametrize(
    ("state", "confirmed", "found"),
    [
        (0x20, 0, ()),  # failed
        (0x01, 0, ()),  # incomplete
        (0x02, 50, ("02:00:00:00:00:03",)),  # reachable, half a second ago
        (0x08, 3000, None),  # the kernel relies on an old answer for now
    ],
)
def test_the_kernels_table_tells_what_it_has_found_out(
    state: int, confirmed: int, found: tuple[str, ...] | None
) -> None:
    entry = Entry(
        state=state,
        NDA_DST="10.77.0.3",
        NDA_LLADDR="02:00:00:00:00:03",
        NDA_CACHEINFO={"ndm_confirmed": confirmed},
    )

    assert neighbours.read_neighbour([entry], "10.77.0.3", 1.0) == found
    assert neighbours.read_neighbour([entry], "10.77.0.4", 1.0) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may ask by ARP")
def test_a_card_that_is_not_ethernet_tells_nothing() -> None:
    loopback = Interface(
        "lo", 1, "loopback", True, True, False, addresses=(Address("127.0.0.1", 8, 4, "host"),)
    )

    assert asyncio.run(neighbours.ask_cards("127.0.0.1", loopback, within_s=0.2)) is None
