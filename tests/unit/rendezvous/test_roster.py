"""When a round closes, with whom and in which order; who is left out of a broken mesh."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.rendezvous.messages import Token
from avahi_gpu.rendezvous.roster import READY_LIMIT_S, Member, Proposal, Roster, common_address
from avahi_gpu.rendezvous.terms import LAST_CALL_S, Terms
from tests.unit.rendezvous.desk import node

NOBODY: frozenset[str] = frozenset()
OWN = node(5).id


def member(number: int, *, ready: bool = True, since: float = 0.0, here: str = "") -> Member:
    return Member(node(number), number, node(number).address, here, 0, since, ready=ready, mesh_port=42000)


def roster(*members: Member) -> Roster:
    book = Roster()
    for one in members:
        book.admit(one)
    return book


def close(
    book: Roster, smallest: int, largest: int, now: float, previous: frozenset[str] = NOBODY, coming: int = 0
):  # type: ignore[no-untyped-def]
    order = book.close(
        Terms("job", min_nodes=smallest, max_nodes=largest), OWN, now, previous=previous, coming=coming
    )
    return order and [int(id, 16) for id in order]


def test_a_round_closes_at_once_when_the_largest_number_is_there() -> None:
    assert close(roster(member(7), member(6)), 2, 3, 0.0) == [5, 6, 7]


def test_a_round_stays_open_below_the_smallest_number() -> None:
    assert close(roster(member(7)), 3, 3, 1e6) is None


def test_members_that_are_not_ready_do_not_count() -> None:
    assert close(roster(member(7), member(6, ready=False)), 3, 3, 0.0) is None


def test_between_smallest_and_largest_the_last_call_passes_first() -> None:
    book = roster(member(7))

    assert close(book, 2, 3, 10.0) is None
    assert book.next_change(10.0) == 10.0 + LAST_CALL_S
    assert close(book, 2, 3, 10.0 + LAST_CALL_S - 0.01) is None
    assert close(book, 2, 3, 10.0 + LAST_CALL_S) == [5, 7]


def test_the_last_call_starts_anew_after_the_number_fell_below_the_smallest() -> None:
    book = roster(member(7))
    close(book, 2, 3, 10.0)
    gone = book.members.pop(node(7).id)
    close(book, 2, 3, 11.0)
    book.admit(gone)

    assert close(book, 2, 3, 10.0 + LAST_CALL_S) is None


def test_after_a_loss_nobody_is_waited_for_who_is_not_known_to_come() -> None:
    previous = frozenset({OWN, node(7).id, node(6).id})

    assert close(roster(member(7)), 2, 3, 10.0, previous) == [5, 7]
    assert close(roster(member(7)), 2, 3, 10.0, previous, coming=1) is None


def test_members_that_still_stop_their_workers_are_waited_for_within_reason() -> None:
    previous = frozenset({OWN, node(7).id, node(6).id})
    book = roster(member(7), member(6, ready=False, since=10.0))

    assert close(book, 2, 3, 10.0 + READY_LIMIT_S - 0.1, previous) is None
    assert close(book, 2, 3, 10.0 + READY_LIMIT_S, previous) == [5, 7]


def test_members_of_the_last_round_go_before_spares_and_spares_in_the_order_they_came() -> None:
    book = roster(member(1), member(2), member(9))

    assert close(book, 2, 3, 0.0) == [5, 1, 2]
    assert close(book, 2, 3, 0.0, previous=frozenset({OWN, node(9).id})) == [5, 1, 9]


def test_ranks_follow_the_natural_order_of_hosts_whoever_came_first() -> None:
    book = roster(member(10), member(2), member(1))

    assert close(book, 4, 4, 0.0) == [5, 1, 2, 10]


@given(
    st.integers(1, 6),
    st.integers(0, 5),
    st.lists(st.tuples(st.integers(10, 30), st.booleans()), max_size=9, unique_by=lambda x: x[0]),
    st.sets(st.integers(10, 30)),
    st.floats(0, 100),
    st.integers(0, 3),
)
def test_a_closed_round_is_always_a_legal_one(smallest, more, members, before, now, coming) -> None:  # type: ignore[no-untyped-def]
    book = roster(*(member(number, ready=ready) for number, ready in members))
    previous = frozenset(node(number).id for number in before)
    order = close(book, smallest, smallest + more, now, previous, coming)
    ready = {number for number, is_ready in members if is_ready}

    if order is not None:
        assert smallest <= len(order) <= smallest + more
        assert order[0] == 5
        assert len(set(order)) == len(order)
        assert set(order[1:]) <= ready
    elif 1 + len(ready) >= smallest + more:
        raise AssertionError("the largest number is there, and it stayed open")


def test_another_start_of_a_host_replaces_the_earlier_one() -> None:
    book = roster(member(7))
    newer = Member(node(0xABC, host="node-7"), 99, node(7).address, "", 0, 0.0)

    assert [old.candidate.id for old in book.admit(newer)] == [node(7).id]
    assert list(book.members) == [node(0xABC).id]


def test_machines_that_share_a_name_are_two_members() -> None:
    book = roster(member(7))

    assert book.admit(Member(node(8, host="node-7"), 8, node(8).address, "", 0, 0.0)) == []
    assert len(book.members) == 2


def test_the_leaders_address_is_the_one_that_most_members_dialled() -> None:
    members = [member(1, here="10.77.0.5"), member(2, here="192.168.1.5"), member(3, here="192.168.1.5")]

    assert common_address(members, "10.0.0.1") == "192.168.1.5"
    assert common_address([], "10.0.0.1") == "10.0.0.1"
    assert common_address([member(1)], "10.0.0.1") == "10.0.0.1"


def proposal(size: int) -> Proposal:
    return Proposal(Token(1, "a"), tuple("abcdefgh"[:size]), "10.77.0.5", 0.0)


def test_the_one_node_that_nobody_reaches_is_the_misfit() -> None:
    broken = proposal(4)
    broken.unreached = {"a": ("d",), "b": ("d",), "c": ("d",)}

    assert broken.misfits(NOBODY) == {"d"}


def test_the_one_node_that_reaches_nobody_is_the_misfit() -> None:
    broken = proposal(4)
    broken.unreached = {"c": ("a", "b", "d")}

    assert broken.misfits(NOBODY) == {"c"}


def test_of_two_that_miss_each_other_the_newcomer_goes() -> None:
    broken = proposal(3)
    broken.unreached = {"b": ("c",), "c": ("b",)}

    assert broken.misfits(frozenset({"a", "b"})) == {"c"}
    assert broken.misfits(frozenset({"a", "c"})) == {"b"}


def test_ids_from_outside_the_round_accuse_nobody() -> None:
    broken = proposal(3)
    broken.unreached = {"b": ("zzz",)}

    assert broken.misfits(NOBODY) == set()


@given(st.integers(2, 6), st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5))))
def test_without_the_misfits_everybody_reaches_everybody(size: int, gaps: set[tuple[int, int]]) -> None:
    broken = proposal(size)
    order = broken.order
    gaps = {(a, b) for a, b in gaps if a != b and a < size and b < size}
    for by, id in gaps:
        broken.unreached[order[by]] = (*broken.unreached.get(order[by], ()), order[id])
    misfits = broken.misfits(NOBODY)

    assert order[0] not in misfits
    rest = [i for i, id in enumerate(order) if id not in misfits]
    assert not any((a, b) in gaps or (b, a) in gaps for a, b in combinations(rest, 2))
