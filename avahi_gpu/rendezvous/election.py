"""Who leads: the candidates of a job, their order, and which of them is worth trying. Pure.

Peers are known by a random id for each start, never by host name: two machines may share a name, and a
machine that comes back is another candidate.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

SET_ASIDE_S = 4.0  # an unreachable candidate is left alone for this long; longer, and a rebooted one waits
SET_ASIDE_MAX_S = 30.0  # a host that stays away is asked twice a minute, not for ever every four seconds
HURRY_S = 0.4  # a candidate that has not answered a connect by then no longer holds up the choice
CANDIDATES_MAX = 64  # more of one job than this on one LAN are noise or an attack


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key under which ``gpu-node-2`` comes before ``gpu-node-10``."""
    parts = re.split(r"(\d{1,18})", name.lower())
    return tuple((int(p), "") if p.isdigit() and p.isascii() else (-1, p) for p in parts if p)


@dataclass(frozen=True)
class Candidate:
    """A running node of the job, as it says of itself. ``size``: nodes in the round that it leads now."""

    id: str
    host: str
    address: str
    port: int
    priority: int = 0
    size: int = 0

    @property
    def rank(self) -> tuple[int, tuple[tuple[int, str], ...], str]:
        """The order among equals: highest priority, host name in natural order, id. The lowest leads."""
        return (-self.priority, natural(self.host), self.id)

    @property
    def claim(self) -> tuple[int, int, tuple[tuple[int, str], ...], str]:
        """The order between leaders: a larger running round first, so that a newcomer disturbs nobody."""
        return (-self.size, *self.rank)


@dataclass
class Candidates:
    """The other candidates that this node knows, and how long to leave which of them alone."""

    own: Candidate
    known: dict[str, Candidate] = field(default_factory=dict)
    aside_until: dict[str, float] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    trying_since: dict[str, float] = field(default_factory=dict)

    def learn(self, candidate: Candidate) -> bool:
        """Take in a candidate; return whether it is new or has another address, port or round."""
        if candidate.id == self.own.id:
            return False
        before = self.known.get(candidate.id)
        if before == candidate or (before is None and len(self.known) >= CANDIDATES_MAX):
            return False
        self.known[candidate.id] = candidate
        if before is not None and (before.address, before.port) != (candidate.address, candidate.port):
            self.forgive(candidate.id)
        return True

    def forget(self, id: str) -> None:
        """Drop a candidate that has left."""
        for table in (self.known, self.aside_until, self.failures, self.trying_since):
            table.pop(id, None)

    def set_aside(self, id: str, now: float, for_s: float | None = None) -> None:
        """Leave ``id`` alone for a while; without ``for_s`` twice as long with every failure in a row."""
        count = self.failures.get(id, 0)
        wait_s = min(SET_ASIDE_S * 2**count, SET_ASIDE_MAX_S) if for_s is None else for_s
        self.failures[id] = min(count + 1, 8)
        self.aside_until[id] = now + wait_s
        self.trying_since.pop(id, None)
        if id in self.known:  # what it once said of its round is no longer to be relied on
            self.known[id] = replace(self.known[id], size=0)

    def forgive(self, id: str) -> None:
        """A candidate has answered, or moved: nothing speaks against it."""
        self.aside_until.pop(id, None)
        self.failures.pop(id, None)
        self.trying_since.pop(id, None)

    def usable(self, now: float) -> list[Candidate]:
        """Return the candidates that are not set aside, best claim first."""
        found = [c for c in self.known.values() if self.aside_until.get(c.id, now) <= now]
        return sorted(found, key=lambda c: c.claim)

    def best(self, now: float) -> Candidate:
        """Return the candidate to join: the best claim among the usable ones and ourselves.

        One that has been tried for longer than ``HURRY_S`` without an answer does not count until it answers.
        """
        prompt = [c for c in self.usable(now) if now < self.trying_since.get(c.id, now) + HURRY_S]
        return min([*prompt, self.own], key=lambda c: c.claim)

    def next_change(self, now: float) -> float | None:
        """Return when the answer of ``best`` may change by the passing of time alone."""
        moments = [t for t in self.aside_until.values() if t > now]
        moments += [t + HURRY_S for t in self.trying_since.values() if t + HURRY_S > now]
        return min(moments, default=None)
