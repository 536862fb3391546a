"""A terminal that is drawn on as a whole: its modes, its keys, and the signals that hand it back."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
import termios
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from avahi_gpu.host.interruption import Ended

if TYPE_CHECKING:
    from rich.text import Text

KEYS_AT_ONCE = 256  # bytes: more than anybody types between two looks
# Ctrl-\ too: what ends without a word leaves a shell without an echo, on a screen that is not its own
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
ARROWS = {"\x1b[A": "up", "\x1b[B": "down", "\x1b[5~": "page up", "\x1b[6~": "page down"}
ARROWS |= {"\x1bOA": "up", "\x1bOB": "down"}  # as some terminals say it


def is_drawable() -> bool:
    """Return whether stdout is a terminal on which lines can be drawn over."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "")


def read_keys(typed: str) -> list[str]:
    """Return the keys in what a terminal sent: characters, ``up``, ``down``, ``page up``, ``page down``.

    Other keys that send a sequence are passed over.
    """
    keys = []
    while typed:
        arrow = next((sequence for sequence in ARROWS if typed.startswith(sequence)), None)
        if arrow is not None:
            keys.append(ARROWS[arrow])
            typed = typed[len(arrow) :]
        elif typed[0] == "\x1b":
            end = next((i for i, c in enumerate(typed) if i > 1 and (c.isalpha() or c == "~")), len(typed))
            typed = typed[end + 1 :]
        else:
            keys.append(typed[0])
            typed = typed[1:]
    return keys


class Terminal:
    """A context manager in a running event loop: from its entry to its end the screen is ours.

    ``pressed`` is called with each key, ``resized`` when the screen is to be drawn anew. In the background
    nothing is drawn, until it is brought to the front. ``ended()`` raises Ended after a signal that ends
    programs.
    """

    def __init__(self, pressed: Callable[[str], None], resized: Callable[[], None]) -> None:
        from rich.live import Live

        from avahi_gpu.render.text import console

        self._pressed, self._resized = pressed, resized
        self._console = console()
        self._new_live: Callable[[], Live] = lambda: Live(
            console=self._console,
            screen=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live: Live | None = None
        self._modes: list[Any] | None = None  # of stdin as we found it
        self._ended_by: signal.Signals | None = None
        self._loop = asyncio.get_running_loop()
        self.has_keys = sys.stdin is not None and sys.stdin.isatty()

    def __enter__(self) -> Terminal:
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as of nohup
                self._loop.add_signal_handler(number, self._end, number)
        self._loop.add_signal_handler(signal.SIGTSTP, self._suspend)
        self._loop.add_signal_handler(signal.SIGCONT, self._go_on)
        self._loop.add_signal_handler(signal.SIGWINCH, self._resized)
        self._take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back()
        for number in (*ENDING, signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH):
            self._loop.remove_signal_handler(number)

    def ended(self) -> None:
        """Raise Ended where a signal came that ends programs, or the terminal is gone without one."""
        if self._ended_by is None and not sys.stdout.isatty():
            self._ended_by = signal.SIGHUP
        if self._ended_by is not None:
            raise Ended(self._ended_by.name)

    def show(self, draw: Callable[[int, int], Sequence[Text]]) -> None:
        """Draw the screen; ``draw`` is called with its width and height."""
        from rich.console import Group

        if not _in_front() or not self._take():
            return
        assert self._live is not None
        size = self._console.size
        self._live.update(Group(*draw(size.width, size.height)), refresh=True)

    def _take(self) -> bool:
        """Take the screen, unless that is done or we are in the background; return whether it is ours."""
        if self._live is not None:
            return True
        if not _in_front():
            return False
        if self.has_keys and self._modes is None:
            self._modes = termios.tcgetattr(sys.stdin)
        self._read_keys()
        self._live = self._new_live()
        self._live.start()
        return True

    def _read_keys(self) -> None:
        if self.has_keys:
            _take_each_key()
            self._loop.add_reader(sys.stdin, self._read)

    def _give_back(self) -> None:
        """Leave the terminal as it was; whatever of it is gone needs no care."""
        live, self._live = self._live, None
        if live is not None:
            with contextlib.suppress(OSError, ValueError):
                live.stop()
        if self.has_keys:
            self._loop.remove_reader(sys.stdin)
        if self._modes is not None and _in_front():
            with contextlib.suppress(OSError, termios.error):
                termios.tcsetattr(sys.stdin, termios.TCSANOW, self._modes)
        self._modes = None

    def _read(self) -> None:
        typed, gone = b"", True
        with contextlib.suppress(OSError):
            typed = os.read(sys.stdin.fileno(), KEYS_AT_ONCE)
            gone = not typed and _hung_up()
        if gone:
            self._loop.remove_reader(sys.stdin)
            self._resized()
        for key in read_keys(typed.decode("utf-8", "replace")):
            self._pressed(key)

    def _end(self, number: signal.Signals) -> None:
        self._ended_by = signal.Signals(number)
        self._resized()

    def _suspend(self) -> None:
        """Stop as Ctrl-Z asks for, with the terminal as the shell wants it."""
        self._give_back()
        self._loop.remove_signal_handler(signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)  # we stand still here until SIGCONT
        self._loop.add_signal_handler(signal.SIGTSTP, self._suspend)

    def _go_on(self) -> None:
        """Draw again after SIGCONT: the shell has had the terminal, whatever had stopped us."""
        if self._live is not None and _in_front():
            with contextlib.suppress(OSError, termios.error):  # it is gone: ``ended`` says so
                if self.has_keys:
                    _take_each_key()
                self._console.set_alt_screen(True)
        self._resized()


def _take_each_key() -> None:
    """Let keys come as they are typed, unseen, and a read return at once, whether there is one or none.

    Ctrl-C and other keys that send a signal throw away what was typed before them, also between our seeing
    and our reading it: a read that waited then would hold up the very signal.
    """
    modes = termios.tcgetattr(sys.stdin)
    modes[3] &= ~(termios.ECHO | termios.ICANON)
    modes[6][termios.VMIN], modes[6][termios.VTIME] = 0, 0
    termios.tcsetattr(sys.stdin, termios.TCSANOW, modes)


def _hung_up() -> bool:
    """Return whether the terminal has gone: a read of nothing tells no difference."""
    keys = select.poll()
    keys.register(sys.stdin.fileno(), 0)
    return bool(keys.poll(0))


def _in_front() -> bool:
    """Return whether we are the terminal's foreground job; a terminal that tells nothing is ours."""
    try:
        return os.tcgetpgrp(sys.stdout.fileno()) == os.getpgrp()
    except OSError:
        return True
