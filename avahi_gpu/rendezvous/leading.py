"""The leader's part: its members, the end of a round, what the time means for both. Pure."""

from __future__ import annotations

from dataclasses import replace

from avahi_gpu.rendezvous import messages as m
from avahi_gpu.rendezvous.core import BEAT_S, SILENT_TIMES, SUSPECT_S, Link, candidate_of
from avahi_gpu.rendezvous.proposing import Proposing
from avahi_gpu.rendezvous.roster import READY_LIMIT_S, Member, Roster
from avahi_gpu.rendezvous.terms import refuse_mismatch, warn_mismatch

# a member whose connection breaks while nobody trains may have found another way to us, or a better leader:
# it is told of only if it is not back by then
BACK_S = 1.0


class Leading(Proposing):
    """What a node does while it leads; a node without members leads itself."""

    @property
    def stuck(self) -> bool:
        """Whether our own workers do not end: nobody should wait for this node."""
        core = self.core
        busy = not (core.ready or core.live) and core.idle_since is not None
        return busy and core.now >= (core.idle_since or 0.0) + READY_LIMIT_S

    @property
    def confirmed_by(self) -> float:
        """When every member must have said that it runs the round, however slow its connection was."""
        return self.committed_at + BEAT_S + SILENT_TIMES * self.core.terms.lost_after_s

    @property
    def excuse(self) -> str:
        """What a node that is stuck says."""
        return f"{self.core.own.host} is not ready: its old workers did not end in time"

    # --- members -------------------------------------------------------------------------------------------

    def admit(self, link: Link, hello: m.Hello) -> None:
        """A node asks to join us."""
        core = self.core
        refusal = refuse_mismatch(core.terms, hello, core.own.host)
        if refusal:
            if refusal != core.reason:  # whoever tries again and again is told of once
                core.reason = refusal
                core.tell(f"refused: {refusal}")
            core.send(link.conn, m.Refuse(refusal, final=True))
            core.drop(link.conn)
            return
        if len(self.roster.members) >= m.MEMBERS_MAX:
            core.send(link.conn, m.Refuse(f"{core.own.host} has {m.MEMBERS_MAX} members already"))
            core.drop(link.conn)
            return
        warning = warn_mismatch(core.terms, hello, core.own.host)
        if warning:
            core.tell(warning)
        candidate = replace(candidate_of(hello.me), address=link.remote)
        member = Member(
            candidate, link.conn, link.remote, link.here, 0, core.now, core.plausible(hello.epoch)
        )
        for old in self.roster.admit(member):
            if old.conn != link.conn:
                core.drop(old.conn)
            self.left(old, f"{old.candidate.host} started again")
        link.role, link.id = "member", hello.me.id
        core.send(link.conn, m.Welcome(core.record(), core.epoch, warning))
        self.news_due = True
        if core.live and len(core.seated) >= core.terms.max_nodes:
            full = f"the job is full ({core.terms.max_nodes} nodes): {hello.me.host} waits as a spare"
            core.send(link.conn, self.waiting(full))
            core.tell(full)

    def lose(self, conn: int, reason: str, *, sudden: bool = False) -> None:
        """The connection of a member has ended (``sudden``: by itself), or it was silent for too long."""
        member = self.roster.by_conn(conn)
        if member is not None:
            del self.roster.members[member.candidate.id]
            self.left(member, reason, sudden=sudden)

    def left(self, member: Member, reason: str, *, sudden: bool = False) -> None:
        """A member is gone: a proposal or a round that counts on it is over."""
        core, id = self.core, member.candidate.id
        if member.finished:
            return
        core.candidates.doubt(id, core.now)
        proposed = self.proposal is not None and id in self.proposal.order
        if proposed:
            self.abort(reason, retry=False)  # and everybody is told
        if core.live and id in core.seated:
            self.end_round(reason, lost=True)
        elif not (core.live or proposed):
            if not sudden:
                core.tell(reason)
            elif len(self.losses) < m.MEMBERS_MAX:
                self.losses[id] = (core.now + BACK_S, reason)

    def tell_losses(self) -> None:
        """Tell of those who are not back by now."""
        for id, (moment, reason) in list(self.losses.items()):
            if id in self.roster.members:
                del self.losses[id]
            elif self.core.now >= moment:
                del self.losses[id]
                self.core.tell(reason)

    def hear_ready(self, member: Member, ready: m.Ready) -> None:
        """A member has no workers and wants a round."""
        core = self.core
        moved = member.networks != ready.networks
        member.ready, member.mesh_port = True, ready.mesh_port
        member.networks, member.asked = ready.networks, ready.asked
        member.epoch = max(member.epoch, core.plausible(ready.epoch))
        if core.live and member.candidate.id in core.seated:
            self.end_round(ready.reason or f"the workers on {member.candidate.host} stopped")
        elif self.proposal is not None and member.candidate.id in self.proposal.order:
            if moved:
                self.abort(f"{member.candidate.host} has other addresses now", retry=True)
        elif (
            self.proposal is not None
            and member.candidate.id not in self.proposal.order
            and len(self.proposal.order) < core.terms.max_nodes
        ):
            self.abort(f"{member.candidate.host} joins", retry=False)

    def hear_bye(self, member: Member, bye: m.Bye) -> None:
        """A member says why it goes."""
        core, host = self.core, member.candidate.host
        conn = member.conn
        in_round = member.candidate.id in core.seated
        if bye.outcome == "failed" and in_round:
            self.close_job(f"{host} gave up: {bye.detail or 'its script failed'}")
            return
        if bye.outcome == "finished":
            member.finished = True
        self.lose(conn, f"{host} left" + (f" ({bye.detail})" if bye.detail else ""))
        core.candidates.forget(member.candidate.id)
        core.drop(conn)

    def close_job(self, reason: str) -> None:
        """The job cannot go on for anybody."""
        for member in self.roster.members.values():
            self.core.send(member.conn, m.Bye("failed", reason))
        self.core.finish_round(reason)
        self.core.end(reason)

    def hand_over(self, to: m.Record) -> None:
        """Somebody else leads from now on: send the members there."""
        if self.proposal is not None:
            self.abort(f"{to.host} leads", retry=False)
        self.end_round(f"{to.host} leads")
        for member in list(self.roster.members.values()):
            self.core.send(member.conn, m.Redirect(to))
            self.core.drop(member.conn)
        self.forget()

    # --- the round -----------------------------------------------------------------------------------------

    def dissolve(self, reason: str) -> None:
        """Tell the members of the running round that it is over."""
        core = self.core
        if core.token is None:
            return
        for member in self.roster.members.values():
            if member.candidate.id in core.seated and not member.ready:
                member.busy_since = core.now
                core.send(member.conn, m.Regroup(core.token, reason))

    def end_round(self, reason: str, *, lost: bool = False) -> None:
        """The running round is over for everybody, ourselves included."""
        self.dissolve(reason)
        self.core.finish_round(reason, lost=lost)

    def forget(self) -> None:
        """Lead nobody any more."""
        self.roster, self.proposal, self.shown = Roster(), None, ()
        self.losses.clear()

    # --- time ----------------------------------------------------------------------------------------------

    def watch(self) -> None:
        """What the passing of time means for the members and the proposal."""
        core, terms = self.core, self.core.terms
        self.tell_losses()
        for member in list(self.roster.members.values()):
            link = core.links[member.conn]
            host = member.candidate.host
            seated = core.live and member.candidate.id in core.seated
            if core.now >= link.lost_at(terms.lost_after_s):
                conn = member.conn
                if member.candidate.id in core.seated and not member.ready:
                    core.mourn()
                self.lose(conn, f"{host} is lost: silent for {terms.lost_after_s:g} s")
                core.drop(conn)
            elif seated and member.token != core.token and core.now >= self.confirmed_by:
                conn = member.conn
                core.mourn()
                self.lose(conn, f"{host} does not run round {core.token}")
                core.drop(conn)
            elif core.now < link.alive + SUSPECT_S:
                if member.suspect:
                    core.tell(f"{host} is there again")
                member.suspect = False
            elif not member.suspect:
                member.suspect = True
                core.tell(f"{host} has been silent for {core.now - link.alive:.0f} s")
        if self.proposal is not None and core.now >= self.proposal.deadline:
            missing = [
                id
                for id in self.proposal.order
                if id not in self.proposal.acks | set(self.proposal.unreached)
            ]
            names = [self.roster.members[id].candidate.host for id in missing if id in self.roster.members]
            self.abort(f"no promise in time from {', '.join(names) or core.own.host}", retry=True)
            for id in missing:
                if id in self.roster.members:
                    conn = self.roster.members[id].conn
                    self.lose(conn, f"{self.roster.members[id].candidate.host} does not answer")
                    core.drop(conn)
        if core.live and len(core.seated) < terms.max_nodes:
            for member in self.roster.fit(core.now):
                self.end_round(f"{member.candidate.host} joins")
        if self.stuck and self.roster.members:
            for member in self.roster.members.values():
                core.send(member.conn, m.Refuse(self.excuse))
                core.drop(member.conn)
            self.forget()
            core.tell(self.excuse)
        for member in list(self.roster.members.values()):
            if not (core.live or member.ready or member.finished) and member not in self.roster.busy(
                core.now
            ):
                core.send(member.conn, m.Refuse("its old workers did not end in time"))
                conn = member.conn
                self.lose(conn, f"{member.candidate.host} is left out: its old workers did not end in time")
                core.drop(conn)

    def moments(self) -> list[float]:
        """Return when ``watch`` or ``form`` may have something to do."""
        core = self.core
        found = [moment for moment, _ in self.losses.values()]
        for member in self.roster.members.values():
            link = core.links[member.conn]
            found.append(link.lost_at(core.terms.lost_after_s))
            if not member.suspect:
                found.append(link.alive + SUSPECT_S)
        if self.proposal is not None:
            found.append(self.proposal.deadline)
        elif core.ready and self.not_before > core.now:
            found.append(self.not_before)
        found.append(core.mourn_until)
        if core.idle_since is not None and not (core.ready or core.live):
            found.append(core.idle_since + READY_LIMIT_S)
        if core.live and self.roster.members:
            found.append(self.confirmed_by)
        change = self.roster.next_change(core.now)
        return [t for t in [*found, *([change] if change is not None else [])] if t > core.now]

    def beat(self) -> None:
        """Tell the members that we live, and now and then who else they could turn to without us."""
        core = self.core
        everybody = (
            tuple(core.record(x.candidate) for x in self.roster.members.values()) if self.news_due else ()
        )
        self.news_due = False
        for member in self.roster.members.values():
            core.send(member.conn, m.Beat(core.token, everybody[: m.MEMBERS_MAX]))
