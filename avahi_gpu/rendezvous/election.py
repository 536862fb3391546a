"""Who leads: the candidates of a job, their order, and which of them is worth trying. Pure.

Peers are known by a random id for each start, never by host name: two machines may share a name, and a
machine that comes back is another candidate.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from avahi_gpu.model import natural_order

HURRY_S = 0.4  # a candidate that has not answered a connect by then no longer holds up the choice
ASIDE_S = 0.3  # whoever sends us on is left alone for so long: time to ask the one that it names
ASIDE_MAX_S = 5.0  # and longer each time, where it names one that cannot be reached from here
REMEMBER_S = 600.0  # a host that went silent is asked for so long after its record has gone as well
CANDIDATES_MAX = 64  # more of one job than this on one LAN are noise or an attack


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
        return (-self.priority, natural_order(self.host), self.id)

    @property
    def claim(self) -> tuple[int, int, tuple[tuple[int, str], ...], str]:
        """The order between leaders: a larger running round first, so that a newcomer disturbs nobody."""
        return (-self.size, *self.rank)


@dataclass
class Candidates:
    """The other candidates that this node knows, and which of them are worth waiting for.

    One that does not answer is doubted: it holds up nothing any more, but it is still asked now and then,
    also when its record has gone. A network that was split may have forgotten every record by the time it
    heals, and Avahi asks again only after up to an hour.
    """

    own: Candidate
    known: dict[str, Candidate] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)  # those with a record on the LAN
    doubted_since: dict[str, float] = field(default_factory=dict)
    aside_until: dict[str, float] = field(default_factory=dict)
    sent_on: dict[str, int] = field(default_factory=dict)  # how often by whom
    trying_since: dict[str, float] = field(default_factory=dict)
    met: bool = False  # whether there ever was another one

    def learn(self, candidate: Candidate) -> bool:
        """Take in a candidate; return whether it is new or has another address, port or round."""
        if candidate.id == self.own.id:
            return False
        self.met = True
        before = self.known.get(candidate.id)
        if before == candidate:
            return False
        if before is None and len(self.known) >= CANDIDATES_MAX:
            if not self.doubted_since:
                return False
            self.forget(min(self.doubted_since, key=self.doubted_since.__getitem__))
        self.known[candidate.id] = candidate
        if before is not None and (before.address, before.port) != (candidate.address, candidate.port):
            self.forgive(candidate.id)
        return True

    def appear(self, candidate: Candidate) -> bool:
        """Take in a candidate whose record has appeared; return what ``learn`` does."""
        before = self.known.get(candidate.id)
        if before is not None:  # what it said itself is right when its record is stale or wrong
            candidate = replace(before, address=candidate.address, port=candidate.port)
        changed = self.learn(candidate)
        if candidate.id in self.known and candidate.id not in self.listed:
            self.listed.add(candidate.id)
            self.forgive(candidate.id)
        return changed

    def vanish(self, id: str) -> None:
        """The record of a candidate has gone."""
        self.listed.discard(id)

    def forget(self, id: str) -> None:
        """Drop a candidate that has left."""
        self.known.pop(id, None)
        self.sent_on.pop(id, None)
        self.listed.discard(id)
        self.forgive(id)

    def doubt(self, id: str, now: float) -> None:
        """A candidate did not answer, or was lost; it is dropped in the end unless it is listed."""
        self.trying_since.pop(id, None)
        if id not in self.known:
            return
        since = self.doubted_since.setdefault(id, now)
        if now >= since + REMEMBER_S and id not in self.listed:
            self.forget(id)
        else:  # what it once said of its round is no longer to be relied on
            self.known[id] = replace(self.known[id], size=0)

    def set_aside(self, id: str, now: float) -> None:
        """A candidate lives but sends us to another one: leave it alone for a moment."""
        self.trying_since.pop(id, None)
        self.sent_on[id] = self.sent_on.get(id, 0) + 1
        self.aside_until[id] = now + min(ASIDE_S * 2 ** min(self.sent_on[id] - 1, 8), ASIDE_MAX_S)

    def forgive(self, id: str) -> None:
        """A candidate has answered, or moved: nothing speaks against it."""
        for table in (self.doubted_since, self.aside_until, self.trying_since):
            table.pop(id, None)

    def usable(self, now: float) -> list[Candidate]:
        """Return the candidates that are worth waiting for, best claim first."""
        found = [
            c
            for c in self.known.values()
            if c.id not in self.doubted_since and self.aside_until.get(c.id, now) <= now
        ]
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
