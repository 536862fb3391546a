"""Statistics of the bench, and what was wanted."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.measure import Chapter, Series, Wanted, as_data, from_data, percentile
from tests.unit.bench.chapters import chapter


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=100))
def test_a_percentile_is_one_of_the_values_with_that_many_below(values: list[float]) -> None:
    found = percentile(values, 95)
    assert found in values
    assert sum(v <= found for v in values) >= 0.95 * len(values)
    assert sum(v < found for v in values) < 0.95 * len(values)


def test_the_95th_percentile_of_few_runs_is_not_told() -> None:
    assert Series("few", [1.0] * 19).tail is None
    assert Series("enough", [float(n) for n in range(1, 21)]).tail == 19.0


def test_ratios_are_those_of_medians_and_need_both() -> None:
    c = chapter()
    assert [c.ratio(s) for s in c.series] == [0.5, 1.0, None]
    assert Chapter("", "", "", c.series).ratio(c.series[0]) is None
    assert Chapter("", "", "", c.series, baseline="another").ratio(c.series[0]) is None


@pytest.mark.parametrize(
    ("wanted", "values", "outcomes", "reached"),
    [
        (None, [1.0], [], None),
        (Wanted(median=2.0), [], [], None),  # nothing was measured
        (Wanted(median=2.0), [1.0, 2.0, 9.0], [], True),  # the limit itself is reached
        (Wanted(median=2.0), [1.0, 2.1, 9.0], [], False),
        (Wanted(median=2.0), [1.0, 1.0, 1.0], ["job lost"], False),  # however fast the others were
        (Wanted(median=2.0), [], ["job lost"], False),
        (Wanted(tail=2.0), [1.0] * 19, [], None),  # too few to tell
        (Wanted(tail=2.0), [1.0] * 20, [], True),
        (Wanted(median=2.0, tail=3.0), [1.0] * 18 + [4.0] * 2, [], False),
        (Wanted(ratio=1.05), [4.2], [], True),
        (Wanted(ratio=1.05), [4.3], [], False),
        (Wanted(always="no restart"), [6.7], [], True),
        (Wanted(always="no restart"), [6.7], ["1 restart"], False),
    ],
)
def test_what_was_wanted_is_reached_or_not(
    wanted: Wanted | None, values: list[float], outcomes: list[str], reached: bool | None
) -> None:
    series = Series("ours", values, outcomes, wanted=wanted)
    base = Series("by hand", [4.0])
    assert Chapter("k", "t", "", [series, base], baseline="by hand").reached(series) is reached


def test_the_data_hold_every_measurement_and_can_be_read_again() -> None:
    data = json.loads(json.dumps(as_data(chapter())))
    assert data["series"][0]["values"] == [1.0, 3.0, 2.0]
    assert data["series"][0]["ratio"] == 0.5
    assert data["series"][0]["wanted"]["ratio"] == 1.05
    assert data["series"][0]["reached"] is True
    assert data["series"][2] == {
        "name": "another",
        "unit": "s",
        "values": [],
        "outcomes": ["job lost", "job lost", "too late"],
        "median": None,
        "percentile_95": None,
        "ratio": None,
        "wanted": None,
        "reached": None,
    }
    assert from_data(data) == chapter()
