"""The agreement of a job's nodes as a pure state machine: events and the time in, actions out.

A node leads itself until it joins a better candidate. Members join their leader over one connection each;
the leader proposes a round when it closes (PREP), every member promises after its old workers are gone and
after it has reached every other one (ACK), and only then the round begins (COMMIT). A lost member ends the
round for all; a lost leader sends its members back to the election. No clock but the caller's monotonic one.
"""

from __future__ import annotations

from avahi_gpu.rendezvous import messages as m
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.core import BEAT_S, HELLO_S, PATIENCE_S, Core, Link
from avahi_gpu.rendezvous.election import Candidate, Candidates
from avahi_gpu.rendezvous.following import Following
from avahi_gpu.rendezvous.leading import Leading
from avahi_gpu.rendezvous.meeting import Meeting
from avahi_gpu.rendezvous.terms import Terms

START_HINT = "start the same command on the missing nodes; `avahi-gpu peers` shows which this one sees"
ALONE_HINT = (
    "no other node of the job was ever seen: start the same command there; where it runs, multicast may be "
    "blocked: look at `avahi-gpu doctor`, or name the nodes by --peers A,B"
)
REASONS_MAX = 3  # why nodes are missed, in one sentence


class Agreement:
    """One node's view of its job. ``handle`` takes every event, ``deadline`` says when to send a Tick."""

    def __init__(self, own: Candidate, terms: Terms) -> None:
        self.core = Core(own, terms, Candidates(own))
        self.leading = Leading(self.core)
        self.following = Following(self.core)
        self.meeting = Meeting(self.core, self.leading, self.following)
        self.next_beat = 0.0

    # --- the outside ---------------------------------------------------------------------------------------

    def handle(self, event: steps.Event, now: float) -> list[steps.Action]:
        """Take in one event at monotonic time ``now`` (seconds) and return what is to be done, in order."""
        core = self.core
        core.now, core.out = now, []
        if core.idle_since is None:
            core.idle_since = now
        match event:
            case steps.Seen(candidate):
                self.meeting.introduce(candidate.id, core.candidates.appear(candidate))
            case steps.Unseen(id):
                self.meeting.unsee(id)
            case steps.Excluded(host, reason):
                core.exclude(host, reason)
            case steps.Opened(conn, id, address):
                self.meeting.opened(Link(conn, "stranger", now, address, id))
            case steps.OpenFailed(id, reason):
                self.meeting.missed(id, reason)
            case steps.Accepted(conn, address, remote):
                core.links[conn] = Link(conn, "stranger", now, address, remote=remote)
            case steps.Received(conn, message):
                self.receive(conn, message)
            case steps.Lost(conn, reason):
                self.lose(conn, reason)
            case steps.Answered(conn, apart):
                self.hear_sign(conn, apart=apart)
            case steps.Wanted() if now < core.mourn_until:
                core.postponed = event
            case steps.Wanted(mesh_port, reason):
                self.want(mesh_port, reason)
            case steps.Moved():
                self.move(event)
            case steps.Severed(token, reason):
                self.sever(token, reason)
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
        limit = core.terms.lost_after_s
        found += [link.ask_at(limit) for link in core.links.values() if link.role in ("leader", "member")]
        change = core.candidates.next_change(core.now)
        if change is not None:
            found.append(change)
        if not self.meeting.quiet:
            found += self.meeting.greet_at.values()
        if core.postponed is not None:
            found.append(core.mourn_until)
        if core.wanted_at is not None:
            found.append(core.wanted_at + core.terms.join_timeout_s)
        if core.untold is not None:
            found.append(core.tell_from)
        return min(found)

    @property
    def round(self) -> steps.Round | None:
        """The round whose workers may be running."""
        return self.core.round if self.core.live else None

    @property
    def bound(self) -> bool:
        """Whether this node looks for nobody: it has a leader, or no part in the job any more."""
        return self.meeting.bound

    @property
    def leader_host(self) -> str:
        """The host name of the leader as far as this node knows."""
        followed = self.following.candidate if self.following.leader else None
        return (followed or self.core.own).host

    # --- messages ------------------------------------------------------------------------------------------

    def receive(self, conn: int, message: m.Message) -> None:
        """Take in one message by the role of whoever sent it; what does not fit the role is ignored."""
        link = self.core.links.get(conn)
        if link is None:
            return
        link.heard = self.core.now
        if link.role == "stranger":
            if isinstance(message, m.Hello):
                self.meeting.hear_hello(link, message)
                return
            answer = self.answer(message) if isinstance(message, m.Who) else None
            if answer is not None:
                self.core.send(conn, answer)
            self.core.drop(conn)
        elif link.role in ("joining", "greeting"):
            self.meeting.hear_answer(link, message)
        elif link.role == "leader":
            self.hear_leader(link, message)
        else:
            self.hear_member(link, message)

    def hear_leader(self, link: Link, message: m.Message) -> None:
        """Our leader speaks."""
        core, following = self.core, self.following
        match message:
            case m.Beat():
                self.meeting.learn_records(message.known)
                following.hear_beat(message)
                if core.now >= self.next_beat - BEAT_S / 2:
                    self.next_beat = core.now
            case m.Waiting():
                following.present = message.present
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
                self.meeting.redirected(link.id, message.leader)
            case m.Refuse():
                core.drop(link.conn)
                following.lose_leader(f"{following.describe_leader()} sends this node away: {message.reason}")
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
                self.meeting.learn_records(message.known)
            case m.Ready():
                leading.hear_ready(member, message)
            case m.Ack():
                leading.hear_ack(member.candidate.id, message.token)
            case m.Nack():
                leading.hear_nack(member.candidate.id, message)
                if self.core.live and message.token == self.core.token:
                    leading.end_round(message.reason)
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
                self.leading.lose(conn, f"{member.candidate.host} is gone: {reason}", sudden=True)
        elif link.role == "greeting":
            core.candidates.doubt(link.id, core.now)

    def answer(self, who: m.Who) -> m.Here | None:
        """Return what somebody is told who asks for us; None where we are of another job, or of none now."""
        core = self.core
        if core.ended or (who.job, who.cluster) != (core.terms.job, core.terms.cluster):
            return None
        near = (link.id for link in core.links.values() if link.role in ("leader", "member", "joining"))
        return m.Here(core.record(), apart=who.asker is not None and who.asker not in near)

    def ask(self) -> None:
        """Ask those whose connection is silent for a sign of life."""
        core = self.core
        for conn, link in core.links.items():
            if link.role not in ("leader", "member") or core.now < link.ask_at(core.terms.lost_after_s):
                continue
            member = self.leading.roster.by_conn(conn)
            other = member.candidate if member is not None else self.following.candidate
            link.asked = core.now
            if other is not None:
                core.emit(steps.Ask(conn, link.id, other.address, other.port))

    def hear_sign(self, conn: int, *, apart: bool) -> None:
        """Whoever is behind a silent connection has answered over another one."""
        link = self.core.links.get(conn)
        if link is None:
            return
        link.answered = self.core.now
        if apart:
            self.core.emit(steps.Drop(conn))
            self.lose(conn, f"it goes on without {self.core.own.host}")

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

    def move(self, moved: steps.Moved) -> None:
        """We can be reached elsewhere than before: whoever seats us wants to know."""
        core = self.core
        if not core.move(moved.address, moved.networks, moved.asked):
            return
        seat = core.round.own.address if core.live and core.round is not None else ""
        if seat and seat not in [n.address for n in moved.networks]:
            gone = f"{core.own.host} has no longer the address {seat} of the round"
            core.tell(dict(moved.lacks).get(seat, gone))
        if self.leading.proposal is not None:
            self.leading.abort(f"{core.own.host} has other addresses now", retry=False)
        if core.ready:
            self.following.say_ready()

    def sever(self, token: m.Token, reason: str) -> None:
        """The network under the running round is gone; our connection to the leader may live on another."""
        core, leader = self.core, self.following.leader
        if core.token == token:
            if leader is not None:
                core.send(leader.conn, m.Nack(token, reason))
            core.mourn()
            self.leading.end_round(reason, lost=True)

    def close(self, outcome: str, detail: str) -> None:
        """The agent ends: say so to everybody that counts on us."""
        core = self.core
        for link in list(core.links.values()):
            if link.role in ("leader", "member"):
                core.send(link.conn, m.Bye(outcome, detail))
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
                core.candidates.doubt(link.id, core.now)
        core.tell_rest()
        if core.postponed is not None and core.now >= core.mourn_until:
            wanted, core.postponed = core.postponed, None
            self.want(wanted.mesh_port, wanted.reason)
        self.ask()
        self.following.watch()
        self.leading.watch()
        if core.wanted_at is not None and core.now >= core.wanted_at + core.terms.join_timeout_s:
            self.time_out()
        if core.now >= self.next_beat:
            self.next_beat = core.now + BEAT_S + (PATIENCE_S if self.following.leader else 0.0)
            self.beat()
        self.meeting.look()
        self.meeting.greet()
        if not (self.following.leader or core.live) and core.candidates.best(core.now).id == core.own.id:
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
        here = self.following.present if self.following.leader else self.leading.present()
        core.wanted_at, core.ready = None, False
        needed = f"{terms.min_nodes} nodes are needed"
        apart = [reason for host, reason in core.excluded.items() if host not in here]
        reasons = "; ".join([*([core.reason] if core.reason else []), *apart][:REASONS_MAX])
        reason = f" The last reason: {reasons}." if reasons else ""
        hint = START_HINT if core.candidates.met else ALONE_HINT
        core.end(
            f"no round within {terms.join_timeout_s:g} s: {needed}, here: {', '.join(here)}.{reason}",
            "" if apart else hint,  # those that cannot join run the command already
        )
