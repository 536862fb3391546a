"""Whom to visit of those that records tell of: everybody gets a turn, whatever others publish."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.rendezvous.election import Candidate
from avahi_gpu.rendezvous.hearsay import (
    PAUSE_MAX_S,
    PLACES_MAX,
    VISITS_MAX,
    VISITS_PER_HOST,
    Claim,
    Hearsay,
)

VISIT_S = 0.5  # of a silent place


def candidate(number: int, address: str, port: int = 29400) -> Candidate:
    return Candidate(f"{number:016x}", "gpu-node-1", address, port, 1_000_000)


def visits_until(hearsay: Hearsay, address: str, within: int) -> int | None:
    """Return how many visits' time passes until ``address`` is visited, if nobody else answers."""
    now = 0.0
    for count in range(within):
        taken = hearsay.take(now)
        if any(claim.place[0] == address for claim in taken):
            return count
        now += VISIT_S
        for claim in taken:
            hearsay.done(claim, now, reached=False)
    return None


def test_one_record_is_visited_at_once_and_once() -> None:
    hearsay = Hearsay()
    hearsay.hear("a", candidate(1, "10.0.0.1"))

    (claim,) = hearsay.take(0.0)
    hearsay.done(claim, 0.1, reached=True)

    assert claim.candidate == candidate(1, "10.0.0.1")
    assert not hearsay.take(1000.0)
    hearsay.hear("a", candidate(1, "10.0.0.1"))
    assert not hearsay.take(1000.0)


def test_another_start_at_the_same_place_is_visited_again_also_during_a_visit() -> None:
    hearsay = Hearsay()
    hearsay.hear("a", candidate(1, "10.0.0.1"))
    (claim,) = hearsay.take(0.0)
    hearsay.hear("b", candidate(2, "10.0.0.1"))
    assert not hearsay.take(0.1)

    hearsay.done(claim, 0.2, reached=True)

    assert hearsay.take(0.2) == [claim]


def test_where_nobody_answers_the_pauses_grow() -> None:
    hearsay = Hearsay()
    hearsay.hear("a", candidate(1, "10.0.0.1"))
    now, moments = 0.0, []
    for _ in range(8):
        (claim,) = hearsay.take(now)
        moments.append(now)
        hearsay.done(claim, now, reached=False)
        due = hearsay.next_change()
        assert due is not None
        assert not hearsay.take(due - 0.01)
        now = due

    pauses = [b - a for a, b in pairwise(moments)]
    assert pauses == [1, 2, 4, 8, 16, PAUSE_MAX_S, PAUSE_MAX_S]


def test_thousands_of_records_of_one_host_are_twenty_places() -> None:
    """Only the ports where a node can listen count, and each once."""
    hearsay = Hearsay()
    for n in range(10_000):
        hearsay.hear(f"a-{n}", candidate(n, "10.0.0.9", 29_000 + n % 1000))
    hearsay.hear("real", candidate(10_001, "10.0.0.1"))

    assert len(hearsay.claims) == 21
    assert visits_until(hearsay, "10.0.0.1", 3) == 0
    assert sum(claim.place[0] == "10.0.0.9" for claim in hearsay.claims.values()) == 20


def test_a_node_behind_a_thousand_silent_addresses_has_its_turn_within_eight_seconds() -> None:
    hearsay = Hearsay()
    for n in range(4000):
        hearsay.hear(f"a-{n}", candidate(n, f"10.9.{n % 1000 // 250}.{n % 250}", 29400 + n // 1000))
    hearsay.hear("real", candidate(10_001, "10.0.0.1"))

    visits = visits_until(hearsay, "10.0.0.1", 100)

    assert visits is not None
    assert visits * VISIT_S <= 8.0


def test_where_there_is_no_more_room_whoever_never_answered_goes() -> None:
    hearsay = Hearsay()
    for n in range(2 * PLACES_MAX):
        hearsay.hear(f"a-{n}", candidate(n, f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}"))
    assert len(hearsay.claims) == PLACES_MAX
    for claim in hearsay.take(0.0):
        hearsay.done(claim, 0.5, reached=False)

    hearsay.hear("real", candidate(10_001, "10.200.0.1"))

    assert ("10.200.0.1", 29400) in hearsay.claims
    assert len(hearsay.claims) == PLACES_MAX


names = st.sampled_from("abcdefgh")
places = st.tuples(st.integers(1, 4), st.integers(29399, 29402))
happenings = st.one_of(
    st.tuples(st.just("hear"), names, places, st.integers(1, 3)),
    st.tuples(st.just("forget"), names),
    st.tuples(st.just("take"), st.floats(0, 3)),
    st.tuples(st.just("done"), st.booleans()),
)


@given(st.lists(happenings, max_size=60))
def test_whatever_happens_visits_are_few_and_only_to_where_a_record_points(happened: list[tuple]) -> None:  # type: ignore[type-arg]
    hearsay, now = Hearsay(), 0.0
    records: dict[str, tuple[str, int]] = {}
    under_way: list[Claim] = []
    for what, *rest in happened:
        if what == "hear":
            name, (host, port), number = rest
            hearsay.hear(name, candidate(number, f"10.0.0.{host}", port))
            records[name] = (f"10.0.0.{host}", port)
        elif what == "forget":
            hearsay.forget(rest[0])
            records.pop(rest[0], None)
        elif what == "take":
            now += rest[0]
            taken = hearsay.take(now)
            for claim in taken:
                assert claim.place in records.values()
                assert claim not in under_way
            under_way += taken
        elif under_way:
            hearsay.done(under_way.pop(0), now, reached=rest[0])
        hosts = [claim.place[0] for claim in under_way]
        assert len(under_way) <= VISITS_MAX
        assert all(hosts.count(host) <= VISITS_PER_HOST for host in hosts)
        places_named = {place for place in records.values() if 29400 <= place[1] <= 29419}
        assert set(hearsay.claims) == places_named
