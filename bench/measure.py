"""Series of measurements, the table that shows them, and the same as data. Pure."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

TAIL_RUNS = 20  # a 95th percentile of fewer runs would be their maximum by another name
WIDTH_MAX = 100  # columns of a table's explanation


@dataclass
class Series:
    """What was measured of one thing: seconds of every run, or in words why a run has none."""

    name: str
    seconds: list[float] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)

    def add(self, result: float | str) -> None:
        """Take in one run: its seconds, or its outcome."""
        if isinstance(result, str):
            self.outcomes.append(result)
        else:
            self.seconds.append(result)

    @property
    def runs(self) -> int:
        return len(self.seconds) + len(self.outcomes)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def tail(self) -> float | None:
        """The 95th percentile; None of fewer than ``TAIL_RUNS`` runs."""
        return percentile(self.seconds, 95) if len(self.seconds) >= TAIL_RUNS else None


@dataclass
class Chapter:
    """Things that are compared with each other. ``about`` says what was measured, from when to when.

    ``baseline``: the name of the series that the others are divided by; '' where there is none.
    """

    title: str
    about: str
    series: list[Series]
    baseline: str = ""

    def ratio(self, series: Series) -> float | None:
        """Return the ratio of medians to the baseline; None where one of them has no seconds."""
        base = next((s for s in self.series if s.name == self.baseline), None)
        if base is None or not base.seconds or not series.seconds or base.median <= 0:
            return None
        return series.median / base.median


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least ``percent`` of all do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def show(chapter: Chapter) -> str:
    """Return a chapter as a table: median, smallest and largest, 95th percentile, ratio of medians."""
    tails = any(series.tail is not None for series in chapter.series)
    head = ["", "median", "min", "max", *(["95 %"] if tails else []), "runs"]
    rows = [head + (["ratio"] if chapter.baseline else [])]
    notes = [""]
    for series in chapter.series:
        rows.append(cells(series, chapter.ratio(series), tails=tails, compared=bool(chapter.baseline)))
        notes.append(describe_outcomes(series.outcomes))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [chapter.title, *wrap(chapter.about), ""]
    for row, note in zip(rows, notes, strict=True):
        first, *numbers = (
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(["", first, *numbers, *([note] if note else [])]).rstrip())
    return "\n".join(lines) + "\n"


def cells(series: Series, ratio: float | None, *, tails: bool, compared: bool) -> list[str]:
    """Return one row of the table."""
    numbers = ["-", "-", "-"]
    if series.seconds:
        numbers = [f"{series.median:.3f} s", f"{min(series.seconds):.3f}", f"{max(series.seconds):.3f}"]
    if tails:
        numbers.append("-" if series.tail is None else f"{series.tail:.3f}")
    numbers.append(str(series.runs))
    if compared:
        numbers.append("-" if ratio is None else f"{ratio:.2f}")
    return [series.name, *numbers]


def describe_outcomes(outcomes: Iterable[str]) -> str:
    """Return ``job lost``, or ``2 x job lost, ...`` where several runs had no time."""
    counted = Counter(outcomes)
    return ", ".join(f"{count} x {text}" if count > 1 else text for text, count in counted.items())


def wrap(text: str) -> list[str]:
    """Return the lines of a paragraph, indented by two."""
    lines = [" "]
    for word in text.split():
        if len(lines[-1]) + len(word) >= WIDTH_MAX:
            lines.append(" ")
        lines[-1] += f" {word}"
    return lines if text else []


def as_data(chapter: Chapter) -> dict[str, Any]:
    """Return a chapter for JSON, every single measurement included."""
    return {
        "title": chapter.title,
        "about": chapter.about,
        "baseline": chapter.baseline,
        "series": [
            {
                "name": series.name,
                "seconds": [round(value, 4) for value in series.seconds],
                "outcomes": series.outcomes,
                "median": round(series.median, 4) if series.seconds else None,
                "percentile_95": None if series.tail is None else round(series.tail, 4),
                "ratio": round_ratio(chapter.ratio(series)),
            }
            for series in chapter.series
        ],
    }


def round_ratio(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 3)
