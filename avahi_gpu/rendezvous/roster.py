"""The leader's book: who is a member, who is ready, and whether the round closes now. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from avahi_gpu.model import natural_order
from avahi_gpu.rendezvous.election import Candidate
from avahi_gpu.rendezvous.messages import Attachment, Token
from avahi_gpu.rendezvous.networks import Standing, Way
from avahi_gpu.rendezvous.terms import Terms

READY_LIMIT_S = 45.0  # torch gives workers 30 s to end after SIGTERM; a node that needs longer is let go


@dataclass
class Member:
    """A node that has joined us, over a connection from its ``address`` to our ``here``."""

    candidate: Candidate
    conn: int
    address: str
    here: str
    joined: int
    busy_since: float
    epoch: int = 0
    ready: bool = False
    mesh_port: int = 0
    networks: tuple[Attachment, ...] = ()  # where it says that a round may reach it
    asked: str = ""  # how its user chose them
    token: Token | None = None  # of its last beat
    finished: bool = False
    suspect: bool = False
    left_out: int = 0  # how often in a row it could not reach everybody, or could not be reached
    left_out_until: float = 0.0


@dataclass
class Proposal:
    """A round under way between PREP and COMMIT. ``order``: ids by rank."""

    token: Token
    order: tuple[str, ...]
    way: Way  # the addresses of the seats, in the same order
    deadline: float
    store_port: int = 0
    worker_port: int = 0
    acks: set[str] = field(default_factory=set)
    unreached: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by whom which ids
    reasons: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        """Our own, where the store listens."""
        return self.way.addresses[0]

    @property
    def agreed(self) -> bool:
        """Whether every member has promised."""
        return self.acks == set(self.order)

    @property
    def tested(self) -> bool:
        """Whether every member has told how its mesh test ended."""
        return self.acks | set(self.unreached) == set(self.order)

    def misfits(self, previous: frozenset[str]) -> set[str]:
        """Return as few ids as may be without which the others all reach each other; never the leader.

        Of equals whoever was not in the ``previous`` round goes first, then the one that others miss.
        """
        ways = {(by, id) for by, ids in self.unreached.items() for id in ids if id in self.order}
        found: set[str] = set()
        while ways:
            ends = [id for way in ways for id in way if id != self.order[0]]
            missed = [id for _, id in ways]
            worst = max(
                self.order[1:],
                key=lambda id: (ends.count(id), id not in previous, missed.count(id)),
                default=self.order[0],
            )
            found.add(worst)
            ways = {way for way in ways if worst not in way}
        return found


@dataclass
class Roster:
    """The members of this leader, itself not among them."""

    members: dict[str, Member] = field(default_factory=dict)
    last_call_until: float | None = None
    arrivals: int = 0

    def admit(self, member: Member) -> list[Member]:
        """Take in a member; return those that it replaces: an earlier start of the same machine."""
        stale = [
            m
            for m in self.members.values()
            if m.candidate.id == member.candidate.id
            or (m.candidate.host == member.candidate.host and m.address == member.address)
        ]
        for old in stale:
            del self.members[old.candidate.id]
        self.arrivals += 1
        member.joined = self.arrivals
        self.members[member.candidate.id] = member
        return stale

    def by_conn(self, conn: int) -> Member | None:
        """Return the member behind a connection."""
        return next((m for m in self.members.values() if m.conn == conn), None)

    def ready(self) -> list[Member]:
        """Return the members that wait for a round."""
        return [m for m in self.members.values() if m.ready]

    def fit(self, now: float) -> list[Member]:
        """Return the members that wait for a round and have not been left out of one lately."""
        return [m for m in self.ready() if now >= m.left_out_until]

    def busy(self, now: float) -> list[Member]:
        """Return the members that are connected and still stopping their workers."""
        return [
            m
            for m in self.members.values()
            if not m.ready and not m.finished and now < m.busy_since + READY_LIMIT_S
        ]

    def close(
        self, terms: Terms, own: str, now: float, *, previous: frozenset[str], coming: int
    ) -> tuple[str, ...] | None:
        """Return the ids of the round that closes now, in the order of ranks, or None while it stays open.

        ``previous``: the ids of the last round, empty before the first. ``coming``: how many nodes are known
        that have not joined yet. Closes at the largest number; at the smallest, once the last call has
        passed. After a loss it does not wait for the last call when nobody is known to be coming.
        """
        ready = self.fit(now)
        count = 1 + len(ready)
        if count < terms.min_nodes:
            self.last_call_until = None
            return None
        if count < terms.max_nodes:
            if self.last_call_until is None:
                self.last_call_until = now + terms.last_call_s
            busy = bool(self.busy(now))
            if busy or (now < self.last_call_until and not (previous and not coming)):
                return None
        chosen = sorted(ready, key=lambda m: (m.candidate.id not in previous, m.joined))[
            : terms.max_nodes - 1
        ]
        chosen.sort(key=lambda m: (natural_order(m.candidate.host), m.candidate.id))
        return (own, *(m.candidate.id for m in chosen))

    def next_change(self, now: float) -> float | None:
        """Return when ``close`` may answer otherwise by the passing of time alone."""
        moments = (
            [self.last_call_until] if self.last_call_until is not None and self.last_call_until > now else []
        )
        moments += [m.busy_since + READY_LIMIT_S for m in self.busy(now)]
        moments += [m.left_out_until for m in self.ready() if m.left_out_until > now]
        return min(moments, default=None)


def standing(member: Member) -> Standing:
    """Return where a member can be reached."""
    return Standing(member.candidate.host, member.address, member.networks, member.asked)


def common_address(members: list[Member], fallback: str) -> str:
    """Return our own address that most of ``members`` dialled: the one that they are known to reach."""
    dialled = [m.here for m in members if m.here]
    return max(sorted(set(dialled)), key=dialled.count, default=fallback)
