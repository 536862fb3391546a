"""The invariants of the rendezvous, watched over every event of a run on the model LAN.

They are those of "The rendezvous" in the design, one method or comment each; breaking one raises Broken.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from avahi_gpu.rendezvous import messages as m
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.core import PREPARE_S
from avahi_gpu.rendezvous.election import Candidate
from tests.unit.rendezvous.agent import Agent
from tests.unit.rendezvous.network import End, Lan

ANSWER_S = 3.0  # true seconds within which a living node answers a hello
STOP_S = 3.0  # the longest that workers take to end
COLLECTIVE_S = 2.0  # workers notice by themselves within this that another one is gone


class Broken(AssertionError):
    """An invariant does not hold."""


@dataclass(eq=False)
class Watch:
    """What all nodes of all jobs on the LAN did, and what they must never do."""

    lan: Lan
    agents: dict[str, Agent] = field(default_factory=dict)
    rounds: dict[m.Token, m.Prepare] = field(default_factory=dict)  # as proposed
    promised: dict[m.Token, set[str]] = field(default_factory=lambda: defaultdict(set))
    epochs: dict[str, int] = field(default_factory=dict)  # the last one delivered, by node
    may_end: bool = False  # something happened that ends nodes
    stop_s: float = STOP_S
    collective: float = 0.6  # how often workers fail by themselves when another one is gone
    lying: bool = False  # TXT records tell other hosts and priorities than the nodes themselves
    formed: list[tuple[float, steps.Round]] = field(default_factory=list)
    overs: list[tuple[float, str, str]] = field(default_factory=list)
    questions: dict[End | None, tuple[str, float]] = field(default_factory=dict)

    # --- help ----------------------------------------------------------------------------------------------

    def demand(self, holds: bool, agent: Agent | None, sentence: str) -> None:
        if not holds:
            who = f"{agent.name} ({agent.id})" if agent else "the LAN"
            raise Broken(f"at {self.lan.now:.3f} s {who} {sentence}")

    def anybody(self, program: object) -> Agent:
        assert isinstance(program, Agent)
        return program

    def record(self, agent: Agent) -> Candidate:
        """What the TXT record of a node says."""
        host, priority = agent.host.name, agent.priority
        if self.lying:
            host = f"liar-{self.lan.random.randint(0, 99)}"
            priority = self.lan.random.choice([-5, 0, 0, 7])
        return Candidate(agent.id, host, agent.host.address, agent.port, priority)

    def living(self, job: str = "job") -> list[Agent]:
        return [a for a in self.agents.values() if a.alive and a.ended is None and a.terms.job == job]

    def running(self, token: m.Token) -> list[Agent]:
        return [
            a
            for a in self.agents.values()
            if a.alive and a.state == "running" and a.round is not None and a.round.token == token
        ]

    def groups(self, job: str = "job") -> list[list[Agent]]:
        """The complete groups: every member runs, and all reach each other."""
        found = []
        for token in {a.round.token for a in self.living(job) if a.state == "running" and a.round}:
            members = self.running(token)
            seats = {s.id for s in self.rounds[token].seats}
            together = all(self.lan.both_ways(a.host, b.host) for a in members for b in members)
            if {a.id for a in members} == seats and together:
                found.append(members)
        return found

    # --- what nodes do -------------------------------------------------------------------------------------

    def event(self, agent: Agent, event: steps.Event) -> None:
        proposal = agent.agreement.leading.proposal
        if (
            isinstance(event, steps.MeshDone)
            and proposal
            and proposal.token == event.token
            and not event.unreachable
        ):
            self.promise(agent, event.token)

    def promise(self, agent: Agent, token: m.Token) -> None:
        """ACK only after old workers are gone."""
        self.demand(not agent.workers, agent, f"promises {token} while workers of {agent.workers} live")
        self.demand(agent.state == "waiting", agent, f"promises {token} although it is {agent.state}")
        self.promised[token].add(agent.id)

    def sent(self, agent: Agent, end: End | None, message: m.Message) -> None:
        match message:
            case m.Prepare(token):
                known = self.rounds.setdefault(token, message)
                self.demand(known == message, agent, f"proposes two rounds as {token}")
                self.check_proposal(agent, message)
                self.ask(end, "prepare", PREPARE_S + 1.0)
            case m.Ack(token):
                self.promise(agent, token)
                self.questions.pop(end.peer if end else None, None)
            case m.Commit(token):
                seats = {s.id for s in self.rounds[token].seats}
                self.demand(seats <= self.promised[token], agent, f"commits {token} before every promise")
            case m.Hello():
                self.ask(end, "hello", ANSWER_S)
            case m.Nack():
                self.questions.pop(end.peer if end else None, None)
            case m.Abort():
                self.questions.pop(end, None)

    def check_proposal(self, agent: Agent, prepare: m.Prepare) -> None:
        """Ranks are 0 to n-1 once each with the leader first; smallest <= members <= largest; one job."""
        ids = [s.id for s in prepare.seats]
        terms = agent.terms
        self.demand(
            ids[0] == agent.id == prepare.token.leader, agent, "proposes a round that it does not lead"
        )
        self.demand(len(ids) == len(set(ids)), agent, f"proposes a member twice: {ids}")
        self.demand(terms.min_nodes <= len(ids) <= terms.max_nodes, agent, f"proposes {len(ids)} members")
        jobs = {self.agents[id].terms.job for id in ids}
        self.demand(jobs == {terms.job}, agent, f"mixes jobs: {jobs}")
        hosts = [s.address for s in prepare.seats]
        self.demand(len(hosts) == len(set(hosts)), agent, f"proposes a host twice: {hosts}")
        for seat in prepare.seats:
            self.demand(seat.address in self.agents[seat.id].host.addresses, agent, f"misplaces {seat}")
        networks = {Lan.network_of(seat.address) for seat in prepare.seats}
        self.demand(len(networks) == 1, agent, f"mixes networks: {hosts}")

    def delivered(self, agent: Agent, round: steps.Round) -> None:
        token = round.token
        alone = m.Prepare(token, round.seats, round.store_port, round.worker_port, round.why)
        known = self.rounds.setdefault(token, alone)
        if known is alone:
            self.check_proposal(agent, alone)
        # all members of a token agree on members, order, address and ports
        self.demand(known == alone, agent, f"runs {token} otherwise than it was proposed")
        # nobody runs a token that does not list it
        self.demand(round.seats[round.rank].id == agent.id, agent, f"runs {token} without a seat in it")
        # a host never has living workers of two tokens
        self.demand(not agent.workers, agent, f"starts {token} beside workers of {agent.workers}")
        self.demand(agent.state == "waiting", agent, f"gets {token} although it is {agent.state}")
        self.demand(agent.id in self.promised[token], agent, f"runs {token}, which it never promised")
        # epochs grow
        self.demand(token.epoch > self.epochs.get(agent.id, 0), agent, f"goes back to {token}")
        self.epochs[agent.id] = token.epoch
        if round.rank == 0:
            self.formed.append((self.lan.now, round))
        self.lan.after(0.0, self.check_groups, agent.terms.job)

    def check_groups(self, job: str) -> None:
        """With a majority minimum no two complete groups of one job run at once."""
        living = self.living(job)
        if living and living[0].terms.majority and len(self.lan.hosts) <= living[0].terms.max_nodes:
            groups = [[a.name for a in g] for g in self.groups(job)]
            self.demand(len(groups) <= 1, None, f"has two complete groups: {groups}")

    def over(self, agent: Agent, reason: str) -> None:
        self.overs.append((self.lan.now, agent.name, reason))
        self.demand(agent.state in ("running", "stopping"), agent, f"ends a round while {agent.state}")
        self.demand(bool(reason), agent, "ends a round without a reason")

    def ended(self, agent: Agent, end: steps.End) -> None:
        self.demand(self.may_end, agent, f"ends untold: {end.reason}")
        self.demand(bool(end.reason), agent, "ends without a reason")

    def stopping(self, agent: Agent, token: m.Token) -> None:
        """The other workers of the round notice, most of the time before their agents do."""
        for other in self.running(token):
            if other is not agent and self.lan.random.random() < self.collective:
                delay = self.lan.random.uniform(0.02, COLLECTIVE_S)
                self.lan.after(delay, other.fail_workers, token, f"a peer of {other.host.name} is gone")

    # --- every message to a living node gets an answer -----------------------------------------------------

    def ask(self, end: End | None, what: str, within_s: float) -> None:
        if end is not None and end.open:
            end.disturbed = end.peer.disturbed = False
            self.questions[end] = (what, self.lan.now)
            self.lan.after(within_s, self.expect_answer, end, what, self.lan.now)

    def heard(self, agent: Agent, end: End, message: m.Message) -> None:
        question = self.questions.get(end)
        if question is not None and question[0] == "hello":
            del self.questions[end]

    def thawed(self, agent: Agent) -> None:
        for end in agent.conns.values():
            end.disturbed = end.peer.disturbed = True

    def expect_answer(self, end: End, what: str, asked: float) -> None:
        if self.questions.get(end) != (what, asked):
            return
        del self.questions[end]
        one, other = end.program, end.peer.program
        excused = not end.open or not end.peer.open or not one.alive or not other.alive
        excused = excused or end.disturbed or end.peer.disturbed
        excused = excused or self.anybody(one).frozen is not None or self.anybody(other).frozen is not None
        excused = excused or not self.lan.both_ways(one.host, other.host)
        self.demand(excused, self.anybody(other), f"did not answer a {what} of {self.anybody(one).name}")

    def introduced(self, job: str = "job") -> bool:
        """Whether mDNS has told everybody of everybody, if only in one direction or by way of others.

        Before that no agreement is possible. How long it takes is Avahi's affair, not the agreement's.
        """
        living = self.living(job)
        reached, edge = set(living[:1]), living[:1]
        while edge:
            one = edge.pop()
            more = {a for a in living if a not in reached and (a.id in one.met or one.id in a.met)}
            reached |= more
            edge += more
        return len(reached) == len(living)

    # --- liveness ------------------------------------------------------------------------------------------

    def unsettled(self, job: str = "job") -> str:
        """Say why this is not one group of all that can be, '' where it is."""
        living = self.living(job)
        if not living:
            return ""
        terms = living[0].terms
        wanted = min(terms.max_nodes, len(living))
        if wanted < terms.min_nodes:
            return ""
        groups = self.groups(job)
        sizes = [len(g) for g in groups]
        running = sum(a.state == "running" for a in living)
        if sizes != [wanted] or running != wanted:
            states = {a.name: f"{a.state} {a.agreement.leader_host}" for a in living}
            return f"{wanted} could run, groups {sizes}, {running} running: {states}"
        return ""
