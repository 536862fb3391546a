"""What a terminal sends when somebody types."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.cli.terminal import read_keys


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        ("nq", ["n", "q"]),
        ("\x1b[A\x1b[Bx", ["up", "down", "x"]),
        ("\x1bOA\x1b[6~\x1b[5~", ["up", "page down", "page up"]),
        ("\x1b[15~g\x1b[1;5Cg\x1b[Hg", ["g", "g", "g"]),  # F5, Ctrl-right, Home
        ("\x1b", []),
        ("\x1b[", []),
        ("é", ["é"]),
    ],
)
def test_keys_are_told_apart(typed: str, keys: list[str]) -> None:
    assert read_keys(typed) == keys


@given(st.text(max_size=60))
def test_whatever_is_typed_ends(typed: str) -> None:
    assert len(read_keys(typed)) <= len(typed)
