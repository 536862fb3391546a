"""A terminal's screen as SVG, from lines with ANSI colours. Every run of characters is held to the grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from rich.cells import cell_len, set_cell_size
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

CELL, LINE, SIZE = 8.0, 19.0, 13.2  # width and height of a character's place, size of the font
PADDING, BAR = 18.0, 34.0
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"
GROUND, EDGE, INK, BAR_INK = "#161b22", "#3d4754", "#e6edf3", "#9aa6b2"
# a terminal is dark in a light page, too: one picture is readable in both
# in ANSI's order: black, red, green, yellow, blue, magenta, cyan, white
PALETTE = ("#6e7681", "#ff7b72", "#56d364", "#e3b341", "#79b8ff", "#d2a8ff", "#56d4dd", "#e6edf3")
BUTTONS = ("#ff5f57", "#febc2e", "#28c840")


def draw(title: str, lines: Sequence[str], columns: int) -> str:
    """Return the screen; lines longer than ``columns`` are wrapped as a terminal does."""
    rows = [row for line in lines for row in _wrap(Text.from_ansi(line), columns)]
    width, height = 2 * PADDING + columns * CELL, BAR + PADDING + len(rows) * LINE + PADDING - 6
    told = "\n".join(row.plain for row in rows)
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" role="img" aria-labelledby="title what">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="what">{escape(told)}</desc>',
        f'<rect x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1:g}" rx="10" fill="{GROUND}" '
        f'stroke="{EDGE}"/>',
        *(f'<circle cx="{20 + 18 * n}" cy="18" r="5.5" fill="{c}"/>' for n, c in enumerate(BUTTONS)),
        f'<text x="{width / 2:g}" y="22" text-anchor="middle" font-family="sans-serif" font-size="12" '
        f'fill="{BAR_INK}">{escape(title)}</text>',
        f'<g font-family={quoteattr(FONT)} font-size="{SIZE:g}" xml:space="preserve">',
    ]
    for number, row in enumerate(rows):
        parts += _row(row, BAR + PADDING + number * LINE + 6)
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"


def _wrap(line: Text, columns: int) -> Iterator[Text]:
    while cell_len(line.plain) > columns:
        at = len(set_cell_size(line.plain, columns).rstrip())
        space = line.plain.rfind(" ", columns // 2, at)
        at = space + 1 if space > 0 else at
        yield line[:at]
        line = Text("    ") + line[at:]
    yield line


def _row(row: Text, y: float) -> Iterator[str]:
    """Yield each run of one style; its length is given, so that any font keeps the columns."""
    column = 0
    for segment in row.render(_CONSOLE):
        text = segment.text.rstrip("\n")
        width = cell_len(text)
        if text.strip():
            # spaces at the ends of a run are not to be relied on
            lead = cell_len(text) - cell_len(text.lstrip())
            shown = text.strip()
            x, length = PADDING + (column + lead) * CELL, cell_len(shown) * CELL
            yield (
                f'<text x="{x:g}" y="{y:g}" textLength="{length:g}" lengthAdjust="spacingAndGlyphs"'
                f"{_look(segment.style)}>{escape(shown)}</text>"
            )
        column += width


def _look(style: Style | None) -> str:
    if style is None:
        return f' fill="{INK}"'
    bold = ' font-weight="700"' if style.bold else ""
    dim = ' opacity="0.7"' if style.dim else ""
    return f' fill="{_colour(style.color)}"{bold}{dim}'


def _colour(colour: Color | None) -> str:
    if colour is None or colour.number is None or colour.number > 15:
        return INK
    return PALETTE[colour.number % 8]


_CONSOLE = Console(color_system="standard", width=400)
