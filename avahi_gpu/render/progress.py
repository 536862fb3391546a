"""What a command waits for, in one line that goes away: on a terminal alone, and only where it takes long."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

PATIENCE_S = 1.0  # what ends sooner needs no word
TICK_S = 0.5
NAMED = 3  # more names than these tell nobody more
CLEAR = "\r\x1b[K"  # to the first column, and erase to the end of the line (ECMA-48 EL)
_WORDS = {
    "lan": "answers from the LAN",
    "gpus": "GPUs",
    "versions": "torch's versions",
    "kernel_name": "the look-up of the own name",
}


@contextmanager
def progress(stream: TextIO, pending: set[str]) -> Iterator[None]:
    """Show what of ``pending`` is still awaited, as the block goes on; nothing where nobody looks."""
    if not stream.isatty():
        yield
        return
    ended = threading.Event()
    painter = threading.Thread(target=_paint, args=(stream, pending, ended), daemon=True)
    painter.start()
    try:
        yield
    finally:
        ended.set()
        painter.join()


def describe(pending: set[str], seconds: float) -> str:
    """Return the line: ``… 3 s, waiting for name servers, GPUs and 2 more``."""
    names = [_WORDS.get(name) or _speak(name) for name in sorted(pending.copy())]
    shown = ", ".join(names[:NAMED])
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"… {seconds:.0f} s" + (f", waiting for {shown}{more}" if names else "")


def _speak(name: str) -> str:
    return name if name.startswith("/") else name.rpartition(".")[2].replace("_", " ")


def _paint(stream: TextIO, pending: set[str], ended: threading.Event) -> None:
    started = time.monotonic()
    shown = False
    wait_s = PATIENCE_S
    while not ended.wait(wait_s):
        wait_s = TICK_S
        width = shutil.get_terminal_size().columns - 1
        stream.write(CLEAR + describe(pending, time.monotonic() - started)[:width])
        stream.flush()
        shown = True
    if shown:
        stream.write(CLEAR)
        stream.flush()
