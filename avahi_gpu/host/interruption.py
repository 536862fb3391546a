"""Signals that end a program, put off while a change of the machine is half made."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Ctrl-C; kill, systemctl stop and the system going down; the terminal or the ssh connection is lost
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(KeyboardInterrupt):
    """One of ENDING came. Caught where Ctrl-C is."""


@contextmanager
def heard() -> Iterator[None]:
    """Raise Ended in the block where such a signal comes, instead of ending without a word."""
    with _handled(_raise):
        yield


@contextmanager
def held() -> Iterator[None]:
    """Let the block come to its end first, and raise Ended then. For blocks of seconds at most."""
    came: list[int] = []
    with _handled(lambda number, _: came.append(number)):
        yield
    if came:
        raise Ended(signal.Signals(came[0]).name)


@contextmanager
def noted() -> Iterator[list[int]]:
    """Note such a signal in the list and let the block go on; a second one is raised in it as Ended."""
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)
        if len(came) > 1:
            _raise(number, frame)

    with _handled(note):
        yield came


@contextmanager
def _handled(handler: object) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main one hears signals
        return
    # whoever started us with a signal ignored (nohup) wants it to stay so
    before = {n: old for n in ENDING if (old := signal.getsignal(n)) not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, handler)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _raise(number: int, _: FrameType | None) -> None:
    raise Ended(signal.Signals(number).name)
