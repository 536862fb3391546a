"""Those of whom records say that they are nodes of the job: whom to visit, when, and how many at once. Pure.

Anybody on the LAN may publish any number of records, also of other hosts' addresses. So what counts is the
place, address and port, and not what the record says: each place is visited once for all of its records, the
addresses take turns, and where nobody answers the pauses grow.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, deque
from dataclasses import dataclass, field

from avahi_gpu.rendezvous.election import Candidate
from avahi_gpu.rendezvous.terms import CONTROL_PORTS

VISITS_MAX = 64  # at once: silent addresses are passed at a rate of 128 a second
VISITS_PER_HOST = 2  # of one address at once
PLACES_MAX = 4096  # as many records as avahi-daemon itself remembers (cache-entries-max)
PAUSE_S = 1.0  # before the second visit, and twice as long before each later one
PAUSE_MAX_S = 30.0

Place = tuple[str, int]


@dataclass
class Claim:
    """A place where a node of the job is said to be. ``records``: their names, with what each says."""

    place: Place
    records: dict[str, Candidate] = field(default_factory=dict)
    failures: int = 0
    busy: bool = False  # being visited
    queued: bool = False  # a visit is wanted
    again: bool = False  # something new was said during the visit

    @property
    def candidate(self) -> Candidate:
        """What the last record says."""
        return next(reversed(self.records.values()))


class Hearsay:
    """All claims, and whose turn it is."""

    def __init__(self) -> None:
        self.claims: dict[Place, Claim] = {}
        self._places: dict[str, Place] = {}  # by the record's name
        self._turns: deque[str] = deque()  # addresses with a claim to visit
        self._queues: dict[str, deque[Claim]] = {}  # of each address
        self._visits: Counter[str] = Counter()  # under way, by address
        self._pauses: list[tuple[float, int, Claim]] = []  # a heap
        self._numbers = itertools.count()

    @property
    def records(self) -> int:
        """How many records there are, to however few places they lead."""
        return len(self._places)

    def hear(self, name: str, candidate: Candidate) -> None:
        """Take in a record, which is new, or has changed."""
        place = (candidate.address, candidate.port)
        if self._places.get(name, place) != place:
            self.forget(name)
        claim = self.claims.get(place)
        if claim is None:
            if candidate.port not in CONTROL_PORTS or not self._make_room():
                return
            claim = self.claims[place] = Claim(place)
        before = claim.records.pop(name, None)
        claim.records[name] = candidate
        self._places[name] = place
        if before is None or before.id != candidate.id:  # perhaps another start of the node
            claim.again = claim.busy
            if not claim.busy:
                self._queue(claim)

    def forget(self, name: str) -> None:
        """A record has gone, and its claim with the last one."""
        place = self._places.pop(name, None)
        claim = self.claims.get(place) if place is not None else None
        if claim is not None:
            claim.records.pop(name, None)
            if not claim.records:
                del self.claims[claim.place]

    def take(self, now: float) -> list[Claim]:
        """Return the claims to visit now; each visit ends in ``done``."""
        while self._pauses and self._pauses[0][0] <= now:
            claim = heapq.heappop(self._pauses)[2]
            if self._stands(claim) and not claim.busy:
                self._queue(claim)
        found: list[Claim] = []
        for _ in range(len(self._turns)):
            if self._visits.total() >= VISITS_MAX:
                break
            address = self._turns.popleft()
            queue = self._queues[address]
            while queue and self._visits[address] < VISITS_PER_HOST:
                claim = queue.popleft()
                claim.queued = False
                if self._stands(claim):
                    claim.busy = True
                    self._visits[address] += 1
                    found.append(claim)
                    break
            if queue:
                self._turns.append(address)
            else:
                del self._queues[address]
        return found

    def done(self, claim: Claim, now: float, *, reached: bool) -> None:
        """A visit has ended."""
        address = claim.place[0]
        claim.busy = False
        self._visits[address] -= 1
        if not self._visits[address]:
            del self._visits[address]
        claim.failures = 0 if reached else claim.failures + 1
        if claim.again:
            claim.again = False
            self._queue(claim)
        elif not reached:
            pause_s = min(PAUSE_S * 2 ** min(claim.failures - 1, 10), PAUSE_MAX_S)
            heapq.heappush(self._pauses, (now + pause_s, next(self._numbers), claim))

    def next_change(self) -> float | None:
        """Return when the next pause ends; None where nobody is to be visited again."""
        return self._pauses[0][0] if self._pauses else None

    def _stands(self, claim: Claim) -> bool:
        return self.claims.get(claim.place) is claim

    def _queue(self, claim: Claim) -> None:
        if claim.queued or not self._stands(claim):
            return
        claim.queued = True
        address = claim.place[0]
        if address not in self._queues:
            self._queues[address] = deque()
            self._turns.append(address)
        self._queues[address].append(claim)

    def _make_room(self) -> bool:
        """Drop a claim that nobody has answered for, where there are too many; return whether one fits."""
        if len(self.claims) < PLACES_MAX:
            return True
        while self._pauses:
            claim = heapq.heappop(self._pauses)[2]
            if self._stands(claim) and claim.failures and not claim.busy:
                for name in claim.records:
                    del self._places[name]
                del self.claims[claim.place]
                return True
        return False
