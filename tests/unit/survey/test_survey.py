"""Whom a node is told to try, at which address, and what its answers are taken for. No connection is made."""

from __future__ import annotations

from avahi_gpu.model import Address, Attached, SurveyedNode
from avahi_gpu.survey import messages as m
from avahi_gpu.survey.roll import Entry
from avahi_gpu.survey.survey import address_for, frame_between, mtu_of, passage_of


def node(name: str, address: str, *networks: tuple[str, str, int, int]) -> SurveyedNode:
    told = tuple(Attached(i, mtu, (Address(ip, prefix, 4, "global"),)) for i, ip, prefix, mtu in networks)
    return SurveyedNode(name, address=address, networks=told)


ONE = node("one", "10.0.0.1", ("eth0", "10.0.0.1", 24, 1500), ("eth1", "10.1.0.1", 24, 9000))
TWO = node("two", "10.0.0.2", ("eth0", "10.0.0.2", 24, 1500), ("eth1", "10.1.0.2", 24, 1400))
FAST_ONLY = node("fast", "10.1.0.3", ("eth1", "10.1.0.3", 24, 9000))
AWAY = node("away", "10.9.0.4", ("eth0", "10.9.0.4", 24, 1500))


def test_a_node_is_tried_at_an_address_of_a_network_that_both_are_on() -> None:
    assert address_for(ONE, TWO) == "10.0.0.2"
    assert address_for(FAST_ONLY, TWO) == "10.1.0.2"
    assert address_for(TWO, AWAY) == "10.9.0.4"  # the one that everybody uses, where no network is shared


def test_a_full_frame_is_what_both_ends_of_the_way_take() -> None:
    assert frame_between(ONE, TWO, "10.0.0.2") == 1500
    assert frame_between(FAST_ONLY, TWO, "10.1.0.2") == 1400
    assert frame_between(TWO, AWAY, "10.9.0.4") == 0
    assert mtu_of(TWO, "10.1.0.2") == 1400 and mtu_of(TWO, "10.5.0.1") == 0


def test_a_port_that_refuses_tells_something_only_where_somebody_listens() -> None:
    refused, silent, fine = m.Tried(False, "refused"), m.Tried(False, "no answer"), m.Tried(True)
    target = Entry(TWO, ports=((29400, "control", False), (29500, "store", True), (41000, "high", False)))

    there = passage_of(Entry(ONE), target, m.Report(echo=fine, ports=(refused, refused, silent)))
    short = passage_of(Entry(ONE), target, m.Report(echo=fine, ports=(fine,)))

    assert [t.ok for t in there.ports] == [None, False, False]
    assert (there.source, there.target, there.state) == ("one", "two", "ports")
    assert short.state == "ok"


def test_where_nothing_could_be_tried_nothing_is_known() -> None:
    none = m.Tried(None, "this node does not see it")

    assert passage_of(Entry(ONE), Entry(TWO), m.Report(none, none, none, none)).state == "unknown"
