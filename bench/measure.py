"""Series of measurements, what was wanted of them, and the same as data. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

TAIL_RUNS = 20  # a 95th percentile of fewer runs would be their maximum by another name


@dataclass(frozen=True)
class Wanted:
    """What is wanted: at most this median, 95th percentile and ratio to the baseline.

    ``always``: what every single run is wanted to end with, in words; a run that does not has an outcome.
    ``value``: what the values of those that do are, in words.
    """

    median: float | None = None
    tail: float | None = None
    ratio: float | None = None
    always: str = ""
    value: str = "next step after"


@dataclass
class Series:
    """What was measured of one thing: a value of every run, or in words why a run has none."""

    name: str
    values: list[float] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    unit: str = "s"
    wanted: Wanted | None = None

    def add(self, result: float | str) -> None:
        """Take in one run: its value, or its outcome."""
        if isinstance(result, str):
            self.outcomes.append(result)
        else:
            self.values.append(result)

    @property
    def runs(self) -> int:
        return len(self.values) + len(self.outcomes)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def tail(self) -> float | None:
        """The 95th percentile; None of fewer than ``TAIL_RUNS`` runs."""
        return percentile(self.values, 95) if len(self.values) >= TAIL_RUNS else None


@dataclass
class Chapter:
    """Things that are compared with each other. ``about`` says what was measured, from when to when.

    ``key`` names it in files. ``baseline``: the name of the series that the others are divided by, or ''.
    """

    key: str
    title: str
    about: str
    series: list[Series]
    baseline: str = ""

    def ratio(self, series: Series) -> float | None:
        """Return the ratio of medians to the baseline; None where one of them has no values."""
        base = next((s for s in self.series if s.name == self.baseline), None)
        if base is None or not base.values or not series.values or base.median <= 0:
            return None
        return series.median / base.median

    def reached(self, series: Series) -> bool | None:
        """Return whether what was wanted of a series was reached; None where too few runs tell."""
        wanted = series.wanted
        if wanted is None or not series.runs:
            return None
        if series.outcomes:  # a run that ended otherwise is a miss, however fast the others were
            return False
        if wanted.tail is not None and series.tail is None:
            return None
        pairs = [(wanted.median, series.median if series.values else None)]
        pairs += [(wanted.tail, series.tail), (wanted.ratio, self.ratio(series))]
        met = [got is not None and got <= most for most, got in pairs if most is not None]
        return all(met)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least ``percent`` of all do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def as_data(chapter: Chapter) -> dict[str, Any]:
    """Return a chapter for JSON, every single measurement included."""
    return {
        "key": chapter.key,
        "title": chapter.title,
        "about": chapter.about,
        "baseline": chapter.baseline,
        "series": [
            {
                "name": series.name,
                "unit": series.unit,
                "values": [round(value, 4) for value in series.values],
                "outcomes": list(series.outcomes),
                "median": round(series.median, 4) if series.values else None,
                "percentile_95": None if series.tail is None else round(series.tail, 4),
                "ratio": rounded(chapter.ratio(series)),
                "wanted": None if series.wanted is None else asdict(series.wanted),
                "reached": chapter.reached(series),
            }
            for series in chapter.series
        ],
    }


def from_data(data: Mapping[str, Any]) -> Chapter:
    """Return the chapter that ``as_data`` has written; medians and the like are worked out anew."""
    series = [
        Series(
            s["name"],
            [float(v) for v in s["values"]],
            list(s["outcomes"]),
            s["unit"],
            None if s["wanted"] is None else Wanted(**s["wanted"]),
        )
        for s in data["series"]
    ]
    return Chapter(data["key"], data["title"], data["about"], series, data["baseline"])


def rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 3)
