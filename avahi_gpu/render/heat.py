"""A measurement as a picture: a heat map of the links beside the curve of the all-reduce.

Every cell bears its number, so that nothing depends on its colour; slow links have a frame.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence

from avahi_gpu.model.gauge import GaugedLink, Judgement, Measurement, Reduction
from avahi_gpu.model.units import show_bandwidth, show_bytes, show_rate, show_seconds, three_digits
from avahi_gpu.render.drawing import HEAT_COLOURS, box, document, group, line, on_heat, paint, words
from avahi_gpu.render.gauge import HEAT, bus_bandwidth, heat_step, shorten_middle
from avahi_gpu.render.text import printable

WIDTH = 960.0
MARGIN = 24.0
TOP = 118.0  # below the title and the sentence on the slowest link
NAMES = 168.0  # width of the column of names
MAP = 400.0  # width of the cells, whatever their number
CELL_MAX = 110.0
CELLS_MAX = 32  # nodes of a map; numbers in smaller cells cannot be read
PLOT_LEFT, PLOT_RIGHT = 668.0, 920.0
PLOT_HEIGHT = 250.0
NAME_MAX = 16  # characters
SUBTITLE = 118  # characters of a line of the sentence on the slowest link
LINE = 128  # characters of a line of the sentences below
SENTENCES = 6
LABEL_WIDTH = 58.0  # of a size on the axis


def draw_heat(measured: Measurement, judged: Judgement) -> str:
    """Return the picture's text, SVG 1.1."""
    count = len(measured.nodes)
    cell = min(CELL_MAX, MAP / max(count, 1))
    below = TOP + max(cell * min(count, CELLS_MAX) + 30, PLOT_HEIGHT + 40) + 28
    sentences = list(_sentences(measured, judged))
    title = f"What the network between {count} nodes gives"
    summary = textwrap.wrap(
        printable(judged.summary, 400), SUBTITLE, max_lines=2, placeholder=" …", break_on_hyphens=False
    )
    parts = [
        words(MARGIN, 36, title, size=20, bold=True),
        *(words(MARGIN, 60 + 18 * n, said, size=14, ink="soft") for n, said in enumerate(summary)),
        *(_map(measured, judged, cell) if count <= CELLS_MAX else _too_many(count)),
        *_legend(below),
        *_plot(measured),
        *(words(MARGIN, below + 48 + 20 * n, said, size=13) for n, said in enumerate(sentences)),
    ]
    height = round(below + 52 + 20 * len(sentences))
    return document(WIDTH, height, title, printable(judged.summary, 300), parts)


def _map(measured: Measurement, judged: Judgement, cell: float) -> Iterator[str]:
    best = max((link.bits_per_s or 0.0 for link in measured.links), default=0.0) or 1.0
    unit, size = ("Gbit/s", 1e9) if best >= 1e9 else ("Mbit/s", 1e6)
    left = MARGIN + NAMES
    yield words(MARGIN, TOP - 8, f"TCP, {unit}, row to column", ink="soft")
    for number, node in enumerate(measured.nodes):
        middle = number * cell + cell / 2
        y = round(TOP + middle + 5, 1)
        name = shorten_middle(printable(node.host), NAME_MAX)
        yield words(left - 34, y, name, size=max(9.0, min(14.0, cell * 0.5)), anchor="end")
        yield words(left - 10, y, str(number + 1), ink="soft", anchor="end")
        yield words(round(left + middle, 1), TOP - 8, str(number + 1), ink="soft", anchor="middle")
    known = {(link.source, link.target): link for link in measured.links}
    frames = []
    for source in range(len(measured.nodes)):
        for target in range(len(measured.nodes)):
            x, y = left + target * cell, TOP + source * cell
            place = (round(x + 1, 1), round(y + 1, 1), round(cell - 2, 1), round(cell - 2, 1))
            link = known.get((source, target))
            if link is None:
                yield box(*place, fill="card")
                continue
            step = heat_step((link.bits_per_s or 0.0) / best)
            shown = "✗" if link.bits_per_s is None else three_digits(link.bits_per_s / size)
            letters = max(7.0, min(15.0, cell * 0.27))
            yield group(
                (
                    box(*place, fill=HEAT_COLOURS[step]),
                    words(
                        round(x + cell / 2, 1),
                        round(y + cell / 2 + letters * 0.36, 1),
                        shown,
                        size=letters,
                        ink=on_heat(step),
                        anchor="middle",
                    ),
                ),
                _tell(measured, link),
            )
            if link in judged.slow:
                frames.append(box(*place, fill="none", stroke="ink", more=' stroke-width="2"'))
    yield from frames


