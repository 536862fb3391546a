"""Statistics and tables of the bench."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from bench.measure import Chapter, Series, as_data, percentile, show


def chapter() -> Chapter:
    ours = Series("ours", [1.0, 3.0, 2.0])
    theirs = Series("theirs", [4.0, 4.0, 5.0])
    lost = Series("another", outcomes=["job lost", "job lost", "too late"])
    return Chapter("A title", "from here to there", [ours, theirs, lost], baseline="theirs")


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
    assert Chapter("", "", c.series).ratio(c.series[0]) is None
    assert Chapter("", "", c.series, baseline="another").ratio(c.series[0]) is None


def test_the_table_shows_median_extremes_runs_ratio_and_outcomes() -> None:
    lines = show(chapter()).splitlines()
    assert lines[:2] == ["A title", "  from here to there"]
    assert lines[3].split() == ["median", "min", "max", "runs", "ratio"]
    assert lines[4].split() == ["ours", "2.000", "s", "1.000", "3.000", "3", "0.50"]
    assert lines[6].split("  ")[-1] == "2 x job lost, too late"
    assert len({len(line) for line in lines[3:6]}) == 1  # the columns stand under each other


def test_a_table_of_many_runs_has_a_95th_percentile() -> None:
    table = show(Chapter("t", "", [Series("many", [float(n) for n in range(1, 31)])]))
    assert "95 %" in table
    assert "29.000" in table


def test_the_data_hold_every_measurement_and_are_json() -> None:
    data = json.loads(json.dumps(as_data(chapter())))
    assert data["series"][0]["seconds"] == [1.0, 3.0, 2.0]
    assert data["series"][0]["ratio"] == 0.5
    assert data["series"][2] == {
        "name": "another",
        "seconds": [],
        "outcomes": ["job lost", "job lost", "too late"],
        "median": None,
        "percentile_95": None,
        "ratio": None,
    }
