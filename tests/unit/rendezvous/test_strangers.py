"""Connections of strangers: a flood never keeps a node of the job out, and people hear of it once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.rendezvous.strangers import STRANGERS_MAX, STRANGERS_PER_HOST, TOLD_MAX, Strangers


@given(st.lists(st.integers(0, 90), max_size=400))
def test_there_are_never_too_many_and_the_newest_always_stays(hosts: list[int]) -> None:
    strangers = Strangers()
    for conn, host in enumerate(hosts):
        gone = strangers.admit(conn, f"10.0.0.{host}")
        if gone is not None:
            assert gone != conn
            strangers.leave(gone)
        assert strangers.address_of(conn) == f"10.0.0.{host}"
        assert len(strangers) <= STRANGERS_MAX
        addresses = [strangers.address_of(c) for c in range(conn + 1)]
        assert all(addresses.count(a) <= STRANGERS_PER_HOST for a in set(addresses) - {""})


def test_a_flood_from_one_host_costs_nobody_else_a_place() -> None:
    strangers = Strangers()
    assert strangers.admit(0, "10.0.0.1") is None
    for conn in range(1, 1000):
        gone = strangers.admit(conn, "10.0.0.9")
        if gone is not None:
            strangers.leave(gone)

    assert strangers.address_of(0) == "10.0.0.1"


def test_a_flood_from_many_hosts_takes_from_the_fullest_one() -> None:
    strangers = Strangers()
    assert strangers.admit(0, "10.0.0.1") is None
    for conn in range(1, 1000):
        gone = strangers.admit(conn, f"10.0.0.{100 + conn % 16}")
        if gone is not None:
            strangers.leave(gone)

    assert strangers.address_of(0) == "10.0.0.1"


def test_people_hear_of_each_thing_once_and_of_so_many_at_most() -> None:
    strangers = Strangers()

    assert strangers.first_time("10.0.0.9", "flood")
    assert not strangers.first_time("10.0.0.9", "flood")
    assert strangers.first_time("10.0.0.9", "other-key")
    assert sum(strangers.first_time(f"10.0.1.{n}", "flood") for n in range(200)) == TOLD_MAX - 2


def test_a_member_whose_questions_have_piled_up_floods_nobody() -> None:
    """A host that was stopped for a while finds one connection for each second, of each of the others."""
    strangers = Strangers()
    strangers.members = frozenset({"10.0.0.1", "10.0.0.2"})

    assert not strangers.first_time("10.0.0.1", "flood")
    assert strangers.first_time("10.0.0.9", "flood")
    assert strangers.first_time("10.0.0.1", "another-key")


def test_what_was_told_of_an_address_is_known() -> None:
    strangers = Strangers()
    strangers.first_time("10.0.0.9", "other-key")

    assert strangers.told("10.0.0.9", ("no-key", "other-key"))
    assert not strangers.told("10.0.0.9", ("no-key",))
    assert not strangers.told("10.0.0.8", ("other-key",))
