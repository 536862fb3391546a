"""What a node of a job and its agent hand each other: the settings, the notices, the end. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from avahi_gpu.errors import AvahiGpuError
from avahi_gpu.files.cluster_key import ClusterKey
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.terms import Terms

MASTER_PRIORITY = 1_000_000  # the priority of the node that --master names


class JobEnded(AvahiGpuError):
    """There will be no round for this node any more. ``finished``: the job went well without it."""

    code = "job-ended"

    def __init__(self, message: str, hint: str = "", *, finished: bool = False) -> None:
        super().__init__(message, hint)
        self.finished = finished


@dataclass(frozen=True)
class Settings:
    """What a start of a node needs to know. ``interface`` None: whichever is best for all.

    ``host`` is the kernel's name for this machine; Avahi's may be another. ``master``: either name leads.
    """

    terms: Terms
    host: str
    priority: int = 0
    interface: str | None = None
    peers: tuple[str, ...] = ()  # hosts to ask by unicast, where multicast is filtered
    key: ClusterKey | None = None  # what all nodes of the job prove to hold; None: nobody is asked
    master: str = ""
    interfaces: tuple[str, ...] = ()  # those that the round may run on; none: all
    interface_words: str = ""  # how the user said which; see environment.name_choice

    def priority_of(self, published: str) -> int:
        """Return our priority in the election when Avahi publishes this machine under that name."""
        names = {self.host.lower(), published.lower()}
        return MASTER_PRIORITY if self.master.lower() in names else self.priority


@dataclass(frozen=True)
class Notice:
    """Something for people: an event, or (``waiting``) who is there by now.

    ``formed``: this round stands, and nobody waits any more. ``over``: why the running round is over.
    ``excluded``: the host that cannot join, and the text says why. ``ended``: there will be no round any
    more; the agent is told so by JobEnded once it waits for one.
    """

    text: str
    present: tuple[str, ...] = ()
    waiting: bool = False
    formed: steps.Round | None = None
    over: str = ""
    excluded: str = ""
    ended: bool = False


class Keeper(Protocol):
    """What ends the workers where the agent cannot, or not soon enough."""

    def hold(self, seconds: float) -> None: ...
    def end(self, seconds: float) -> None: ...


Listener = Callable[[Notice], None]


def describe_round(formed: steps.Round) -> str:
    """Return what people are told of a round that stands."""
    hosts = ", ".join(seat.host for seat in formed.seats)
    count = f"{len(formed.seats)} node{'s' if len(formed.seats) > 1 else ''}"
    leader = f"leader {formed.leader.host} at {formed.leader.address}"
    return f"round {formed.token.epoch}: {count} ({hosts}), {leader}"
