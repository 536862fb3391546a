"""A measurement as a picture (SVG 1.1): a heat map of the links beside the curve of the all-reduce.

Every cell bears its number, so that nothing depends on its colour; slow links have a frame. A viewer that
knows of dark pages shows dark colours.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from avahi_gpu.model.gauge import Judgement, Measurement, Reduction
from avahi_gpu.model.units import show_bandwidth, show_bytes, show_rate, show_seconds, three_digits
from avahi_gpu.render.gauge import bus_bandwidth, heat_step, shorten_middle
from avahi_gpu.render.text import printable

WIDTH = 960
MARGIN = 24
TOP = 118  # below the title and the sentence on the slowest link
NAMES = 168  # width of the column of names
MAP = 400  # width of the cells, whatever their number
CELL_MAX = 110.0
PLOT_LEFT, PLOT_RIGHT = 668.0, 920.0
PLOT_HEIGHT = 250.0
NAME_MAX = 16  # characters
SUBTITLE = 118  # characters of the sentence on the slowest link
LINE = 128  # characters of a sentence below
SENTENCES = 6
LABEL_WIDTH = 58.0  # of a size on the axis
CELLS_MAX = 32  # nodes of a map; numbers in smaller cells cannot be read
STYLE = """
.page{fill:#ffffff} .ink{fill:#1a1a1a} .soft{fill:#595959} .grid{stroke:#d4d4d4} .axis{stroke:#767676}
.curve{stroke:#2166ac;fill:none} .dot{fill:#2166ac} .warn{fill:#a13d00} .frame{stroke:#1a1a1a;fill:none}
.none{fill:#efefef}
.h0{fill:#4575b4} .h1{fill:#91bfdb} .h2{fill:#d3e8f1} .h3{fill:#fee090} .h4{fill:#fc8d59} .h5{fill:#c5221f}
.on0,.on5{fill:#ffffff} .on1,.on2,.on3,.on4{fill:#1a1a1a}
@media (prefers-color-scheme:dark){
.page{fill:#14181d} .ink{fill:#e9ebed} .soft{fill:#a8b0b8} .grid{stroke:#343b43} .axis{stroke:#7d868f}
.curve{stroke:#6db3f2} .dot{fill:#6db3f2} .warn{fill:#ffb27a} .frame{stroke:#ffffff} .none{fill:#22282f}
}
"""


def draw_heat(measured: Measurement, judged: Judgement) -> str:
    """Return the picture's text."""
    count = len(measured.nodes)
    cell = min(CELL_MAX, MAP / max(count, 1))
    below = TOP + max(cell * min(count, CELLS_MAX) + 30, PLOT_HEIGHT + 40) + 28
    sentences = list(_sentences(measured, judged))
    height = below + 52 + 20 * len(sentences)
    title = f"What the network between {count} nodes gives"
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        'aria-labelledby="title what" font-family="DejaVu Sans, Verdana, sans-serif" font-size="14">',
        f'<title id="title">{title}</title>',
        f'<desc id="what">{_words(judged.summary, 300)}</desc>',
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height:.0f}"/>',
        f'<text class="ink" x="{MARGIN}" y="36" font-size="20" font-weight="bold">{title}</text>',
        *_subtitle(judged.summary),
        *(_map(measured, judged, cell) if count <= CELLS_MAX else _too_many(measured)),
        *_legend(below),
        *_plot(measured),
        *_tell(sentences, below + 48),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _words(text: str, limit: int) -> str:
    return escape(printable(text, limit))


def _subtitle(summary: str) -> Iterator[str]:
    lines = textwrap.wrap(
        printable(summary, 400), SUBTITLE, max_lines=2, placeholder=" …", break_on_hyphens=False
    )
    for number, line in enumerate(lines):
        yield f'<text class="soft" x="{MARGIN}" y="{60 + 18 * number}">{escape(line)}</text>'


def _map(measured: Measurement, judged: Judgement, cell: float) -> Iterator[str]:
    best = max((link.bits_per_s or 0.0 for link in measured.links), default=0.0) or 1.0
    unit, size = ("Gbit/s", 1e9) if best >= 1e9 else ("Mbit/s", 1e6)
    left, size_of_text = MARGIN + NAMES, max(7.0, min(15.0, cell * 0.27))
    what = f"TCP, {unit}, row to column"
    yield f'<text class="soft" x="{MARGIN}" y="{TOP - 8}" font-size="12">{what}</text>'
    for number, node in enumerate(measured.nodes):
        middle = number * cell + cell / 2
        name = escape(shorten_middle(printable(node.host), NAME_MAX))
        yield (
            f'<text class="ink" x="{left - 34}" y="{TOP + middle + 5:.1f}" text-anchor="end" '
            f'font-size="{max(9.0, min(14.0, cell * 0.5)):.1f}">{name}</text>'
            f'<text class="soft" x="{left - 10}" y="{TOP + middle + 5:.1f}" text-anchor="end" '
            f'font-size="12">{number + 1}</text>'
            f'<text class="soft" x="{left + middle:.1f}" y="{TOP - 8}" text-anchor="middle" '
            f'font-size="12">{number + 1}</text>'
        )
    known = {(link.source, link.target): link for link in measured.links}
    frames = []
    for source in range(len(measured.nodes)):
        for target in range(len(measured.nodes)):
            x, y = left + target * cell, TOP + source * cell
            box = f'x="{x + 1:.1f}" y="{y + 1:.1f}" width="{cell - 2:.1f}" height="{cell - 2:.1f}"'
            link = known.get((source, target))
            if link is None:
                yield f'<rect class="none" {box}/>'
                continue
            step = heat_step((link.bits_per_s or 0.0) / best)
            shown = "✗" if link.bits_per_s is None else three_digits(link.bits_per_s / size)
            rate = link.error if link.bits_per_s is None else show_rate(link.bits_per_s)
            trip = "" if link.round_trip_s is None else f", round trip {show_seconds(link.round_trip_s)}"
            way = f"{measured.nodes[source].host} to {measured.nodes[target].host}: {rate}{trip}"
            yield (
                f'<g><title>{_words(way, 300)}</title><rect class="h{step}" {box}/>'
                f'<text class="on{step}" x="{x + cell / 2:.1f}" y="{y + cell / 2 + size_of_text * 0.36:.1f}" '
                f'text-anchor="middle" font-size="{size_of_text:.1f}">{shown}</text></g>'
            )
            if link in judged.slow:
                frames.append(f'<rect class="frame" stroke-width="2" {box}/>')
    yield from frames


def _too_many(measured: Measurement) -> Iterator[str]:
    yield (
        f'<text class="soft" x="{MARGIN}" y="{TOP + 24}">{len(measured.nodes)} nodes are too many for a map; '
        "--json has all links</text>"
    )


def _legend(y: float) -> Iterator[str]:
    words = ("90 % of the best link or more", "75 %", "60 %", "40 %", "20 %", "less")
    x = float(MARGIN)
    for step, word in enumerate(words):
        yield (
            f'<rect class="h{step}" x="{x:.0f}" y="{y - 11:.0f}" width="14" height="14"/>'
            f'<text class="soft" x="{x + 20:.0f}" y="{y:.0f}" font-size="12">{word}</text>'
        )
        x += 40 + 6.3 * len(word)
    yield (
        f'<rect class="frame" stroke-width="2" x="{x:.0f}" y="{y - 11:.0f}" width="14" height="14"/>'
        f'<text class="soft" x="{x + 20:.0f}" y="{y:.0f}" font-size="12">slow</text>'
    )


def _plot(measured: Measurement) -> Iterator[str]:
    if not measured.reductions:
        why = printable(measured.omitted or "no all-reduce was measured", 120)
        for number, line in enumerate(
            textwrap.wrap(f"all-reduce was not measured: {why}", 34, break_on_hyphens=False)
        ):
            yield f'<text class="soft" x="{PLOT_LEFT:.0f}" y="{TOP + 24 + 20 * number}">{escape(line)}</text>'
        return
    points = sorted(measured.reductions, key=lambda r: r.size)
    most = max(bus_bandwidth(measured, r) for r in points)
    unit, size_of_unit = ("GB/s", 1e9) if most >= 1e9 else ("MB/s", 1e6)
    most /= size_of_unit
    tick = _tick(most)
    ticks = math.ceil(most / tick) or 1
    bottom = TOP + PLOT_HEIGHT
    what = f"all-reduce of {measured.ranks} over {printable(measured.backend, 15)}: bus bandwidth, {unit}"
    yield f'<text class="soft" x="{PLOT_LEFT - 40:.0f}" y="{TOP - 18}" font-size="12">{escape(what)}</text>'
    for number in range(ticks + 1):
        y = bottom - PLOT_HEIGHT * number / ticks
        kind = "grid" if number else "axis"
        yield (
            f'<line class="{kind}" x1="{PLOT_LEFT}" y1="{y:.1f}" x2="{PLOT_RIGHT}" y2="{y:.1f}"/>'
            f'<text class="soft" x="{PLOT_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" font-size="12">'
            f"{number * tick:.4g}</text>"
        )
    low, high = math.log2(points[0].size), math.log2(points[-1].size)

    def place(point: Reduction) -> tuple[float, float]:
        share = (math.log2(point.size) - low) / ((high - low) or 1.0)
        value = bus_bandwidth(measured, point) / size_of_unit / (tick * ticks)
        return PLOT_LEFT + share * (PLOT_RIGHT - PLOT_LEFT), bottom - PLOT_HEIGHT * value

    yield from _curve(points, [place(point) for point in points], measured, bottom)


def _curve(
    points: Sequence[Reduction], places: Sequence[tuple[float, float]], measured: Measurement, bottom: float
) -> Iterator[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline class="curve" stroke-width="2.5" points="{path}"/>'
    labelled, next_x = set(), math.inf
    for number in reversed(range(len(places))):  # the largest size is always told
        if next_x - places[number][0] >= LABEL_WIDTH:
            labelled.add(number)
            next_x = places[number][0]
    for number, (point, (x, y)) in enumerate(zip(points, places, strict=True)):
        rate = show_bandwidth(bus_bandwidth(measured, point))
        told = f"{show_bytes(point.size)}: {show_seconds(point.seconds)}, {rate}"
        yield f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{told}</title></circle>'
        if number in labelled:
            yield (
                f'<text class="soft" x="{x:.1f}" y="{bottom + 18:.1f}" text-anchor="middle" font-size="12">'
                f"{show_bytes(point.size)}</text>"
            )


def _tick(most: float) -> float:
    """Return a round step of an axis that reaches ``most`` in three to six steps."""
    size = 10 ** math.floor(math.log10(most / 5)) if most > 0 else 1.0
    return next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor * 5 >= most * 0.9999)


def _sentences(measured: Measurement, judged: Judgement) -> Iterator[str]:
    troubles = judged.troubles or (
        ("no link is far slower than the others or than its cards",) if measured.links else ()
    )
    for trouble in troubles[:SENTENCES]:
        yield from textwrap.wrap(
            printable(trouble, 600), LINE, subsequent_indent="    ", break_on_hyphens=False
        )
    if len(troubles) > SENTENCES:
        yield f"and {len(troubles) - SENTENCES} more"


def _tell(sentences: Sequence[str], y: float) -> Iterator[str]:
    for number, line in enumerate(sentences):
        where = f'x="{MARGIN}" y="{y + 20 * number:.0f}"'
        yield f'<text class="ink" xml:space="preserve" {where} font-size="13">{escape(line)}</text>'
