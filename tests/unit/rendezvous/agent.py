"""A node of a job on the model LAN: a real Agreement, the agent around it, and its workers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

from avahi_gpu.errors import MalformedInput
from avahi_gpu.rendezvous import messages, steps
from avahi_gpu.rendezvous.agreement import Agreement
from avahi_gpu.rendezvous.core import END_LOST_S
from avahi_gpu.rendezvous.election import Candidate
from avahi_gpu.rendezvous.messages import Seat, Token
from avahi_gpu.rendezvous.roster import READY_LIMIT_S
from avahi_gpu.rendezvous.terms import CONTROL_PORTS, Terms
from tests.unit.rendezvous.network import End, Host, Program

if TYPE_CHECKING:
    from tests.unit.rendezvous.watch import Watch

MESH_TIMEOUT_S = 2.0
TICKS_MAX = 40  # in one second: more is a busy loop


class Agent:
    """A process from its start to its death. ``state``: waiting, running, stopping or gone."""

    def __init__(self, watch: Watch, host: Host, terms: Terms, priority: int = 0) -> None:
        self.watch, self.lan, self.host, self.terms = watch, watch.lan, host, terms
        self.id = f"{self.lan.random.getrandbits(64):016x}"
        taken = {p.port for p in host.programs if p.alive}
        self.port = next(p for p in CONTROL_PORTS if p not in taken)
        self.mesh_port = 40_000 + len(host.programs)
        self.priority = priority
        self.alive, self.finished = True, False
        self.state = "waiting"
        self.round: steps.Round | None = None
        self.ended: steps.End | None = None
        self.told: list[str] = []
        self.met: set[str] = set()  # whose records were seen here
        self.conns: dict[int, End] = {}
        self.numbers = itertools.count(1)
        self.hung_s = 0.0
        self.hang_s = 0.0  # how much longer the workers take to end next time
        self.timer = 0
        self.carried_at = 0.0  # when the round's network last carried to the leader
        self.ticks: list[float] = []
        self.frozen: list[Callable[[], None]] | None = None
        own = Candidate(self.id, host.name, host.address, self.port, priority)
        self.agreement = Agreement(own, terms)
        self.agreement.handle(steps.Moved(host.address, host.networks), host.clock(self.lan.now))
        host.programs.append(self)
        watch.agents[self.id] = self
        self.lan.multicast.start(self)
        self.lan.after(self.lan.random.uniform(0, 0.3), self.want, "")

    @property
    def name(self) -> str:
        return f"{self.host.index + 1}/{self.id[:3]}"

    @property
    def workers(self) -> list[Token]:
        """The tokens under which workers of this job live on this host."""
        return [token for job, token in self.host.workers if job == self.terms.job]

    # --- events --------------------------------------------------------------------------------------------

    def handle(self, event: steps.Event, at_least: float = 0.0) -> None:
        """Give the agreement one event, do what it wants done, and arrange for the next tick."""
        if not self.alive:
            return
        if self.frozen is not None:
            self.frozen.append(lambda: self.handle(event, at_least))
            return
        now = max(self.host.clock(self.lan.now), at_least)
        if not isinstance(event, steps.Tick):
            self.lan.note(self.name, f"<- {event}")
        self.watch.event(self, event)
        for action in self.agreement.handle(event, now):
            self.perform(action)
        self.timer += 1
        deadline = self.agreement.deadline()
        self.lan.after(self.host.true_time(deadline) - self.lan.now, self.tick, self.timer, deadline)

    def tick(self, number: int, deadline: float) -> None:
        if number != self.timer or not self.alive or self.frozen is not None:
            return
        self.ticks = [t for t in self.ticks if t > self.lan.now - 1.0] + [self.lan.now]
        self.watch.demand(len(self.ticks) <= TICKS_MAX, self, "runs in a busy loop")
        self.handle(steps.Tick(), deadline)

    def perform(self, action: steps.Action) -> None:
        random = self.lan.random
        if not isinstance(action, steps.Tell):
            self.lan.note(self.name, f"-> {action}")
        match action:
            case steps.Open(candidate):
                self.lan.connect(self, candidate.id, candidate.address, candidate.port)
            case steps.Send(conn, message):
                self.watch.sent(self, self.conns.get(conn), message)
                line = messages.encode(message)
                heard = messages.decode(line, "self")  # long sentences are cut, and nothing else
                same = heard == message or len(getattr(message, "reason", "")) > messages.TEXT_MAX
                self.watch.demand(same, self, f"cannot say {message}")
                if conn in self.conns:
                    self.conns[conn].send(line)
            case steps.Drop(conn):
                if conn in self.conns:
                    self.conns.pop(conn).close()
            case steps.Ask():
                for repeat_s in (0.0, 1.0):  # as a lost SYN is
                    self.lan.after(repeat_s + self.lan.delay(), self.ask, action)
            case steps.Reserve(token, _):
                ports = (random.randint(30_000, 39_999), random.randint(29_500, 29_999))
                self.lan.after(random.uniform(0, 0.005), self.handle, steps.Reserved(token, *ports))
            case steps.TestMesh(token, seats):
                self.lan.after(random.uniform(0.001, 0.05), self.test_mesh, token, seats, True)
            case steps.Deliver(round):
                self.watch.delivered(self, round)
                self.state, self.round = "running", round
                self.host.workers.add((self.terms.job, round.token))
                self.carried_at = self.lan.now
                self.lan.after(1.0, self.watch_network, round.token)
            case steps.Over(reason, lost):
                self.watch.over(self, reason)
                self.stop_workers("", END_LOST_S if lost else READY_LIMIT_S - 5.0)
            case steps.End():
                self.watch.ended(self, action)
                self.ended = self.ended or action
                self.lan.after(
                    random.uniform(0, 0.5), self.leave, "finished" if action.finished else "failed"
                )
            case steps.Tell(text):
                self.told.append(text)

    def ask(self, question: steps.Ask) -> None:
        """A fresh connection to another agent, and its answer."""
        other = self.lan.listener(question.address, question.port)
        there = other is not None and self.lan.both_ways(self.host, other.host)
        if not self.alive or other is None or not there:
            return
        agent = self.watch.anybody(other)
        answer = agent.agreement.answer(messages.Who(self.terms.job, self.terms.cluster, self.id))
        if agent.frozen is None and answer is not None and answer.me.id == question.id:
            self.lan.after(2 * self.lan.delay(), self.handle, steps.Answered(question.conn, answer.apart))

    def test_mesh(self, token: Token, seats: tuple[Seat, ...], again: bool) -> None:
        """Reach everybody; what does not answer gets the whole time."""
        if not self.alive:
            return
        missed, silent = [], False
        for seat in seats:
            host = self.lan.host_at(seat.address)
            if seat.id == self.id or host is None:
                continue
            reached = self.lan.joined(self.host, host, seat.address)
            listens = any(p.alive and p.mesh_port == seat.mesh_port for p in host.programs)
            if not reached or not listens:
                missed.append((seat.id, f"{self.host.name} cannot reach {seat.host}"))
                silent |= not reached
        if silent and again:
            self.lan.after(MESH_TIMEOUT_S, self.test_mesh, token, seats, False)
        else:
            self.handle(steps.MeshDone(token, tuple(missed)))

    def watch_network(self, token: Token) -> None:
        """What the kernel's keepalive on a connection to the leader's seat does while a round runs."""
        if not self.alive or self.round is None or self.round.token != token or self.state != "running":
            return
        seat = self.round.leader
        leader = self.watch.agents[seat.id].host
        now = self.lan.now
        if self.lan.joined(self.host, leader, seat.address) or seat.address in self.host.addresses:
            self.carried_at = now
        elif now >= self.carried_at + self.terms.lost_after_s:
            self.handle(steps.Severed(token, f"nothing comes from {seat.address}"))
            return
        self.lan.after(1.0, self.watch_network, token)

    # --- the agent and its workers -------------------------------------------------------------------------

    def want(self, reason: str) -> None:
        if self.frozen is not None:
            self.frozen.append(lambda: self.want(reason))
        elif self.alive and self.ended is None:
            self.state = "waiting"
            self.handle(steps.Wanted(self.mesh_port, reason))

    def stop_workers(self, reason: str, within_s: float = READY_LIMIT_S) -> None:
        """The agent ends its workers, which takes its time, and wants a round again."""
        if self.state == "running" and self.round is not None:
            self.state = "stopping"
            self.watch.stopping(self, self.round.token)
            takes_s = min(self.lan.random.uniform(0, self.watch.stop_s), within_s)
            self.hung_s, self.hang_s = self.hang_s, 0.0  # what hangs in the kernel heeds no SIGKILL
            self.lan.after(takes_s + self.hung_s, self.workers_gone, self.round.token, reason)
        elif self.state == "stopping" and self.round is not None:
            self.lan.after(within_s + self.hung_s, self.workers_gone, self.round.token, reason)

    def fail_workers(self, token: Token, reason: str) -> None:
        """The workers of this round have failed by themselves."""
        if self.alive and self.state == "running" and self.round is not None and self.round.token == token:
            self.lan.note(self.name, f"workers fail: {reason}")
            self.stop_workers(reason)

    def workers_gone(self, token: Token, reason: str) -> None:
        if self.alive and (self.terms.job, token) in self.host.workers:
            self.host.workers.discard((self.terms.job, token))
            self.want(reason)

    # --- the end -------------------------------------------------------------------------------------------

    def leave(self, outcome: str, detail: str = "") -> None:
        """The agent ends in order and says so."""
        if not self.alive:
            return
        if self.frozen is not None:
            self.frozen.append(lambda: self.leave(outcome, detail))
            return
        self.handle(steps.Closed(outcome, detail))
        self.finished = outcome == "finished"
        self.die(End.close, goodbye=True)

    def kill(self) -> None:
        """SIGKILL: the kernel closes the connections, the workers die as well."""
        self.lan.note(self.name, "killed")
        self.die(End.abort, goodbye=True)

    def lose_power(self) -> None:
        self.lan.note(self.name, "power off")
        self.die(End.vanish, goodbye=False)

    def die(self, close: Callable[[End], None], *, goodbye: bool) -> None:
        self.alive, state, self.state = False, self.state, "gone"
        self.lan.multicast.stop(self, goodbye=goodbye)
        for end in self.conns.values():
            close(end)
        if self.round is not None:
            self.host.workers.discard((self.terms.job, self.round.token))
            if state in ("running", "stopping") and not self.finished:
                self.watch.stopping(self, self.round.token)

    def freeze(self, for_s: float) -> None:
        """The process stands still; its kernel does not, and its workers do not either."""
        if self.alive and self.frozen is None:
            self.lan.note(self.name, f"frozen for {for_s:.1f} s")
            self.frozen = []
            self.lan.after(for_s, self.thaw)

    def thaw(self) -> None:
        waiting, self.frozen = self.frozen or [], None
        self.watch.thawed(self)
        self.lan.note(self.name, f"goes on with {len(waiting)} events")
        if self.lan.random.random() < 0.5:
            waiting.insert(0, lambda: self.handle(steps.Tick()))
        for call in [*waiting, lambda: self.handle(steps.Tick())]:
            call()

    # --- the network ---------------------------------------------------------------------------------------

    def number(self, end: End) -> int:
        conn = next(self.numbers)
        self.conns[conn] = end
        return conn

    def conn_of(self, end: End) -> int | None:
        return next((n for n, e in self.conns.items() if e is end), None)

    def opened(self, end: End, id: str) -> None:
        self.handle(steps.Opened(self.number(end), id, self.host.address))

    def open_failed(self, id: str, reason: str) -> None:
        self.handle(steps.OpenFailed(id, reason))

    def accepted(self, end: End) -> None:
        self.handle(steps.Accepted(self.number(end), self.host.address, end.far.address))

    def received(self, end: End, line: bytes) -> None:
        conn = self.conn_of(end)
        if conn is None:
            return
        try:
            message = messages.decode(line, end.far.address)
        except MalformedInput as error:
            del self.conns[conn]
            end.close()
            self.handle(steps.Lost(conn, str(error)))
            return
        self.watch.heard(self, end, message)
        self.handle(steps.Received(conn, message))

    def lost(self, end: End, reason: str) -> None:
        conn = self.conn_of(end)
        if conn is not None:
            del self.conns[conn]
            self.handle(steps.Lost(conn, reason))

    def seen(self, program: Program) -> None:
        other = self.watch.anybody(program)
        if other.terms.job == self.terms.job:  # the driver's own filter, by the TXT
            self.met.add(other.id)
            self.handle(steps.Seen(self.watch.record(other)))

    def unseen(self, id: str) -> None:
        self.handle(steps.Unseen(id))
