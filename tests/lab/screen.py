"""A terminal for a command on a host: what it draws is read as a person sees it, keys are typed into it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from tests.lab.host import Host

SEQUENCE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b[()][A-Z0-9]|\x1b[=>78]")


class Screen:
    """A grid of characters, as far as we draw: lines, the cursor's ways, erasing, the alternate screen."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.other = False  # whether the alternate screen is shown
        self.cursor_shown = True
        self.too_wide = False  # whether a line of what is drawn now did not fit
        self._text = ""
        self._grid: dict[tuple[int, int], str] = {}
        self._kept: dict[tuple[int, int], str] = {}
        self._at = self._kept_at = (0, 0)

    def feed(self, text: str) -> None:
        """Take what a program wrote."""
        self._text += text
        while self._text:
            if self._text[0] != "\x1b":
                self._put(self._text[0])
                self._text = self._text[1:]
                continue
            found = SEQUENCE.match(self._text)
            if found is None:
                assert len(self._text) < 32, f"a sequence that nobody knows: {self._text[:32]!r}"
                return  # the rest is still to come
            self._text = self._text[found.end() :]
            if found[2]:
                self._obey(found[1], found[2])

    @property
    def lines(self) -> list[str]:
        """The lines as they stand there."""
        return [
            "".join(self._grid.get((row, column), " ") for column in range(self.columns)).rstrip()
            for row in range(self.rows)
        ]

    def _put(self, character: str) -> None:
        row, column = self._at
        if character == "\n":
            if row + 1 < self.rows:
                row += 1
            else:
                self._grid = {(r - 1, c): x for (r, c), x in self._grid.items() if r > 0}
        elif character == "\r":
            column = 0
        elif character.isprintable():
            self.too_wide = self.too_wide or column >= self.columns
            self._grid[row, column] = character
            column += 1
        self._at = (row, column)

    def _obey(self, numbers: str, letter: str) -> None:
        row, column = self._at
        count = int(numbers) if numbers.isdigit() else 1
        if letter == "H":
            self.too_wide = False
            words = [int(n or 1) for n in numbers.split(";")] if numbers else [1, 1]
            self._at = (words[0] - 1, words[-1] - 1)
        elif letter == "A":
            self._at = (max(0, row - count), column)
        elif letter in "KJ":
            whole = letter == "J" or numbers == "2"
            self._grid = {
                (r, c): x
                for (r, c), x in self._grid.items()
                if not (whole if letter == "J" else r == row and (whole or c >= column))
            }
        elif (numbers, letter) in (("?1049", "h"), ("?1049", "l")):
            self.other = letter == "h"
            if self.other:
                self._grid, self._kept, self._kept_at = {}, self._grid, self._at
            else:
                self._grid, self._kept, self._at = self._kept, {}, self._kept_at
        elif numbers == "?25":
            self.cursor_shown = letter == "h"


class Session:
    """A command that has a terminal of its own, as its controlling one. A context manager that ends it."""

    def __init__(
        self, host: Host, argv: Sequence[str], columns: int = 120, rows: int = 24, **env: str
    ) -> None:
        self._ours, self._theirs = pty.openpty()
        self.screen = Screen(columns, rows)
        self.raw = ""
        self.resize(columns, rows)
        self.modes = termios.tcgetattr(self._theirs)  # as they are before it starts
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), self._theirs)
        self.process = host.popen(["setsid", "-cw", *argv], env={"TERM": "xterm", **env}, **streams)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.end()
        os.close(self._ours)
        os.close(self._theirs)

    def resize(self, columns: int, rows: int) -> None:
        """Make the terminal that large; its foreground program hears of it."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.columns, self.screen.rows = columns, rows
        self.screen._grid.clear()

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._ours, keys.encode())

    def hang_up(self) -> None:
        """Take the terminal away, as a lost ssh connection does."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, self._ours)
        os.dup2(nowhere, self._theirs)
        os.close(nowhere)

    def look(self, within_s: float = 0.0) -> list[str]:
        """Take in what was drawn meanwhile, return the lines of the screen."""
        while select.select([self._ours], [], [], within_s)[0]:
            part = os.read(self._ours, 65536).decode("utf-8", "replace")
            self.raw += part
            self.screen.feed(part)
            within_s = 0.0
        return self.screen.lines

    def wait_until(self, holds: Callable[[list[str]], object], within_s: float = 20.0) -> float:
        """Wait until it holds of the screen's lines; return how long that took."""
        began = time.monotonic()
        while not holds(self.look(0.05)):
            waited = time.monotonic() - began
            assert waited < within_s, f"not within {within_s:g} s:\n" + "\n".join(self.screen.lines)
        return time.monotonic() - began

    def line_of(self, name: str) -> str:
        """Return the table's line of a node, '' where it is not there."""
        return next((line for line in self.look() if line.startswith(name)), "")

    @property
    def restored(self) -> bool:
        """Whether the terminal is as it was before."""
        same = termios.tcgetattr(self._theirs) == self.modes
        return same and not self.screen.other and self.screen.cursor_shown

    @property
    def foreground(self) -> int:
        """The process group, seen from outside, whose terminal it is."""
        return os.tcgetpgrp(self._ours)

    def signal(self, number: signal.Signals) -> None:
        """Send the program a signal, as ``kill`` does."""
        inner = self._inner()
        assert inner, "there is nobody to send it to"
        for pid in inner:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _inner(self) -> list[int]:
        """Return the pids of avahi-gpu below setsid."""
        found, seen = [], [self.process.pid]
        while seen:
            pid = seen.pop()
            with suppress(OSError):
                seen += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
                if b"avahi-gpu" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1]:
                    found.append(pid)
        return found

    def _waits(self) -> list[str]:
        """Return what the program's threads wait for: the kernel's function, the call's number and words."""
        tasks = [task for pid in self._inner() for task in Path(f"/proc/{pid}/task").iterdir()]
        return [f"{(t / 'wchan').read_text()} {(t / 'syscall').read_text().strip()}" for t in tasks]

    def wait(self, within_s: float = 10.0) -> int:
        """Wait for its end, taking in what it draws; return the exit code."""
        end = time.monotonic() + within_s
        while self.process.poll() is None:
            assert time.monotonic() < end, f"it does not end: {self._waits()}\n" + "\n".join(
                self.screen.lines
            )
            self.look(0.05)
        self.look()
        return self.process.returncode
