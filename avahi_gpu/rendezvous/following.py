"""The follower's part: the way to a leader, promises, the leader's loss. Pure."""

from __future__ import annotations

from avahi_gpu.rendezvous import messages as m
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.core import SUSPECT_S, WELCOME_S, Core, Link
from avahi_gpu.rendezvous.election import Candidate


class Following:
    """What a node does on its way to a leader and under one."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.joining: Link | None = None
        self.joining_until = 0.0
        self.leader: Link | None = None
        self.candidate: Candidate | None = None  # the leader's
        self.promise: m.Prepare | None = None
        self.suspect = False
        self.leader_finished = False
        self.told: set[str] = set()
        self.running: m.Token | None = None  # the round of the leader's last beat
        self.present: tuple[str, ...] = (core.own.host,)  # who is there, as the leader told last

    def say_hello(self, link: Link, *, greet: bool = False) -> None:
        """Ask to join, or greet, the candidate behind a fresh connection."""
        core = self.core
        me = core.record()
        me = m.Record(me.id, me.host, link.here, me.port, me.priority, me.size)
        known = tuple(core.record(c) for c in core.candidates.usable(core.now))[: m.MEMBERS_MAX]
        core.send(
            link.conn,
            m.Hello(
                me,
                core.terms.job,
                core.terms.cluster,
                core.terms.skills,
                core.epoch,
                greet=greet,
                known=known,
            ),
        )
        if greet:
            link.role = "greeting"
        else:
            link.role, self.joining, self.joining_until = "joining", link, core.now + WELCOME_S

    def welcomed(self, link: Link, welcome: m.Welcome) -> None:
        """The candidate leads us from now on."""
        core = self.core
        self.joining, self.leader, self.promise, self.suspect = None, link, None, False
        link.role, link.id = "leader", welcome.me.id
        known = core.candidates.known.get(link.id)
        self.candidate = known or Candidate(link.id, welcome.me.host, welcome.me.address, welcome.me.port)
        core.epoch = max(core.epoch, core.plausible(welcome.epoch))
        core.candidates.forgive(link.id)
        self.told = set()
        if welcome.note:
            core.tell(welcome.note)
        if core.ready:
            self.say_ready()

    def say_ready(self, reason: str = "") -> None:
        """Our old workers are gone: the leader may count on us."""
        if self.leader is not None:
            self.core.send(self.leader.conn, self.ready(reason))

    def ready(self, reason: str = "") -> m.Ready:
        """Return what says that we wait for a round, and where we can be reached."""
        core = self.core
        return m.Ready(core.mesh_port, core.epoch, reason, core.networks, core.asked)

    def prepare(self, prepare: m.Prepare) -> None:
        """The leader proposes a round: promise it if we can, after testing the mesh."""
        core = self.core
        assert self.leader is not None
        seated = any(s.id == core.own.id for s in prepare.seats)
        if prepare.token.leader != self.leader.id or not seated or prepare.seats[0].id != self.leader.id:
            core.send(self.leader.conn, m.Nack(prepare.token, f"{core.own.host} is not part of that round"))
        elif not core.ready or core.live:
            core.send(
                self.leader.conn, m.Nack(prepare.token, f"the workers on {core.own.host} have not ended yet")
            )
        elif not core.epoch < prepare.token.epoch <= core.plausible(prepare.token.epoch):
            core.send(self.leader.conn, self.ready())
            core.send(self.leader.conn, m.Nack(prepare.token, f"{core.own.host} has seen another round"))
        else:
            core.epoch = prepare.token.epoch
            self.promise = prepare
            core.emit(steps.TestMesh(prepare.token, prepare.seats, prepare.store_port, prepare.worker_port))

    def mesh_done(self, event: steps.MeshDone) -> None:
        """Our mesh test has ended: promise, or say whom we cannot reach."""
        if self.promise is None or self.promise.token != event.token or self.leader is None:
            return
        if event.unreachable:
            reason = "; ".join(text for _, text in event.unreachable)
            ids = tuple(id for id, _ in event.unreachable)
            self.promise = None
            self.core.send(self.leader.conn, m.Nack(event.token, reason, ids))
        else:
            self.core.send(self.leader.conn, m.Ack(event.token))

    def commit(self, commit: m.Commit) -> None:
        """The round begins."""
        promise, self.promise = self.promise, None
        if promise is None or promise.token != commit.token:
            return
        rank = next(i for i, s in enumerate(promise.seats) if s.id == self.core.own.id)
        self.core.deliver(
            steps.Round(
                promise.token, promise.seats, rank, promise.store_port, promise.worker_port, promise.why
            )
        )
        assert self.leader is not None
        self.core.send(self.leader.conn, m.Beat(self.core.token))

    def abort(self, abort: m.Abort) -> None:
        """The proposal is off."""
        if self.promise is not None and self.promise.token == abort.token:
            self.promise = None
        if abort.reason and abort.reason != self.core.reason:
            self.core.reason = abort.reason
            self.core.tell(abort.reason)

    def regroup(self, regroup: m.Regroup) -> None:
        """The running round is over."""
        if self.core.token == regroup.token:
            self.core.finish_round(regroup.reason)

    def hear_beat(self, beat: m.Beat) -> None:
        """The leader lives; if it runs another round than we do, ours is over."""
        self.running = beat.token
        if self.core.live and beat.token != self.core.token:
            self.core.finish_round("the leader runs another round")

    def hear_bye(self, bye: m.Bye) -> None:
        """The leader goes."""
        core = self.core
        assert self.leader is not None and self.candidate is not None
        host, conn = self.candidate.host, self.leader.conn
        if bye.outcome == "failed":
            reason = bye.detail or f"{host} gave up"
            core.tell(f"{self.describe_leader()} ends the job")
            core.finish_round(reason)
            core.end(reason)
        elif bye.outcome == "finished":
            self.leader_finished = True
            # only of a round that the leader was seen to run can we have been a spare
            ours = core.round.token if core.round is not None else None
            spare = self.running is not None and self.running != ours
            if not core.live:
                core.end(f"the job has finished on {host} without {core.own.host}", finished=spare)
        else:
            self.lose_leader(f"{host}, the leader, left" + (f" ({bye.detail})" if bye.detail else ""))
            core.candidates.forget(self.candidate.id)
        core.drop(conn)
        if self.leader is not None and self.leader.conn == conn:
            self.leader = None

    def describe_leader(self) -> str:
        """Return who leads us, for people: anybody may say anything, and this is who has said it."""
        assert self.candidate is not None
        return f"{self.candidate.host} ({self.candidate.address}), the leader,"

    def lose_leader(self, reason: str) -> None:
        """The leader is gone: the round is over, look for another."""
        core = self.core
        link, self.leader, self.promise = self.leader, None, None
        if link is None:
            return
        core.candidates.doubt(link.id, core.now)
        if core.live:
            core.finish_round(reason, lost=True)
        else:
            core.tell(reason)

    def forget(self) -> None:
        """Follow nobody any more, and look for nobody."""
        self.joining = self.leader = self.promise = None

    def give_up_joining(self) -> None:
        """The candidate did not answer, or the connection ended first."""
        link, self.joining = self.joining, None
        if link is not None:
            self.core.candidates.doubt(link.id, self.core.now)
            self.core.drop(link.conn)

    def watch(self) -> None:
        """What the passing of time means for the leader and the way to it."""
        core, limit = self.core, self.core.terms.lost_after_s
        if self.joining is not None and core.now >= self.joining_until:
            self.give_up_joining()
        if self.leader is None or self.candidate is None:
            return
        alive = self.leader.alive
        if core.now >= self.leader.lost_at(limit):
            conn = self.leader.conn
            core.mourn()
            self.lose_leader(f"{self.candidate.host}, the leader, is lost: silent for {limit:g} s")
            core.drop(conn)
        elif core.now < alive + SUSPECT_S:
            if self.suspect:
                core.tell(f"{self.candidate.host}, the leader, is there again")
            self.suspect = False
        elif not self.suspect:
            self.suspect = True
            core.tell(f"{self.candidate.host}, the leader, has been silent for {core.now - alive:.0f} s")

    def moments(self) -> list[float]:
        """Return when ``watch`` may have something to do."""
        found = [self.joining_until] if self.joining is not None else []
        if self.leader is not None:
            found.append(self.leader.lost_at(self.core.terms.lost_after_s))
            if not self.suspect:
                found.append(self.leader.alive + SUSPECT_S)
        return found

    def news(self) -> tuple[m.Record, ...]:
        """Return the candidates that the leader has not heard of from us."""
        fresh = [c for c in self.core.candidates.usable(self.core.now) if c.id not in self.told]
        self.told |= {c.id for c in fresh}
        return tuple(self.core.record(c) for c in fresh)[: m.MEMBERS_MAX]
