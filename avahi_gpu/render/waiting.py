"""Who is there and who is missed while a job gathers: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import TextIO

from avahi_gpu.render.text import join_names, printable

TICK_S = 1.0  # the live line counts seconds, so that people see that it lives
PATIENCE_S = 1.0  # nodes that start together are together by then: no need to say how they came one by one
LINE_MAX = 1000  # characters of one line for people; hosts and reasons come from the network
CLEAR = "\r\x1b[K"  # to the first column, and erase to the end of the line (ECMA-48 EL)


def describe_waiting(
    text: str,
    present: Sequence[str],
    smallest: int,
    largest: int,
    seen: Collection[str] = (),
    *,
    excluded: Collection[str] = (),
    limit_s: float | None = None,
    names: bool = True,
) -> str:
    """Return who is missed and who is there; the missing come first, since a narrow terminal shows no more.

    ``seen``: host names of the cluster's nodes that are on the LAN, whether they have started the job or not;
    ``excluded``: of nodes that have started it and cannot join. ``limit_s``: how long the wait may take.
    ``names``: of those who are there, their names as well as their number.
    """
    here = {name.lower() for name in present}
    apart = sorted(name for name in excluded if name.lower() not in here)
    here |= {name.lower() for name in apart}
    absent = sorted(name for name in seen if name.lower() not in here)
    missing = max(0, smallest - len(present))
    parts = []
    if len(present) < largest:
        limit = at_most(limit_s) if limit_s is not None else ""
        kinds = (("not here yet", absent), ("cannot join", apart))
        absence = "; ".join(f"{what}: {join_names(those)}" for what, those in kinds if those)
        wait = f"waiting for {missing} more{limit}" if missing else "last call"
        parts.append(wait + (f" ({absence})" if absence else ""))
    if text:
        parts.append(text)
    those = f" ({', '.join(present)})" if names else ""
    parts.append(f"{len(present)} of {nodes_wanted(smallest, largest)} here{those}")
    return "; ".join(parts)


def at_most(seconds: float) -> str:
    """Return how long a wait may take: ``, for 10 min at most``."""
    minutes, rest = divmod(round(seconds), 60)
    return f", for {f'{minutes} min' if minutes and not rest else f'{seconds:g} s'} at most"


def nodes_wanted(smallest: int, largest: int) -> str:
    """Return the number of nodes in words: ``1 node``, ``3 nodes`` or ``2-3 nodes``."""
    if smallest == largest:
        return f"{largest} node{'s' if largest > 1 else ''}"
    return f"{smallest}-{largest} nodes"


class Waiting:
    """Shows events and the state of the gathering on ``stream``. Methods may be called from any thread."""

    def __init__(
        self,
        stream: TextIO,
        smallest: int,
        largest: int,
        clock: Callable[[], float] = time.monotonic,
        limit_s: float | None = None,
    ) -> None:
        """``limit_s``: how long a gathering may take; its first line says so."""
        self.stream = stream
        self.limit_s = limit_s
        self.smallest, self.largest = smallest, largest
        self.clock = clock
        self.live = stream.isatty()
        self._lock = threading.RLock()
        self._text = ""
        self._present: tuple[str, ...] = ()
        self._seen: frozenset[str] = frozenset()
        self._excluded: frozenset[str] = frozenset()
        self._since: float | None = None  # when the gathering began; None: nobody waits
        self._shown = ""
        self._stop = threading.Event()
        self._ticker: threading.Thread | None = None

    def event(self, text: str) -> None:
        """Something happened: a line of its own, which stays."""
        with self._lock:
            self._erase()
            self._write(f"avahi-gpu: {printable(text, LINE_MAX)}\n")
            self._draw()

    def state(self, text: str, present: Sequence[str]) -> None:
        """The job gathers: this is who is there."""
        with self._lock:
            self._text, self._present = text, tuple(present)
            if self._since is None:
                self._since = self.clock()
            if self._ticker is None:
                self._ticker = threading.Thread(target=self._tick, name="waiting", daemon=True)
                self._ticker.start()
            self._draw()

    def see(self, names: Collection[str]) -> None:
        """These hosts of the cluster are on the LAN."""
        with self._lock:
            self._seen = frozenset(names)
            self._draw()

    def exclude(self, name: str) -> None:
        """This host has started the job and cannot join; why was told as an event."""
        with self._lock:
            self._excluded |= {name}
            self._draw()

    def over(self) -> None:
        """The gathering has ended, well or not."""
        with self._lock:
            self._erase()
            self._since, self._shown = None, ""

    def close(self) -> None:
        """Show nothing any more."""
        self.over()
        self._stop.set()

    def tick(self) -> None:
        """Time has passed."""
        with self._lock:
            self._draw()

    def _draw(self) -> None:
        if self._since is None or self.clock() - self._since < PATIENCE_S:
            return
        line = self._line()
        if self.live:
            elapsed = f" [{self.clock() - self._since:.0f} s]"
            room = columns(self.stream) - len(elapsed) - 1
            choices = (self._line(limit_s=self.limit_s), line, self._line(names=False))
            fitting = next((choice for choice in choices if len(choice) <= room), choices[-1])
            self._write(CLEAR + shorten(fitting, room) + elapsed)
            self._shown = line
        elif line != self._shown:
            self._write((line if self._shown else self._line(limit_s=self.limit_s)) + "\n")
            self._shown = line

    def _line(self, *, limit_s: float | None = None, names: bool = True) -> str:
        line = describe_waiting(
            self._text,
            self._present,
            self.smallest,
            self.largest,
            self._seen,
            excluded=self._excluded,
            limit_s=limit_s,
            names=names,
        )
        return f"avahi-gpu: {printable(line, LINE_MAX)}"

    def _erase(self) -> None:
        if self.live and self._shown:
            self._write(CLEAR)
            self._shown = ""

    def _write(self, text: str) -> None:
        # a reader that has gone, or a stream that was closed, ends no job
        with suppress(OSError, ValueError):
            self.stream.write(text)
            self.stream.flush()

    def _tick(self) -> None:
        while not self._stop.wait(TICK_S):
            self.tick()


def columns(stream: TextIO) -> int:
    """Return how many characters a line of the terminal holds."""
    import os

    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def shorten(line: str, width: int) -> str:
    """Return ``line`` cut to ``width`` characters: a live line that wraps cannot be drawn over."""
    width = max(width, 20)
    return line if len(line) <= width else line[: width - 1] + "…"
