"""docs/reference/nsswitch.md tells every shape with our own edit.

What Debian and glibc make of it, the lab tells.
"""

from __future__ import annotations

import pytest

from tests.lab.nsswitch_shapes import PAGE, SHAPES, repaired, show, text_of


@pytest.mark.parametrize("shape", SHAPES)
def test_a_row_has_our_edit(shape: str) -> None:
    before = text_of(SHAPES[shape])
    after = repaired(before)

    (row,) = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if f"| {shape} |" in line]

    cells = [cell.strip() for cell in row.strip("|").split(" | ")]
    assert cells[1] == (show(before) or "none")
    assert cells[5].startswith("left alone") if after == before else cells[5] == show(after)
