"""Which link or node is to blame, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.gauge.verdict import judge
from avahi_gpu.model.gauge import GaugedLink, GaugedNode, Measurement

GBIT = 1e9
Pair = tuple[int, int]


def lan(
    count: int = 3,
    *,
    speed: int | None = 1000,
    slow: Mapping[Pair, float] | None = None,
    rate: float = 0.941 * GBIT,
    cards: Mapping[int, Mapping[str, object]] | None = None,
    resent: float = 0.0,
    trip_s: float = 0.0001,
) -> Measurement:
    """Nodes a, b, c … whose links give ``rate``, but for those of ``slow``."""
    nodes = [
        GaugedNode(
            "abcdefghijkl"[i],
            f"10.0.0.{i + 1}",
            "eth0",
            **{"link": "wired", "speed_mbit": speed, "duplex": "full", **(cards or {}).get(i, {})},  # type: ignore[arg-type]
        )
        for i in range(count)
    ]
    links = [
        GaugedLink(
            s,
            t,
            (slow or {}).get((s, t), rate),
            round_trip_s=trip_s,
            resent=resent if (s, t) in (slow or {}) else 0.0,
        )
        for s in range(count)
        for t in range(count)
        if s != t
    ]
    return Measurement(tuple(nodes), tuple(links))


def both(*pairs: Pair, rate: float = 0.09 * GBIT) -> dict[Pair, float]:
    return {pair: rate for s, t in pairs for pair in ((s, t), (t, s))}


@pytest.mark.parametrize("count", [2, 3, 10])
def test_equal_links_are_no_trouble_and_the_slowest_is_named_all_the_same(count: int) -> None:
    found = judge(lan(count))

    assert found.troubles == ()
    assert found.summary == "slowest link: a to b, 0.941 Gbit/s, 0.94 of the 1 Gbit/s of its cards"


def test_a_bad_cable_of_one_node_is_that_node_and_nothing_else() -> None:
    found = judge(lan(3, slow=both((2, 0), (2, 1))))

    assert found.troubles == (
        "every link to and from c is slow, about 90.0 Mbit/s, the others give 0.941 Gbit/s. "
        "Is it c's own cable, port or card, a slower switch in between, a rate limit, or load?",
    )
    assert {(x.source, x.target) for x in found.slow} == {(0, 2), (2, 0), (1, 2), (2, 1)}


def test_two_bad_cables_are_two_nodes() -> None:
    slow = both((2, 0), (2, 1), (2, 3), (3, 0), (3, 1))

    assert [t.partition(" is slow")[0] for t in judge(lan(4, slow=slow)).troubles] == [
        "every link to and from c",
        "every link to and from d",
    ]


def test_a_single_pair_is_that_pair() -> None:
    found = judge(lan(4, slow=both((1, 2))))

    assert len(found.troubles) == 1
    assert found.troubles[0].startswith(
        "the link between b and c is slow both ways, 90.0 Mbit/s, 0.09 of what the cards give."
    )


def test_one_way_alone_points_to_the_duplex() -> None:
    (trouble,) = judge(lan(2, slow={(0, 1): 0.05 * GBIT})).troubles

    assert trouble.startswith("a to b is slow, 50.0 Mbit/s")
    assert "duplex mismatch" in trouble


def test_a_node_that_only_sends_badly_is_told_so() -> None:
    (trouble,) = judge(lan(3, slow={(2, 0): 0.05 * GBIT, (2, 1): 0.05 * GBIT})).troubles

    assert trouble.startswith("every link from c is slow") and "duplex mismatch" in trouble


def test_wireless_half_duplex_and_lost_frames_are_named() -> None:
    slow = both((2, 0), (2, 1))
    radio = judge(lan(3, slow=slow, cards={2: {"link": "wireless", "speed_mbit": None}})).troubles
    half = judge(lan(3, slow=slow, cards={2: {"duplex": "half"}})).troubles
    lossy = judge(lan(3, slow=slow, resent=0.034)).troubles

    assert "c is on Wi-Fi" in radio[0]
    assert "eth0 of c runs half duplex" in half[0]
    assert "3.4% of the segments" in lossy[0]


def test_a_card_that_negotiated_less_is_named_and_its_links_are_not() -> None:
    found = judge(lan(3, slow=both((2, 0), (2, 1), rate=94e6), cards={2: {"speed_mbit": 100}}))

    assert found.troubles == (
        "eth0 of c runs at 100 Mbit/s, others at 1 Gbit/s, and all wait for it. "
        "A cable with too few wires, an old port or card?",
    )
    assert found.summary == "slowest link: a to c, 94.0 Mbit/s, 0.94 of the 100 Mbit/s of its cards"


def test_a_slow_switch_between_all_is_one_sentence() -> None:
    (trouble,) = judge(lan(4, speed=2500, rate=0.94 * GBIT)).troubles

    assert trouble.startswith("no link gives what its cards could: 0.940 Gbit/s at best, 0.38 of 2.5 Gbit/s.")


def test_a_fast_card_that_one_stream_does_not_fill_is_no_trouble() -> None:
    assert judge(lan(3, speed=100_000, rate=35 * GBIT)).troubles == ()
    assert judge(lan(3, speed=10_000, rate=0.94 * GBIT)).troubles != ()


def test_a_card_that_gives_more_than_its_speed_is_none() -> None:
    assert judge(lan(2, speed=10_000, rate=23 * GBIT)).summary == "slowest link: a to b, 23.0 Gbit/s"


def test_a_link_that_failed_is_the_slowest() -> None:
    measured = lan(3)
    links = [GaugedLink(1, 2, error="10.0.0.3 port 4: connection refused"), *measured.links[1:]]
    found = judge(Measurement(measured.nodes, tuple(links)))

    assert found.summary == (
        "slowest link: b to c, which could not be measured (10.0.0.3 port 4: connection refused)"
    )
    assert found.troubles == ("b to c could not be measured: 10.0.0.3 port 4: connection refused",)


def test_long_round_trips_are_told() -> None:
    (trouble,) = judge(lan(3, trip_s=0.012)).troubles

    assert trouble.startswith("round trips are long for cables: 12.0 ms a to b.")


def test_nothing_is_said_of_nothing() -> None:
    assert judge(Measurement()).summary == ""


rates = st.one_of(st.none(), st.floats(1.0, 1e12))
speeds = st.one_of(st.none(), st.integers(1, 800_000))


@given(st.integers(2, 5).flatmap(lambda n: st.tuples(
    st.lists(speeds, min_size=n, max_size=n), st.lists(rates, min_size=n * (n - 1), max_size=n * (n - 1))
)))  # fmt: skip
def test_whatever_was_measured_is_judged_and_what_is_slow_was_measured(
    drawn: tuple[list[int | None], list[float | None]],
) -> None:
    cards, bits = drawn
    pairs = [(s, t) for s in range(len(cards)) for t in range(len(cards)) if s != t]
    nodes = tuple(GaugedNode(f"n{i}", "10.0.0.1", "eth0", "wired", c) for i, c in enumerate(cards))
    links = tuple(GaugedLink(*pair, rate) for pair, rate in zip(pairs, bits, strict=True))
    found = judge(Measurement(nodes, links))

    assert found.slowest in links and found.summary
    assert set(found.slow) <= set(links)
    # the fastest link of all is behind nobody
    assert all(x.bits_per_s is None or found.troubles for x in found.slow)
    if None in bits:
        assert found.slowest is not None and found.slowest.bits_per_s is None
