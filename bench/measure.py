"""Series of measurements and the table that shows them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Series:
    """Seconds measured of one thing. ``baseline``: the name of the series that it is compared with."""

    name: str
    baseline: str = ""
    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


@dataclass
class Chapter:
    """Things that are compared with each other. ``about`` says what was measured, from when to when."""

    title: str
    about: str
    series: list[Series]


def show(chapters: Iterable[Chapter]) -> str:
    """Return the table: median, smallest and largest, and the ratio of medians to each baseline's."""
    lines: list[str] = []
    for chapter in chapters:
        medians = {series.name: series.median for series in chapter.series if series.seconds}
        width = max(len(series.name) for series in chapter.series)
        lines += ["", chapter.title, f"  {chapter.about}", ""]
        lines.append(f"  {'':{width}}  {'median':>8}  {'min':>6}  {'max':>6}  {'runs':>4}  compared")
        for series in chapter.series:
            if not series.seconds:
                continue
            line = f"  {series.name:{width}}  {series.median:6.3f} s  {min(series.seconds):6.3f}"
            line += f"  {max(series.seconds):6.3f}  {len(series.seconds):4d}"
            if series.baseline in medians:
                line += f"  {compare(series.median, medians[series.baseline])} {series.baseline}"
            lines.append(line.rstrip())
    return "\n".join([*lines, ""])


def compare(median: float, baseline: float) -> str:
    """Return how ``median`` stands to ``baseline``: ``0.21 of``, or ``1.30 of``."""
    return f"{median / baseline:.2f} of" if baseline > 0 else "beside"
