"""Connections of strangers: a flood never keeps a node of the job out, and people hear of it once."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.rendezvous.strangers import STRANGERS_MAX, STRANGERS_PER_HOST, TOLD_MAX, Strangers


@given(st.lists(st.integers(0, 90), max_size=400))
def test_there_are_never_too_many_and_the_newest_always_stays(hosts: list[int]) -> None:
    strangers = Strangers(random.Random(1).choice)
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
    strangers = Strangers(random.Random(1).choice)
    assert strangers.admit(0, "10.0.0.1") is None
    for conn in range(1, 1000):
        gone = strangers.admit(conn, "10.0.0.9")
        if gone is not None:
            strangers.leave(gone)

    assert strangers.address_of(0) == "10.0.0.1"


def test_a_flood_from_many_hosts_takes_from_the_fullest_one() -> None:
    strangers = Strangers(random.Random(1).choice)
    assert strangers.admit(0, "10.0.0.1") is None
    for conn in range(1, 1000):
        gone = strangers.admit(conn, f"10.0.0.{100 + conn % 16}")
        if gone is not None:
            strangers.leave(gone)

    assert strangers.address_of(0) == "10.0.0.1"


def survivals(known: bool, arrivals: int) -> int:
    """Return how many newcomers of 200 still have their place after a flood from 150 addresses."""
    chance = random.Random(1)
    strangers = Strangers(chance.choice)
    strangers.known = lambda: {"10.0.0.1"} if known else set()
    conn = survived = 0
    for _ in range(200):
        newcomer, conn = conn, conn + 1
        for number in range(arrivals + 1):
            address = f"10.1.0.{chance.randrange(150)}" if number else "10.0.0.1"
            gone = strangers.admit(newcomer + number, address)
            if gone is not None:
                strangers.leave(gone)
        conn += arrivals
        survived += strangers.address_of(newcomer) == "10.0.0.1"
        strangers.leave(newcomer)
    return survived


def test_a_flood_from_more_hosts_than_places_leaves_a_newcomer_a_chance() -> None:
    """The oldest would go for sure after as many arrivals as there are places."""
    assert survivals(known=False, arrivals=STRANGERS_MAX) > 40


def test_a_flood_costs_an_expected_newcomer_nothing() -> None:
    assert survivals(known=True, arrivals=1000) == 200


def test_people_hear_of_each_thing_once_and_of_so_many_at_most() -> None:
    strangers = Strangers(random.Random(1).choice)

    assert strangers.first_time("10.0.0.9", "flood")
    assert not strangers.first_time("10.0.0.9", "flood")
    assert strangers.first_time("10.0.0.9", "other-key")
    assert sum(strangers.first_time(f"10.0.1.{n}", "flood") for n in range(200)) == TOLD_MAX - 2


def test_a_member_whose_questions_have_piled_up_floods_nobody() -> None:
    """A host that was stopped for a while finds one connection for each second, of each of the others."""
    strangers = Strangers(random.Random(1).choice)
    strangers.members = frozenset({"10.0.0.1", "10.0.0.2"})

    assert not strangers.first_time("10.0.0.1", "flood")
    assert strangers.first_time("10.0.0.9", "flood")
    assert strangers.first_time("10.0.0.1", "another-key")


def test_what_was_told_of_an_address_is_known() -> None:
    strangers = Strangers(random.Random(1).choice)
    strangers.first_time("10.0.0.9", "other-key")

    assert strangers.told("10.0.0.9", ("no-key", "other-key"))
    assert not strangers.told("10.0.0.9", ("no-key",))
    assert not strangers.told("10.0.0.8", ("other-key",))
