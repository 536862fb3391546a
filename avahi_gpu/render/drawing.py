"""Pieces of SVG 1.1: escaped and bounded text, shapes, and colours for light and for dark screens.

Every shape carries its light colours as attributes, which any viewer understands; a style sheet replaces them
where somebody prefers dark, and a viewer without style sheets shows the light picture on its own background.
There are no scripts and no references to anything outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape, quoteattr

from rich.cells import cell_len

from avahi_gpu.render.text import printable

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
WIDE = 0.58  # of the font's size: a character of a proportional font, on the generous side
# name -> (in light, in dark); the contrast of each ink to paper and card is 4.5 and more
COLOURS = {
    "paper": ("#f6f8fa", "#0d1117"),
    "card": ("#ffffff", "#161b22"),
    "edge": ("#c5cdd6", "#3d4754"),
    "rail": ("#8a97a6", "#5b6876"),
    "ink": ("#1b2430", "#e6edf3"),
    "soft": ("#57616d", "#9aa6b2"),
    "good": ("#1a7f37", "#3fb950"),
    "bad": ("#c0232c", "#ff7b72"),
    "warn": ("#8a5a00", "#e3b341"),
    "chip": ("#e6f4ea", "#12351d"),
    "own": ("#ddeafd", "#15304f"),
    "blue": ("#0b57c2", "#79b8ff"),
    "job0": ("#7a3db8", "#d2a8ff"),
    "job1": ("#a8500f", "#ffa657"),
    "job2": ("#0a6e78", "#56d4dd"),
    "job3": ("#a8246e", "#ff9bce"),
    "job4": ("#4a6a00", "#b3d94a"),
    "job5": ("#3f4fb5", "#a5b4fc"),
    # a heat map means the same by day and by night, so do the two inks on it
    "heat0": ("#4575b4", "#4575b4"),
    "heat1": ("#91bfdb", "#91bfdb"),
    "heat2": ("#d3e8f1", "#d3e8f1"),
    "heat3": ("#fee090", "#fee090"),
    "heat4": ("#fc8d59", "#fc8d59"),
    "heat5": ("#c5221f", "#c5221f"),
    "white": ("#ffffff", "#ffffff"),
    "black": ("#1a1a1a", "#1a1a1a"),
}
JOB_COLOURS = tuple(name for name in COLOURS if name.startswith("job"))
HEAT_COLOURS = tuple(name for name in COLOURS if name.startswith("heat"))


def on_heat(step: int) -> str:
    """Return the ink that is readable on a colour of HEAT_COLOURS."""
    return "white" if step in (0, len(HEAT_COLOURS) - 1) else "black"


def fit(text: str, width: float, size: float) -> str:
    """Return ``text``, safe to print, cut with an ellipsis to about ``width`` pixels at that font size."""
    shown = printable(text)
    room = max(1, int(width / (size * WIDE)))
    if cell_len(shown) <= room:
        return shown
    while shown and cell_len(shown) > room - 1:
        shown = shown[:-1]
    return shown + "…"


def paint(fill: str = "none", stroke: str = "") -> str:
    """Return the attributes that colour a shape, by names of COLOURS; '' has no stroke."""
    names = [f"f-{fill}"] if fill != "none" else []
    names += [f"s-{stroke}"] if stroke else []
    kind = f' class="{" ".join(names)}"' if names else ""
    inside = COLOURS[fill][0] if fill != "none" else "none"
    return kind + f' fill="{inside}"' + (f' stroke="{COLOURS[stroke][0]}"' if stroke else "")


def words(
    x: float,
    y: float,
    text: str,
    *,
    size: float = 12,
    ink: str = "ink",
    bold: bool = False,
    anchor: str = "start",
) -> str:
    """Return a line of text on its baseline."""
    weight = ' font-weight="600"' if bold else ""
    where = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}"{weight}{where}{paint(ink)}>{escape(text)}</text>'


def box(
    x: float,
    y: float,
    width: float,
    height: float,
    *,
    fill: str,
    stroke: str = "",
    round: float = 0,
    more: str = "",
) -> str:
    """Return a rectangle."""
    corner = f' rx="{round:g}"' if round else ""
    size = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{corner}'
    return f"<rect {size}{paint(fill, stroke)}{more}/>"


def line(x1: float, y1: float, x2: float, y2: float, *, stroke: str, width: float = 2, more: str = "") -> str:
    """Return a straight line."""
    return (
        f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke-width="{width:g}"'
        f"{paint('none', stroke)}{more}/>"
    )


def group(parts: Iterable[str], title: str = "") -> str:
    """Return parts that belong together, with what is shown where a pointer rests on them."""
    told = f"<title>{escape(title)}</title>" if title else ""
    label = f' role="img" aria-label={quoteattr(title)}' if title else ""
    return f"<g{label}>{told}{''.join(parts)}</g>"


def document(width: float, height: float, title: str, description: str, parts: Sequence[str]) -> str:
    """Return the whole picture."""
    dark = "".join(
        f".f-{name}{{fill:{colour}}}.s-{name}{{stroke:{colour}}}" for name, (_, colour) in COLOURS.items()
    )
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" role="img" aria-labelledby="title what" font-family="{FONT}">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="what">{escape(description)}</desc>',
        f"<style>@media (prefers-color-scheme: dark){{{dark}}}</style>",
        box(0, 0, width, height, fill="paper"),
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"
