"""One real Agreement on a desk: events by hand, actions to look at, a clock that is turned by hand."""

from __future__ import annotations

from typing import Any, TypeVar

from avahi_gpu.rendezvous import messages as m
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.agreement import Agreement
from avahi_gpu.rendezvous.election import Candidate
from avahi_gpu.rendezvous.terms import Terms

Action = TypeVar("Action")


def node(number: int, *, host: str = "", priority: int = 0, size: int = 0) -> Candidate:
    """The node of host ``node-<number>``."""
    return Candidate(f"{number:016x}", host or f"node-{number}", f"10.77.0.{number}", 29400, priority, size)


def record(candidate: Candidate) -> m.Record:
    c = candidate
    return m.Record(c.id, c.host, c.address, c.port, c.priority, c.size)


def hello(candidate: Candidate, **changes: Any) -> m.Hello:
    """What ``candidate`` says to join; any field can be another."""
    fields: dict[str, Any] = {"job": "job", "cluster": "default", "skills": m.Skills()}
    return m.Hello(record(candidate), **{**fields, **changes})


class Desk:
    """The node under test."""

    def __init__(self, number: int = 5, smallest: int = 2, largest: int = 3, **terms: Any) -> None:
        self.own = node(number)
        self.terms = Terms("job", min_nodes=smallest, max_nodes=largest, **terms)
        self.agreement = Agreement(self.own, self.terms)
        self.now = 1000.0
        self.conns = 0
        self.last: list[steps.Action] = []  # what the last event led to
        self.all: list[steps.Action] = []

    def feed(self, event: steps.Event) -> list[steps.Action]:
        self.last = self.agreement.handle(event, self.now)
        self.all += self.last
        return self.last

    def wait(self, for_s: float) -> list[steps.Action]:
        """Let time pass, ticking whenever a tick is due; return everything that happened."""
        until, found = self.now + for_s, []
        while self.agreement.deadline() <= until:
            self.now = max(self.now, self.agreement.deadline())
            found += self.feed(steps.Tick())
        self.now = until
        self.last = found
        return found

    # --- what the last event led to ------------------------------------------------------------------------

    def found(self, kind: type[Action]) -> list[Action]:
        return [a for a in self.last if isinstance(a, kind)]

    def sent(self, kind: type[Action], conn: int | None = None) -> list[Action]:
        sends = [a for a in self.last if isinstance(a, steps.Send) and conn in (None, a.conn)]
        return [a.message for a in sends if isinstance(a.message, kind)]

    def told(self) -> str:
        return "\n".join(a.text for a in self.all if isinstance(a, steps.Tell))

    # --- usual steps ---------------------------------------------------------------------------------------

    def want(self, reason: str = "") -> list[steps.Action]:
        return self.feed(steps.Wanted(41000, reason))

    def receive(self, conn: int, message: m.Message) -> list[steps.Action]:
        return self.feed(steps.Received(conn, m.decode(m.encode(message), "peer")))

    def accept(self, other: Candidate, **changes: Any) -> int:
        """``other`` connects and says hello."""
        self.conns += 1
        self.feed(steps.Accepted(self.conns, self.own.address, other.address))
        self.receive(self.conns, hello(other, **changes))
        return self.conns

    def join_up(self, other: Candidate, *, ready: bool = True, **changes: Any) -> int:
        """``other`` becomes a member, and ready."""
        conn = self.accept(other, **changes)
        if ready:
            self.receive(conn, m.Ready(42000))
        return conn

    def follow(self, leader: Candidate, epoch: int = 0) -> int:
        """Come to follow ``leader``."""
        self.feed(steps.Seen(leader))
        self.conns += 1
        self.feed(steps.Opened(self.conns, leader.id, self.own.address))
        self.receive(self.conns, m.Welcome(record(leader), epoch))
        return self.conns

    def keep_alive(self, for_s: float, *conns: int, token: m.Token | None = None) -> list[steps.Action]:
        """Let time pass while the others beat."""
        found: list[steps.Action] = []
        for _ in range(round(for_s)):
            for conn in conns:
                found += self.receive(conn, m.Beat(token))
            found += self.wait(1.0)
        self.last = found
        return found

    def lead_round(self, *members: int) -> m.Token:
        """Carry the proposal that was just reserved through to its delivery."""
        proposal = self.agreement.leading.proposal
        assert proposal is not None
        token = proposal.token
        self.feed(steps.Reserved(token, 30000, 29500))
        self.feed(steps.MeshDone(token))
        for conn in members:
            self.receive(conn, m.Ack(token))
        return token

    def prepare(self, leader: Candidate, epoch: int, *others: Candidate) -> m.Prepare:
        """What ``leader`` proposes: itself, us, and ``others``."""
        seats = [m.Seat(c.id, c.host, c.address, 41000) for c in (leader, self.own, *others)]
        return m.Prepare(m.Token(epoch, leader.id), tuple(seats), 30000, 29500)

    def run_under(self, leader: Candidate, conn: int, epoch: int = 1) -> m.Token:
        """Come to run a round of ``leader``."""
        prepare = self.prepare(leader, epoch)
        self.receive(conn, prepare)
        self.feed(steps.MeshDone(prepare.token))
        self.receive(conn, m.Commit(prepare.token))
        return prepare.token


ONE, TWO, SEVEN, EIGHT, NINE = node(1), node(2), node(7), node(8), node(9)


def leader_of_three() -> tuple[Desk, int, int, m.Token]:
    """Node 5 leads a running round with 7 and 8."""
    desk = Desk(5, 2, 3)
    desk.want()
    seven, eight = desk.join_up(SEVEN), desk.join_up(EIGHT)
    token = desk.lead_round(seven, eight)
    assert desk.found(steps.Deliver)
    return desk, seven, eight, token


def member_of_one() -> tuple[Desk, int, m.Token]:
    """Node 5 runs a round of node 1."""
    desk = Desk(5, 2, 3)
    desk.want()
    conn = desk.follow(ONE)
    token = desk.run_under(ONE, conn)
    assert desk.found(steps.Deliver)
    return desk, conn, token
