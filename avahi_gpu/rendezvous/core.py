"""What the leader's and the follower's part of the agreement share: links, terms, the round. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.election import Candidate, Candidates
from avahi_gpu.rendezvous.messages import Attachment, Message, Record, Token
from avahi_gpu.rendezvous.terms import Terms

HELLO_S = 3.0  # a stranger that has not said hello by then is dropped
WELCOME_S = 2.0  # a candidate that has not answered a hello by then is set aside
BEAT_S = 1.0  # both sides beat once a second: cheap, and five beats fit into the time that means death
# A member beats when it hears its leader's beat, so that both wake up once a second for it instead of twice;
# by itself it beats this much later than that, where the leader's is late.
PATIENCE_S = 0.25
SUSPECT_S = 3.0  # silence that is told before it is death
# A connection repeats what was lost after pauses that double: after 4 s without a network it may be silent
# for 8. So who is silent for longer than two beats is asked over fresh connections, and an answer is life.
ASK_AFTER_S = 2.0
ASK_EVERY_S = 0.3  # one of them is lost as easily as a beat, and each costs six packets
SILENT_TIMES = (
    2  # so many times the silence that means death: answers do not keep a dead connection for longer
)
PREPARE_S = 6.0  # a proposal ends after this: the mesh test's own limit and two round trips of a bad network
# Who loses others by silence cannot know whether they go on without it: its workers are killed after this.
# The others, who lose it at the same moment by the same clockwork, begin nothing before that has happened.
END_LOST_S = 0.7
MOURN_S = END_LOST_S + 0.1
RETRY_S = 2.0  # after a proposal that failed, before the next one: a firewall does not open in less
LEFT_OUT_S = 30.0  # whoever does not fit into the mesh waits, ten times longer each time: a try stops the job
GAP_S = 60.0  # a network whose mesh had gaps is the last to be tried by the same nodes for so long
EPOCH_LEAP = 1_000_000  # no job has that many rounds: who claims more would use up the numbers for everybody
GREET_AFTER_S = 1.0  # a candidate that was seen and did not join by itself is told who leads
GREET_AGAIN_S = 5.0  # and told again: two groups of one job must find each other once a network heals
TELL_BURST = 20  # lines for people at once: a group that forms, and falls apart, says fewer
TELL_EVERY_S = 1.0  # between two lines beyond that: nobody reads faster

Role = Literal["stranger", "joining", "greeting", "leader", "member"]


@dataclass
class Link:
    """One connection: who is behind it, and when it was last heard."""

    conn: int
    role: Role
    heard: float
    here: str  # our own address on it
    id: str = ""
    remote: str = ""  # their address on it, the one that they are reached by
    answered: float = 0.0  # when whoever is behind it answered over another connection
    asked: float = 0.0

    @property
    def alive(self) -> float:
        """When there was a sign of life last."""
        return max(self.heard, self.answered)

    def lost_at(self, limit_s: float) -> float:
        """Return when the other side counts as lost, unless there is a sign of life before.

        Silence begins when a beat is due and does not come: a fault that lasts for less than the limit ends
        before it does.
        """
        return BEAT_S + min(self.alive + limit_s, self.heard + SILENT_TIMES * limit_s)

    def ask_at(self, limit_s: float) -> float:
        """Return when it is to be asked over a fresh connection."""
        return max(self.alive + min(ASK_AFTER_S, 0.75 * limit_s), self.asked + ASK_EVERY_S)


@dataclass
class Core:
    """The state that both parts read; ``out`` collects what is to be done."""

    own: Candidate
    terms: Terms
    candidates: Candidates
    now: float = 0.0
    epoch: int = 0
    ready: bool = False
    mesh_port: int = 0
    networks: tuple[Attachment, ...] = ()  # where a round may reach us, best first
    asked: str = ""  # how the user chose them
    wanted_at: float | None = None
    mourn_until: float = 0.0
    postponed: steps.Wanted | None = None  # until then
    round: steps.Round | None = None  # the last one that was delivered
    live: bool = False  # its workers may be running
    idle_since: float | None = None  # when the last round ended for us, or when we started
    ended: steps.End | None = None
    reason: str = ""  # why the last round ended, or why the last proposal failed
    tell_from: float = -1e9  # from when on people may be told something
    untold: steps.Tell | None = None  # who is there, to be told then
    excluded: dict[str, str] = field(default_factory=dict)  # by host: why it cannot be of our job
    links: dict[int, Link] = field(default_factory=dict)
    out: list[steps.Action] = field(default_factory=list)

    @property
    def seated(self) -> frozenset[str]:
        """The ids of the last round, ours included; empty before the first one."""
        return frozenset(s.id for s in self.round.seats) if self.round is not None else frozenset()

    @property
    def token(self) -> Token | None:
        """The token that our workers run under."""
        return self.round.token if self.round is not None and self.live else None

    def plausible(self, epoch: int) -> int:
        """Return the epoch that another node claims to have seen, as far as it is to be believed."""
        return min(epoch, self.epoch + EPOCH_LEAP)

    def emit(self, action: steps.Action) -> None:
        self.out.append(action)

    def send(self, conn: int, message: Message) -> None:
        self.emit(steps.Send(conn, message))

    def drop(self, conn: int) -> None:
        if self.links.pop(conn, None) is not None:
            self.emit(steps.Drop(conn))

    def tell(self, text: str, present: tuple[str, ...] = (), *, waiting: bool = False) -> None:
        """Say something to people: so many lines at once and one a second, whoever makes us talk.

        Of who is there by now, what is too much is told later, as it is then.
        """
        if self.ended is not None:  # what happens to a job that is over for us is nobody's news here
            return
        said = steps.Tell(text, present, waiting)
        if waiting:
            self.untold = None
        if self.now >= self.tell_from:
            self.tell_from = max(self.tell_from, self.now - TELL_BURST * TELL_EVERY_S) + TELL_EVERY_S
            self.emit(said)
        elif waiting:
            self.untold = said

    def tell_rest(self) -> None:
        """Say what had to wait, once it may be said."""
        if self.untold is not None and self.now >= self.tell_from:
            self.tell(self.untold.text, self.untold.present, waiting=True)

    def exclude(self, host: str, reason: str) -> None:
        """Somebody cannot be of our job: tell it, and remember it for the end. The channel bounds them."""
        if self.ended is None:
            self.excluded[host] = reason
            self.emit(steps.Tell(reason, excluded=host))

    def record(self, candidate: Candidate | None = None) -> Record:
        """Return a candidate, or ourselves, as it is told to others."""
        c = candidate or self.own
        return Record(c.id, c.host, c.address, c.port, c.priority, c.size)

    def set_size(self, size: int) -> None:
        """The round that we lead has this many nodes: it is part of our claim."""
        self.own = replace(self.own, size=size)
        self.candidates.own = self.own

    def move(self, address: str, networks: tuple[Attachment, ...], asked: str) -> bool:
        """Take in where we can be reached by now; return whether that is new."""
        before = (self.own.address, self.networks, self.asked)
        self.own = replace(self.own, address=address)
        self.candidates.own = self.own
        self.networks, self.asked = networks, asked
        return before != (address, networks, asked)

    def deliver(self, formed: steps.Round) -> None:
        """A round stands for us."""
        self.round, self.live, self.ready, self.wanted_at = formed, True, False, None
        self.epoch = max(self.epoch, formed.token.epoch)
        self.reason = ""
        self.candidates.sent_on.clear()
        self.emit(steps.Deliver(formed))

    def leave_round(self, reason: str) -> None:
        """The running round is over for us, and our agent knows."""
        self.live, self.reason, self.idle_since = False, reason, self.now
        self.set_size(0)

    def finish_round(self, reason: str, *, lost: bool = False) -> None:
        """The running round is over for us: tell the agent. ``lost``: others may go on without us."""
        if self.live:
            self.leave_round(reason)
            self.emit(steps.Over(reason, lost))

    def mourn(self) -> None:
        """Somebody has fallen silent: no other round begins here before its workers are gone as well."""
        self.mourn_until = self.now + MOURN_S

    def end(self, reason: str, hint: str = "", *, finished: bool = False) -> None:
        """There is no way on: tell the agent, and take no further part."""
        if self.ended is None:
            self.ended = steps.End(reason, hint, finished)
            self.emit(self.ended)


def candidate_of(record: Record) -> Candidate:
    """Return the candidate that a record tells of."""
    return Candidate(record.id, record.host, record.address, record.port, record.priority, record.size)
