"""Who is a neighbour, and whom a trial asks first."""

from __future__ import annotations

import time

import pytest

from avahi_gpu.files.mdns_message import Datagram, Message
from avahi_gpu.host.hearing import NEIGHBOURS_MAX, TOLD_S, Trial, parse_arp
from avahi_gpu.model import Address, Interface

CARD = Interface(
    "eth0",
    2,
    "wired",
    up=True,
    running=True,
    multicast=True,
    addresses=(Address("10.77.0.1", 24, 4, "global"),),
)
ARP = """IP address       HW type     Flags       HW address            Mask     Device
10.77.0.2        0x1         0x2         02:42:0a:4d:00:02     *        eth0
10.77.0.9        0x1         0x0         00:00:00:00:00:00     *        eth0
10.77.0.3        0x1         0x6         02:42:0a:4d:00:03     *        eth0
nonsense
"""


def test_neighbours_are_those_that_have_answered() -> None:
    assert parse_arp(ARP) == ["10.77.0.2", "10.77.0.3"]
    assert parse_arp("") == []


def test_nodes_are_asked_before_other_neighbours_and_we_never() -> None:
    trial = Trial(CARD)
    for address in ("10.77.0.254", "10.77.0.1"):
        trial.add(address, node=False)
    trial.add("10.77.0.2", node=True)
    trial.add("10.77.0.254", node=False)

    assert trial.waiting == ["10.77.0.2", "10.77.0.254"]


def test_no_more_than_some_are_asked() -> None:
    trial = Trial(CARD)
    for number in range(2, 100):
        trial.add(f"10.77.0.{number}", node=False)

    assert len(trial.waiting) == NEIGHBOURS_MAX


def test_own_packets_and_other_peoples_questions_are_no_answers() -> None:
    trial = Trial(CARD)
    question = Message(response=False, asked=("2.0.77.10.in-addr.arpa",), told=())
    trial.see(True, Datagram("10.77.0.1", question))
    trial.see(False, Datagram("10.77.0.1", question))
    trial.see(False, Datagram("10.77.0.3", question))

    assert (trial.sent, list(trial.seen), list(trial.replied)) == (True, ["10.77.0.3"], [])


@pytest.mark.parametrize("way", ["mute", "deaf", "cut off"])
def test_what_looks_like_a_fault_is_doubted_until_an_answer_is_there(way: str) -> None:
    trial = Trial(CARD)
    trial.tapped = True
    trial.add("10.77.0.2", node=True)
    assert not trial.is_ill  # nobody was asked yet
    trial.states["10.77.0.2"] = "asked"
    trial.sent = way != "mute"
    if way == "deaf":
        trial.replied["10.77.0.2"] = 0.0
    if way == "cut off":
        assert not trial.is_ill  # a node that is off
        trial.alive = ["10.77.0.2"]

    assert trial.is_ill
    trial.states["10.77.0.2"] = "answered"
    assert not trial.is_ill


def test_an_answer_of_the_last_moment_is_no_proof_that_avahi_daemon_is_deaf() -> None:
    trial = Trial(CARD)
    trial.tapped = trial.sent = True
    for address in ("10.77.0.2", "10.77.0.3"):
        trial.add(address, node=True)
        trial.states[address] = "asked"
    trial.alive = ["10.77.0.2", "10.77.0.3"]
    trial.replied = {"10.77.0.2": time.monotonic(), "10.77.0.3": time.monotonic() - 2 * TOLD_S}

    ear = trial.ear()

    assert (ear.asked, ear.nodes, ear.replied) == (("10.77.0.3",), ("10.77.0.3",), ("10.77.0.3",))
    assert "10.77.0.2" not in (*ear.alive, *ear.hardly_asked)
