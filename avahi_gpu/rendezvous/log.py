"""AVAHI_GPU_LOG: how much of its work the rendezvous tells on stderr, through Python's logging."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Mapping

from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.election import Candidate, Candidates
from avahi_gpu.rendezvous.trace import Trace

VARIABLE = "AVAHI_GPU_LOG"
LEVELS = {
    "debug": logging.DEBUG,  # every step of the agreement
    "info": logging.INFO,  # what was chosen, published and agreed on
    "warning": logging.WARNING,  # what others did wrong
    "error": logging.ERROR,
}
FORMAT = "%(name)s %(levelname)s %(message)s"

top = logging.getLogger("avahi_gpu")
agreement = logging.getLogger("avahi_gpu.rendezvous.agreement")
top.addHandler(logging.NullHandler())  # who does not ask is told nothing: not even by Python's last resort
_complained: set[str] = set()


class Stderr(logging.StreamHandler):  # type: ignore[type-arg]
    """Our own handler, told from those of the program by its class."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self.setFormatter(logging.Formatter(FORMAT))


def configure(environ: Mapping[str, str] = os.environ) -> str:
    """Let the loggers ``avahi_gpu.…`` tell as much as AVAHI_GPU_LOG says, from now on.

    Without it they are as the program has set them up itself, if it has. Returns a sentence about a wrong
    value, '' where it is right or has been told already.
    """
    wanted = environ.get(VARIABLE, "").strip()
    level = LEVELS.get(wanted.lower())
    if level is not None:
        if not any(isinstance(handler, Stderr) for handler in top.handlers):
            top.addHandler(Stderr())
            top.propagate = False  # not a second time by the handlers of torch or of the script
        top.setLevel(level)
        return ""
    if not wanted or wanted in _complained:
        return ""
    _complained.add(wanted)
    return f"{VARIABLE}={wanted[:64]} is not one of {', '.join(LEVELS)}: it changes nothing"


def start_trace(own: Candidate, now: float) -> Trace | None:
    """Return what follows the agreement's steps from monotonic time ``now`` on; None where nobody reads."""
    return Trace(own, now) if agreement.isEnabledFor(logging.INFO) else None


def follow(
    trace: Trace,
    event: steps.Event,
    actions: Iterable[steps.Action],
    candidates: Candidates,
    now: float,
) -> None:
    """Tell one step of the agreement."""
    for level, line in trace.lines(event, actions, candidates, now):
        agreement.log(level, "%s", line)
