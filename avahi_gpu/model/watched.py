"""A node as somebody who watches the LAN sees it from one moment to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from avahi_gpu.model.words import Peer


@dataclass(frozen=True)
class Seat:
    """A node's place in a job. ``rank`` and ``size`` (members) are None while it is in no round."""

    job: str
    rank: int | None = None
    size: int | None = None


@dataclass(frozen=True)
class Watched:
    """A peer, and what only those who go on looking know.

    ``rtt_s``: how long its last answer took, None without one. ``silent_s``: since it answered last, None
    where it never has. ``speed_mbit``: of this machine's interface on the way to it. ``free_mib``: what is
    free on each of its GPUs, None where it does not tell. ``asked``: False for those that nobody asks.
    """

    peer: Peer
    rtt_s: float | None = None
    silent_s: float | None = None
    speed_mbit: int | None = None
    free_mib: tuple[int, ...] | None = None
    seats: tuple[Seat, ...] = ()
    asked: bool = True


WatchKind = Literal[
    "joined",  # a node is listed
    "left",  # it is not any more
    "moved",  # it has another address
    "dead",  # it does not answer
    "alive",  # it answers again
    "job",  # it began, joined or left a job, or has another rank
    "avahi",  # avahi-daemon on this machine went or came
    "network",  # an interface or address of this machine did
    "complete",  # as many nodes are there as are expected
    "incomplete",  # fewer than that
    "more",  # so many events that some are only counted
]


@dataclass(frozen=True)
class WatchEvent:
    """What happened, in a sentence; ``node`` as it is now, or was when it left; None where it is of none."""

    kind: WatchKind
    says: str
    node: Watched | None = None
