"""What a terminal sends when somebody types, and how it is read."""

from __future__ import annotations

import asyncio
import os
import select
import termios

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.cli.terminal import Terminal, read_keys


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


def test_keys_that_are_gone_before_they_are_read_hold_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C throws away what was typed before it: a read that waits for more would never see the signal."""
    ours, theirs = os.openpty()
    before = termios.tcgetattr(theirs)
    pressed: list[str] = []

    async def type_keys() -> None:
        came = asyncio.Event()

        def press(key: str) -> None:
            pressed.append(key)
            came.set()

        with Terminal(press, came.set) as terminal:
            for _ in range(3):
                os.write(ours, b"s")
                select.select([theirs], [], [], 10.0)
                termios.tcflush(theirs, termios.TCIFLUSH)
                terminal._read()  # as the loop calls it, which has seen that there is something
            os.write(ours, b"q")
            await asyncio.wait_for(came.wait(), 10.0)

    with open(theirs, closefd=False) as stdin, open(theirs, "w", closefd=False) as stdout:
        monkeypatch.setattr("sys.stdin", stdin)
        monkeypatch.setattr("sys.stdout", stdout)
        asyncio.run(type_keys())

    assert pressed == ["q"]
    assert termios.tcgetattr(theirs) == before
    os.close(ours)
    os.close(theirs)
