"""How the workers of a node ended. Pure."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass


class Stopped(BaseException):
    """A signal asks this process to end. Not an Exception: nothing on the way may take it for a failure."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclass(frozen=True)
class Failure:
    """One worker that failed. ``code`` is negative where a signal ended it; ``moment`` in Unix seconds."""

    rank: int
    pid: int
    code: int
    message: str = ""
    moment: int = 0


def first_failure(failures: Sequence[Failure]) -> Failure:
    """Return the failure that came first; the others mostly follow from it."""
    return min(failures, key=lambda failure: (failure.moment, failure.rank))


def describe(failure: Failure) -> str:
    """Return ``rank 0 ended with exit code 7 (RuntimeError: no data)``."""
    if failure.code < 0:
        name = f"signal {-failure.code}"
        with suppress(ValueError):
            name = signal.Signals(-failure.code).name
        how = f"was ended by {name}"
    else:
        how = f"ended with exit code {failure.code}"
    return f"rank {failure.rank} {how}" + (f" ({failure.message})" if failure.message else "")


def exit_code(failures: Sequence[Failure]) -> int:
    """Return the exit code of the whole: 0 without failures, else as a shell shows the first one's."""
    if not failures:
        return 0
    code = first_failure(failures).code
    return 128 - code if code < 0 else code
