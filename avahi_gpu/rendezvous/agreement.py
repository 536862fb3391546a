"""The agreement of a job's nodes as a pure state machine: events and the time in, actions out.

A node leads itself until it joins a better candidate. Members join their leader over one connection each;
the leader proposes a round when it closes (PREP), every member promises after its old workers are gone and
after it has reached every other one (ACK), and only then the round begins (COMMIT). A lost member ends the
round for all; a lost leader sends its members back to the election. No clock but the caller's monotonic one.
"""

from __future__ import annotations

from dataclasses import replace

from avahi_gpu.rendezvous import messages as m
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.core import (
    BEAT_S,
    GREET_AFTER_S,
    GREET_AGAIN_S,
    HELLO_S,
    REDIRECTED_S,
    Core,
    Link,
    candidate_of,
)
from avahi_gpu.rendezvous.election import Candidate, Candidates
from avahi_gpu.rendezvous.following import Following
from avahi_gpu.rendezvous.leading import Leading
from avahi_gpu.rendezvous.terms import Terms, refuse_stranger


class Agreement:
    """One node's view of its job. ``handle`` takes every event, ``deadline`` says when to send a Tick."""

    def __init__(self, own: Candidate, terms: Terms) -> None:
        self.core = Core(own, terms, Candidates(own))
        self.leading = Leading(self.core)
        self.following = Following(self.core)
        self.next_beat = 0.0
        self.greet_at: dict[str, float] = {}

    # --- the outside ---------------------------------------------------------------------------------------

    def handle(self, event: steps.Event, now: float) -> list[steps.Action]:
        """Take in one event at monotonic time ``now`` (seconds) and return what is to be done, in order."""
        core = self.core
        core.now, core.out = now, []
        match event:
            case steps.Seen(candidate):
                self.introduce(candidate.id, core.candidates.appear(candidate))
            case steps.Unseen(id):
                self.unsee(id)
            case steps.Opened(conn, id, address):
                self.opened(Link(conn, "stranger", now, address, id))
            case steps.OpenFailed(id, _):
                core.candidates.doubt(id, now)
            case steps.Accepted(conn, address, remote):
                core.links[conn] = Link(conn, "stranger", now, address, remote=remote)
            case steps.Received(conn, message):
                self.receive(conn, message)
            case steps.Lost(conn, reason):
                self.lose(conn, reason)
            case steps.Wanted(mesh_port, reason):
                self.want(mesh_port, reason)
            case steps.Reserved():
                self.leading.reserved(event)
            case steps.MeshDone():
                (self.following if self.following.leader else self.leading).mesh_done(event)
            case steps.Closed(outcome, detail):
                self.close(outcome, detail)
            case steps.Tick():
                pass
        self.watch()
        return core.out

    def deadline(self) -> float:
        """Return when the next Tick is due, in the caller's monotonic time."""
        core = self.core
        found = [self.next_beat, *self.following.moments(), *self.leading.moments()]
        found += [
            link.heard + HELLO_S for link in core.links.values() if link.role in ("stranger", "greeting")
        ]
        change = core.candidates.next_change(core.now)
        if change is not None:
            found.append(change)
        if not self.bound:
            found += self.greet_at.values()
        if core.wanted_at is not None:
            found.append(core.wanted_at + core.terms.join_timeout_s)
        return min(found)

    @property
    def round(self) -> steps.Round | None:
        """The round whose workers may be running."""
        return self.core.round if self.core.live else None

    @property
    def bound(self) -> bool:
        """Whether this node looks for nobody: it has a leader, or no part in the job any more."""
        return bool(self.core.ended or self.following.leader or self.following.leader_finished)

    @property
    def leader_host(self) -> str:
        """The host name of the leader as far as this node knows."""
        followed = self.following.candidate if self.following.leader else None
        return (followed or self.core.own).host

    # --- candidates ----------------------------------------------------------------------------------------

    def learn(self, candidate: Candidate) -> None:
        """Take in a candidate, whoever told of it."""
        self.introduce(candidate.id, self.core.candidates.learn(candidate))

    def introduce(self, id: str, changed: bool) -> None:
        """A candidate is new, or has changed: it is greeted unless it joins by itself before."""
        if changed:
            self.greet_at.setdefault(id, self.core.now + GREET_AFTER_S)

    def learn_records(self, records: tuple[m.Record, ...]) -> None:
        """Take in what another node knows; what we have at first hand stays."""
        for record in records:
            if record.id not in self.core.candidates.known:
                self.learn(candidate_of(record))

    def unsee(self, id: str) -> None:
        """A record has gone: nothing to wait for any more, unless we are in touch with it all the same."""
        core = self.core
        core.candidates.vanish(id)
        if not any(link.id == id for link in core.links.values()):
            core.candidates.doubt(id, core.now)

    def look(self) -> None:
        """Go to the best candidate, unless a leader or a running round binds us."""
        core, following = self.core, self.following
        if self.bound or core.live or self.leading.proposal:
            return
        best = core.candidates.best(core.now)
        if following.joining is not None or best.id == core.own.id:
            return
        if best.id not in core.candidates.trying_since:
            core.candidates.trying_since[best.id] = core.now
            core.emit(steps.Open(best))

    def greet(self) -> None:
        """As a leader, tell those who did not join by themselves that we are there."""
        core = self.core
        if self.bound:
            return
        known, trying = core.candidates.known, core.candidates.trying_since
        linked = {link.id for link in core.links.values()}
        for id, moment in list(self.greet_at.items()):
            if core.now < moment:
                continue
            if id not in known:
                del self.greet_at[id]
                continue
            self.greet_at[id] = core.now + GREET_AGAIN_S
            if id not in linked and id not in trying:
                trying[id] = core.now
                core.emit(steps.Open(known[id]))

    def opened(self, link: Link) -> None:
        """A connection that we asked for is up: join or greet the candidate, whichever is right by now."""
        core, following = self.core, self.following
        core.links[link.conn] = link
        core.candidates.trying_since.pop(link.id, None)
        if self.bound or link.id not in core.candidates.known:
            core.drop(link.conn)
        elif (
            core.candidates.known[link.id].claim < core.own.claim
            and not core.live
            and not self.leading.proposal
        ):
            if following.joining is None:
                following.say_hello(link)
            else:
                core.drop(link.conn)
        else:
            following.say_hello(link, greet=True)

    # --- messages ------------------------------------------------------------------------------------------

    def receive(self, conn: int, message: m.Message) -> None:
        """Take in one message by the role of whoever sent it; what does not fit the role is ignored."""
        link = self.core.links.get(conn)
        if link is None:
            return
        link.heard = self.core.now
        if link.role == "stranger":
            if isinstance(message, m.Hello):
                self.hear_hello(link, message)
                return
            ours = (self.core.terms.job, self.core.terms.cluster)
            if isinstance(message, m.Who) and (message.job, message.cluster) == ours and not self.core.ended:
                self.core.send(conn, m.Here(self.core.record()))
            self.core.drop(conn)
        elif link.role in ("joining", "greeting"):
            self.hear_answer(link, message)
        elif link.role == "leader":
            self.hear_leader(link, message)
        else:
            self.hear_member(link, message)

    def hear_hello(self, link: Link, hello: m.Hello) -> None:
        """Somebody asks to join, or greets."""
        core, following = self.core, self.following
        stranger = refuse_stranger(core.terms, hello)
        if stranger or core.ended or hello.me.id == core.own.id:
            core.send(link.conn, m.Refuse(stranger or "this node takes no part in the job any more"))
            core.drop(link.conn)
            return
        newcomer = replace(candidate_of(hello.me), address=link.remote)
        self.learn(newcomer)
        self.learn_records(hello.known)
        if following.leader is not None and following.candidate is not None:
            leader = replace(following.candidate, size=len(core.seated) if core.live else 0)
            core.send(link.conn, m.Redirect(core.record(leader), core.record()))
            core.drop(link.conn)
        elif following.leader_finished:
            core.send(link.conn, m.Refuse("the job is finishing"))
            core.drop(link.conn)
        elif hello.greet:
            core.candidates.forgive(newcomer.id)
            better = min(core.own, newcomer, key=lambda c: c.claim)
            core.send(link.conn, m.Redirect(core.record(better), core.record()))
            core.drop(link.conn)
            if better is newcomer:
                self.yield_to(newcomer)
        else:
            self.leading.admit(link, hello)

    def yield_to(self, other: Candidate) -> None:
        """Another leader has the better claim: give up our own round, the election does the rest."""
        if self.core.live:
            self.leading.end_round(f"{other.host} leads a group of {other.size} nodes")

    def hear_answer(self, link: Link, message: m.Message) -> None:
        """A candidate answers our hello."""
        core, following = self.core, self.following
        if isinstance(message, m.Welcome):
            self.identify(link, message.me)
        elif isinstance(message, m.Redirect) and message.by is not None:
            self.identify(link, message.by)
        if isinstance(message, m.Welcome) and link.role == "joining":
            following.welcomed(link, message)
            assert following.candidate is not None
            self.leading.hand_over(core.record(following.candidate))
            return
        if link is following.joining:
            following.joining = None
        core.drop(link.conn)
        if isinstance(message, m.Redirect):
            core.candidates.forgive(link.id)
            self.redirected(link.id, message.leader)
            return
        core.candidates.doubt(link.id, core.now)
        if isinstance(message, m.Refuse) and message.final:
            core.end(message.reason)

    def identify(self, link: Link, me: m.Record) -> None:
        """Who answers says who it is: perhaps another start of the host than the one that we meant."""
        candidates = self.core.candidates
        meant = candidates.known.get(link.id)
        if link.id != me.id:
            candidates.forget(link.id)
            link.id = me.id
        candidate = candidate_of(me)
        if meant is not None:
            candidate = replace(candidate, address=meant.address, port=meant.port)
        self.learn(candidate)

    def redirected(self, by: str, leader: m.Record) -> None:
        """Somebody says who leads."""
        core = self.core
        target = candidate_of(leader)
        if target.id != by:  # no leader now; if it names one that we lost, it has yet to notice itself
            core.candidates.set_aside(by, core.now + REDIRECTED_S)
        if leader.id == core.own.id or target.id in core.candidates.doubted_since:
            return
        self.learn(target)
        if core.live and target.claim < core.own.claim:
            self.yield_to(target)

    def hear_leader(self, link: Link, message: m.Message) -> None:
        """Our leader speaks."""
        core, following = self.core, self.following
        match message:
            case m.Beat():
                self.learn_records(message.known)
                following.hear_beat(message)
            case m.Waiting():
                leader = following.candidate.host if following.candidate else ""
                core.tell(message.note or f"{leader} leads", message.present, waiting=True)
            case m.Prepare():
                following.prepare(message)
            case m.Commit():
                following.commit(message)
            case m.Abort():
                following.abort(message)
            case m.Regroup():
                following.regroup(message)
            case m.Bye():
                following.hear_bye(message)
            case m.Redirect():
                following.leader = None
                core.drop(link.conn)
                core.finish_round(f"{message.leader.host} leads")
                self.redirected(link.id, message.leader)
            case m.Refuse():
                core.drop(link.conn)
                following.lose_leader(message.reason)
            case _:
                pass

    def hear_member(self, link: Link, message: m.Message) -> None:
        """One of our members speaks."""
        leading = self.leading
        member = leading.roster.by_conn(link.conn)
        if member is None:
            self.core.drop(link.conn)
            return
        match message:
            case m.Beat():
                member.token = message.token
                self.learn_records(message.known)
            case m.Ready():
                leading.hear_ready(member, message)
            case m.Ack():
                leading.hear_ack(member.candidate.id, message.token)
            case m.Nack():
                leading.hear_nack(member.candidate.host, message.token, message.reason)
            case m.Bye():
                leading.hear_bye(member, message)
            case _:
                pass

    def lose(self, conn: int, reason: str) -> None:
        """A connection has ended by itself."""
        core, following = self.core, self.following
        link = core.links.pop(conn, None)
        if link is None:
            return
        if link is following.joining:
            following.give_up_joining()
        elif link is following.leader and following.candidate is not None:
            following.lose_leader(f"{following.candidate.host}, the leader, is gone: {reason}")
        elif link.role == "member":
            member = self.leading.roster.by_conn(conn)
            if member is not None:
                self.leading.lose(conn, f"{member.candidate.host} is gone: {reason}")
        elif link.role == "greeting":
            core.candidates.doubt(link.id, core.now)

    # --- the agent -----------------------------------------------------------------------------------------

    def want(self, mesh_port: int, reason: str) -> None:
        """The agent wants a round; if one is running, it has left it by itself."""
        core, following = self.core, self.following
        if core.ended:
            core.emit(core.ended)
            return
        if following.leader_finished:
            core.finish_round("the job has finished elsewhere")
            core.end("the job has finished on its leader, so the workers of this node cannot start again")
            return
        if core.live:  # nobody has to tell the agent that its round is over, but the others want to know
            reason = reason or f"the workers on {core.own.host} stopped"
            self.leading.dissolve(reason)
            core.leave_round(reason)
        else:
            reason = ""
        core.ready, core.mesh_port, core.wanted_at = True, mesh_port, core.now
        following.say_ready(reason)

    def close(self, outcome: str, detail: str) -> None:
        """The agent ends: say so to everybody that counts on us."""
        core = self.core
        for link in list(core.links.values()):
            if link.role in ("leader", "member"):
                core.send(link.conn, m.Bye(outcome, detail[:500]))
            core.drop(link.conn)
        self.leading.forget()
        self.following.forget()
        core.live = core.ready = False
        core.ended = core.ended or steps.End("this node has left the job", finished=outcome == "finished")

    # --- time ----------------------------------------------------------------------------------------------

    def watch(self) -> None:
        """Do what is due, after every event: cheap, and the order of events matters less."""
        core = self.core
        for link in list(core.links.values()):
            if link.role in ("stranger", "greeting") and core.now >= link.heard + HELLO_S:
                core.drop(link.conn)
        self.following.watch()
        self.leading.watch()
        if core.wanted_at is not None and core.now >= core.wanted_at + core.terms.join_timeout_s:
            self.time_out()
        if core.now >= self.next_beat:
            self.next_beat = core.now + BEAT_S
            self.beat()
        self.look()
        self.greet()
        if not self.following.leader and core.candidates.best(core.now).id == core.own.id:
            self.leading.form()

    def beat(self) -> None:
        """Tell the leader, or the members, that we live."""
        core = self.core
        if self.following.leader is not None:
            core.send(self.following.leader.conn, m.Beat(core.token, self.following.news()))
        else:
            self.leading.beat()

    def time_out(self) -> None:
        """Nobody can be waited for any longer."""
        core, terms = self.core, self.core.terms
        here = self.leading.present() if not self.following.leader else (core.own.host,)
        core.wanted_at, core.ready = None, False
        needed = f"{terms.min_nodes} nodes are needed"
        reason = f" The last reason: {core.reason}." if core.reason else ""
        core.end(
            f"no round within {terms.join_timeout_s:g} s: {needed}, here: {', '.join(here)}.{reason}",
            "start the same command on the missing nodes; `avahi-gpu peers` shows which this one sees",
        )
