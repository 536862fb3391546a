"""Where instances were seen: repeated and reordered signals, and which place is best."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.avahi.places import MAX_NAMES, Place, Places, is_final

LOOPBACK, ETHERNET, WIRELESS = 1, 2, 3
IPV4, IPV6 = 0, 1

moves = st.lists(
    st.tuples(
        st.sampled_from(["add", "remove"]),
        st.sampled_from(["a", "b"]),
        st.builds(Place, st.integers(1, 3), st.integers(0, 1)),
    )
)


@given(moves)
def test_signals_are_operations_on_sets(moves: list[tuple[str, str, Place]]) -> None:
    """Avahi repeats ItemNew and ItemRemove at times."""
    places, model = Places(), {"a": set(), "b": set()}
    for move, name, place in moves:
        if move == "add":
            assert places.add(name, place) == (place not in model[name])
            model[name].add(place)
        else:
            had = bool(model[name])
            model[name].discard(place)
            assert places.remove(name, place) == (had and not model[name])
        assert set(places.names()) == {n for n, where in model.items() if where}
        assert set(places.best(name)) == model[name]


def test_the_lan_comes_before_loopback_and_ipv4_before_ipv6() -> None:
    places = Places()
    for place in (Place(LOOPBACK, IPV4), Place(ETHERNET, IPV6), Place(ETHERNET, IPV4), Place(LOOPBACK, IPV6)):
        places.add("n", place)

    assert places.best("n") == [
        Place(ETHERNET, IPV4),
        Place(ETHERNET, IPV6),
        Place(LOOPBACK, IPV4),
        Place(LOOPBACK, IPV6),
    ]


def test_a_preferred_interface_comes_first() -> None:
    places = Places(prefer=[WIRELESS])
    places.add("n", Place(ETHERNET, IPV4))
    places.add("n", Place(WIRELESS, IPV6))

    assert places.best("n")[0] == Place(WIRELESS, IPV6)


def test_without_preference_the_first_seen_stays() -> None:
    places = Places()
    places.add("n", Place(WIRELESS, IPV4))
    places.add("n", Place(ETHERNET, IPV4))

    assert places.best("n")[0] == Place(WIRELESS, IPV4)


def test_ipv6_or_loopback_alone_is_not_final() -> None:
    assert not is_final([Place(ETHERNET, IPV6), Place(LOOPBACK, IPV4)])
    assert is_final([Place(ETHERNET, IPV6), Place(ETHERNET, IPV4)])


def test_a_flood_of_names_is_cut_off() -> None:
    places = Places()

    kept = [places.add(f"n{i}", Place(ETHERNET, IPV4)) for i in range(MAX_NAMES + 10)]

    assert sum(kept) == MAX_NAMES
    assert places.add("n0", Place(WIRELESS, IPV4))
