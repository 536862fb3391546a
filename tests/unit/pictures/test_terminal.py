"""A screen as SVG: columns hold whatever the font, colours are those of the terminal, nothing runs over."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from pictures.terminal import CELL, INK, PADDING, PALETTE, draw

TEXT = "{http://www.w3.org/2000/svg}text"


def runs(*lines: str, columns: int = 40) -> list[ET.Element]:
    """Return the runs of characters, without the window's title."""
    return list(ET.fromstring(draw("a title", lines, columns)).iter(TEXT))[1:]


def test_a_run_stands_at_its_column_and_is_as_long_as_its_characters() -> None:
    plain, red = runs("  ab \x1b[31mred\x1b[0m")

    assert (plain.text, plain.get("x"), plain.get("textLength")) == ("ab", f"{PADDING + 2 * CELL:g}", "16")
    assert (red.text, red.get("x")) == ("red", f"{PADDING + 5 * CELL:g}")
    assert (plain.get("fill"), red.get("fill")) == (INK, PALETTE[1])


def test_bold_is_bold_and_wide_characters_take_two_places() -> None:
    (bold,) = runs("\x1b[1m節\x1b[0m")

    assert bold.get("font-weight") == "700"
    assert bold.get("textLength") == f"{2 * CELL:g}"


def test_long_lines_go_on_below() -> None:
    first, second = runs("aaaa bbbb cccc dddd", columns=14)

    assert (first.text, second.text) == ("aaaa bbbb", "cccc dddd")
    assert float(first.get("y", "")) < float(second.get("y", ""))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=90), max_size=6))
def test_whatever_is_printed_stays_inside(lines: list[str]) -> None:
    for run in runs(*lines, columns=30):
        end = float(run.get("x", "0")) + float(run.get("textLength", "0"))
        assert end <= PADDING + 30 * CELL + 0.01 or cell_len(run.text or "") > 30
