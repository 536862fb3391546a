"""Chapters as tables: for the terminal, and as Markdown that is put into a page between two marks. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from bench.measure import Chapter, Series, Wanted

WIDTH_MAX = 100  # columns of a table's explanation
DIGITS_MAX = 6  # decimals of a value that is above what is wanted by a hair
SUMMARY = "wanted"  # the block of a page that has all that was wanted
MACHINE = "machine"  # … and that on which machine it was measured
_BLOCK = re.compile(r"(<!-- bench:([\w-]+) -->\n).*?(<!-- /bench -->)", re.DOTALL)


# --- for the terminal --------------------------------------------------------------------------------------


def show(chapter: Chapter) -> str:
    """Return a chapter as a table: median, smallest and largest, 95th percentile, ratio of medians."""
    tails = any(series.tail is not None for series in chapter.series)
    wants = any(series.wanted is not None for series in chapter.series)
    head = ["", "median", "min", "max", *(["95 %"] if tails else []), "runs"]
    rows = [[*head, *(["ratio"] if chapter.baseline else []), *(["wanted"] if wants else [])]]
    notes = [""]
    for series in chapter.series:
        rows.append(cells(chapter, series, tails=tails, wants=wants))
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


def cells(chapter: Chapter, series: Series, *, tails: bool, wants: bool) -> list[str]:
    """Return one row of the table."""
    numbers = ["-", "-", "-"]
    if series.values:
        numbers = [
            f"{series.median:.3f} {series.unit}",
            f"{min(series.values):.3f}",
            f"{max(series.values):.3f}",
        ]
    if tails:
        numbers.append("-" if series.tail is None else f"{series.tail:.3f}")
    numbers.append(str(series.runs))
    if chapter.baseline:
        ratio = chapter.ratio(series)
        numbers.append("-" if ratio is None else f"{ratio:.2f}")
    if wants:
        verdict = {True: ": yes", False: ": NO", None: ""}[chapter.reached(series)]
        numbers.append(describe_wanted(series) + verdict)
    return [series.name, *numbers]


def describe_wanted(series: Series) -> str:
    """Return ``≤ 8 s``, or '' where nothing is wanted."""
    wanted = series.wanted or Wanted()
    parts = []
    if wanted.median is not None:
        parts.append(f"≤ {wanted.median:g} {series.unit}")
    if wanted.tail is not None:
        parts.append(f"95 % ≤ {wanted.tail:g} {series.unit}")
    if wanted.ratio is not None:
        parts.append(f"ratio ≤ {wanted.ratio:g}")
    if wanted.always:
        parts.append(wanted.always)
    return ", ".join(parts)


def describe_outcomes(outcomes: Iterable[str]) -> str:
    """Return ``job lost``, or ``2 x job lost, ...`` where several runs had no value."""
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


# --- for a page --------------------------------------------------------------------------------------------


def mark_down(chapter: Chapter) -> str:
    """Return a chapter as a Markdown table."""
    tails = any(series.tail is not None for series in chapter.series)
    head = ["", "median", "from … to", *(["95th percentile"] if tails else []), "runs"]
    rows = [[*head, *(["ratio"] if chapter.baseline else [])]]
    for series in chapter.series:
        row = [series.name, figure(series), span(series)]
        if tails:
            row.append("" if series.tail is None else number(series.tail, series.unit))
        row.append(str(series.runs))
        if chapter.baseline:
            ratio = chapter.ratio(series)
            row.append("" if ratio is None else f"{ratio:.2f}")
        rows.append(row)
    return table(rows)


def summary(chapters: Sequence[Chapter]) -> str:
    """Return the table of all that is wanted: what was measured, and whether that is enough."""
    rows = [["measured", "wanted", "median", "reached"]]
    for chapter in chapters:
        for series in chapter.series:
            if series.wanted is None:
                continue
            wanted = series.wanted
            got = [always(series) if wanted.always else figure(series, wanted.median)]
            if wanted.tail is not None and series.tail is not None:
                got.append(f"95 %: {number(series.tail, series.unit, wanted.tail)}")
            ratio = chapter.ratio(series)
            if wanted.ratio is not None and ratio is not None:
                got.append(f"ratio {rounded(ratio, 2, wanted.ratio)}")
            verdict = {True: "yes", False: "**no**", None: ""}[chapter.reached(series)]
            rows.append([f"{chapter.title}: {series.name}", describe_wanted(series), ", ".join(got), verdict])
    return table(rows)


def fill(page: str, chapters: Sequence[Chapter], machine: str) -> tuple[str, list[str]]:
    """Return the page with its blocks filled, and the keys of blocks for which nothing was measured.

    A block lies between ``<!-- bench:KEY -->`` and ``<!-- /bench -->``; one without figures stays as it is.
    ``machine``: the sentence on which machine all of it was measured.
    """
    texts = {chapter.key: mark_down(chapter) for chapter in chapters}
    texts[SUMMARY], texts[MACHINE] = summary(chapters), f"{machine}\n"
    unknown: list[str] = []

    def put(found: re.Match[str]) -> str:
        if found[2] not in texts:
            unknown.append(found[2])
            return found[0]
        return found[1] + texts[found[2]] + found[3]

    return _BLOCK.sub(put, page), unknown


def always(series: Series) -> str:
    """Return in how many runs of all that what is wanted of each was so, and the other outcomes."""
    wanted = series.wanted or Wanted()
    text = f"{wanted.always} in {len(series.values)} of {series.runs}"
    if series.values:
        text += f" ({wanted.value} {number(series.median, series.unit)})"
    return "; ".join([text, *([describe_outcomes(series.outcomes)] if series.outcomes else [])])


def figure(series: Series, most: float | None = None) -> str:
    """Return the median and the outcomes of runs that have no value. ``most``: as for ``number``."""
    parts = [number(series.median, series.unit, most)] if series.values else []
    if series.outcomes:
        parts.append(describe_outcomes(series.outcomes))
    return "; ".join(parts) or "not measured"


def span(series: Series) -> str:
    """Return the smallest and the largest value, '' of a single one."""
    if len(series.values) < 2:
        return ""
    least, most = min(series.values), max(series.values)
    return f"{number(least, '')} … {number(most, series.unit)}"


def number(value: float, unit: str, most: float | None = None) -> str:
    """Return a value with its unit, to three digits that count, or to more where ``most`` asks for them."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 0.1 else 3
    return f"{rounded(value, digits, most)} {unit}".rstrip()


def rounded(value: float, digits: int, most: float | None) -> str:
    """Return a value with so many decimals, or more where one above ``most`` would look as if it were not."""
    text = f"{value:.{digits}f}"
    if most is not None and value > most >= float(text) and digits < DIGITS_MAX:
        return rounded(value, digits + 1, most)
    return text


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a Markdown table; the first one is its head."""
    head, *rest = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *rest]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