def _tell(measured: Measurement, link: GaugedLink) -> str:
    rate = link.error if link.bits_per_s is None else show_rate(link.bits_per_s)
    trip = "" if link.round_trip_s is None else f", round trip {show_seconds(link.round_trip_s)}"
    nodes = measured.nodes
    return printable(f"{nodes[link.source].host} to {nodes[link.target].host}: {rate}{trip}", 300)


def _too_many(count: int) -> Iterator[str]:
    yield words(
        MARGIN, TOP + 24, f"{count} nodes are too many for a map; --json has all links", size=14, ink="soft"
    )


def _legend(y: float) -> Iterator[str]:
    best, *others = (f"{100 * least:.0f} %" for least in HEAT[:-1])
    x = MARGIN
    for colour, told in zip(HEAT_COLOURS, (f"{best} of the best link or more", *others, "less"), strict=True):
        yield box(round(x), round(y - 11), 14, 14, fill=colour)
        yield words(round(x + 20), round(y), told, ink="soft")
        x += 40 + 6.3 * len(told)
    yield box(round(x), round(y - 11), 14, 14, fill="none", stroke="ink", more=' stroke-width="2"')
    yield words(round(x + 20), round(y), "slow", ink="soft")


def _plot(measured: Measurement) -> Iterator[str]:
    if not measured.reductions:
        why = printable(measured.omitted or "no all-reduce was measured", 120)
        told = textwrap.wrap(f"all-reduce was not measured: {why}", 34, break_on_hyphens=False)
        for number, said in enumerate(told):
            yield words(PLOT_LEFT, TOP + 24 + 20 * number, said, size=14, ink="soft")
        return
    points = sorted(measured.reductions, key=lambda r: r.size)
    most = max(bus_bandwidth(measured, r) for r in points)
    unit, size_of_unit = ("GB/s", 1e9) if most >= 1e9 else ("MB/s", 1e6)
    most /= size_of_unit
    tick = _tick(most)
    ticks = math.ceil(most / tick) or 1
    bottom = TOP + PLOT_HEIGHT
    what = f"all-reduce of {measured.ranks} over {printable(measured.backend, 15)}: bus bandwidth, {unit}"
    yield words(PLOT_LEFT - 40, TOP - 18, what, ink="soft")
    for number in range(ticks + 1):
        y = round(bottom - PLOT_HEIGHT * number / ticks, 1)
        yield line(PLOT_LEFT, y, PLOT_RIGHT, y, stroke="edge" if number else "rail", width=1)
        yield words(PLOT_LEFT - 8, y + 4, f"{number * tick:.4g}", ink="soft", anchor="end")
    low, high = math.log2(points[0].size), math.log2(points[-1].size)

    def place(point: Reduction) -> tuple[float, float]:
        share = (math.log2(point.size) - low) / ((high - low) or 1.0)
        value = bus_bandwidth(measured, point) / size_of_unit / (tick * ticks)
        across = PLOT_LEFT + share * (PLOT_RIGHT - PLOT_LEFT)
        return round(across, 1), round(bottom - PLOT_HEIGHT * value, 1)

    yield from _curve(points, [place(point) for point in points], measured, bottom)


def _curve(
    points: Sequence[Reduction], places: Sequence[tuple[float, float]], measured: Measurement, bottom: float
) -> Iterator[str]:
    path = " ".join(f"{x:g},{y:g}" for x, y in places)
    yield f'<polyline points="{path}" stroke-width="2.5"{paint(stroke="blue")}/>'
    labelled, next_x = set(), math.inf
    for number in reversed(range(len(places))):  # the largest size is always told
        if next_x - places[number][0] >= LABEL_WIDTH:
            labelled.add(number)
            next_x = places[number][0]
    for number, (point, (x, y)) in enumerate(zip(points, places, strict=True)):
        rate = show_bandwidth(bus_bandwidth(measured, point))
        told = f"{show_bytes(point.size)}: {show_seconds(point.seconds)}, {rate}"
        yield f'<circle cx="{x:g}" cy="{y:g}" r="4"{paint("blue")}><title>{told}</title></circle>'
        if number in labelled:
            yield words(x, bottom + 18, show_bytes(point.size), ink="soft", anchor="middle")


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
