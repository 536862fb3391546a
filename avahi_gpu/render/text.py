"""Words for people: safe to print, and coloured only on a terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

from avahi_gpu.errors import AvahiGpuError

if TYPE_CHECKING:
    from rich.console import Console

PRINTABLE_LIMIT = 256  # characters of one value from outside: longer tells nobody anything


def printable(text: str, limit: int = PRINTABLE_LIMIT) -> str:
    """Return ``text`` with every character that could steer a terminal shown as ``\\xNN`` or ``\\uNNNN``.

    What comes from the network or from files may hold escape sequences or bidirectional overrides.
    """
    shown = "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text[:limit]
    )
    return shown + ("…" if len(text) > limit else "")


def console(stream: TextIO | None = None) -> Console:
    """Return a console on ``stream`` (stdout by default) that neither wraps nor highlights on a pipe."""
    from rich.console import Console  # the rendezvous, which imports us for ``printable``, does without

    class Plain(Console):
        """rich's own answer to a reader that has gone is exit code 1; ``cli.outcome`` knows a better one."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return _plain(Plain, stream)


def _plain(kind: type[Console], stream: TextIO | None) -> Console:
    stream = stream or sys.stdout
    return kind(file=stream, highlight=False, soft_wrap=not stream.isatty(), emoji=False, markup=False)


def steady_console(stream: TextIO | None = None) -> Console:
    """Return one for what changes the machine: it goes on where nobody reads of it, or the disk is full."""
    from rich.console import Console

    class Steady(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

        def print(self, *arguments: Any, **named: Any) -> None:
            try:
                super().print(*arguments, **named)
            except OSError:
                nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
                os.dup2(nowhere, self.file.fileno())  # what is still in the buffer goes there, too
                os.close(nowhere)

    return _plain(Steady, stream)


def describe_error(error: AvahiGpuError) -> str:
    """Return one sentence of what is and, on a second line, one of what to do."""
    message = printable(error.message, 2000)
    return f"{message}\n  {printable(error.hint, 2000)}" if error.hint else message


def join_names(names: list[str]) -> str:
    """Return names as a person writes them: ``a, b and c``."""
    if len(names) < 2:
        return "".join(names)
    return ", ".join(names[:-1]) + " and " + names[-1]
