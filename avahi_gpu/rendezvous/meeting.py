"""How the nodes of a job find each other and settle who leads: looking, greeting, hello, redirect. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from avahi_gpu.rendezvous import messages as m
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.core import GREET_AFTER_S, GREET_AGAIN_S, Core, Link, candidate_of
from avahi_gpu.rendezvous.election import Candidate
from avahi_gpu.rendezvous.following import Following
from avahi_gpu.rendezvous.leading import Leading
from avahi_gpu.rendezvous.terms import refuse_stranger

MISSES_TOLD = 2  # the first may be a stale record, or a lost packet
REFUSED = "connection refused"  # as channel.describe says it


class Meeting:
    """What a node does about the others before one of them leads the other."""

    def __init__(self, core: Core, leading: Leading, following: Following) -> None:
        self.core, self.leading, self.following = core, leading, following
        self.greet_at: dict[str, float] = {}
        self.misses: Counter[str] = Counter()  # attempts in a row that nothing answered, by candidate

    @property
    def bound(self) -> bool:
        """Whether this node looks for nobody: it has a leader, or no part in the job any more."""
        return bool(self.core.ended or self.following.leader or self.following.leader_finished)

    @property
    def free(self) -> bool:
        """Whether this node may join another: no leader, no running round and no proposal binds it."""
        return not (self.quiet or self.core.live or self.leading.proposal)

    @property
    def quiet(self) -> bool:
        """Whether this node keeps to itself: it is bound, or cannot take part for now."""
        return self.bound or self.leading.stuck

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
        if not self.free or following.joining is not None:
            return
        best = core.candidates.best(core.now)
        if best.id != core.own.id:
            self.try_out(best)

    def try_out(self, candidate: Candidate) -> None:
        """Connect to a candidate, unless that is under way."""
        trying = self.core.candidates.trying_since
        if candidate.id not in trying:
            trying[candidate.id] = self.core.now
            self.core.emit(steps.Open(candidate))

    def greet(self) -> None:
        """As a leader, tell those who did not join by themselves that we are there."""
        core = self.core
        if self.quiet:
            return
        known = core.candidates.known
        linked = {link.id for link in core.links.values()}
        for id, moment in list(self.greet_at.items()):
            if core.now < moment:
                continue
            if id not in known:
                del self.greet_at[id]
                continue
            self.greet_at[id] = core.now + GREET_AGAIN_S
            if id not in linked:
                self.try_out(known[id])

    def missed(self, id: str, reason: str) -> None:
        """A candidate could not be reached: worth a word while we wait for it and it is announced.

        One whose port refuses has ended; its record goes by itself.
        """
        core = self.core
        candidate = core.candidates.known.get(id)
        core.candidates.doubt(id, core.now)
        if id not in core.candidates.known:  # forgotten by now
            self.misses.pop(id, None)
            return
        self.misses[id] += reason != REFUSED
        if self.misses[id] == MISSES_TOLD and candidate and id in core.candidates.listed and core.ready:
            where = f"{candidate.host} ({candidate.address}) on port {candidate.port}"
            self.leading.announce(
                f"{core.own.host} cannot reach {where} ({reason}): is a firewall in between?"
            )

    def opened(self, link: Link) -> None:
        """A connection that we asked for is up: join or greet the candidate, whichever is right by now."""
        core, following = self.core, self.following
        core.links[link.conn] = link
        core.candidates.trying_since.pop(link.id, None)
        self.misses.pop(link.id, None)
        if self.quiet or link.id not in core.candidates.known:
            core.drop(link.conn)
        else:
            better = core.candidates.known[link.id].claim < core.own.claim
            following.say_hello(link, greet=not (better and self.free and following.joining is None))

    # --- hello and its answers -----------------------------------------------------------------------------

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
        core.candidates.forgive(newcomer.id)
        self.learn_records(hello.known)
        if following.leader is not None and following.candidate is not None:
            leader = replace(following.candidate, size=len(core.seated) if core.live else 0)
            core.send(link.conn, m.Redirect(core.record(leader), core.record()))
            core.drop(link.conn)
        elif following.leader_finished:
            core.send(link.conn, m.Refuse("the job is finishing"))
            core.drop(link.conn)
        elif self.leading.stuck:
            core.send(link.conn, m.Refuse(self.leading.excuse))
            core.drop(link.conn)
        elif hello.greet:
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
        if self.bound:  # by now another one leads us
            core.drop(link.conn)
            return
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
            known = core.candidates.known.get(link.id)
            who = f"{known.host} ({known.address})" if known is not None else "another node"
            core.end(f"{who} refuses this node: {message.reason}")

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
        if target.id != by:
            core.candidates.set_aside(by, core.now)
        if target.id == core.own.id:
            return
        if (
            target.id in core.candidates.doubted_since
        ):  # perhaps it is back, perhaps nobody knows yet that it died
            self.try_out(core.candidates.known[target.id])
            return
        known = core.candidates.known.get(target.id)
        if known is not None and (target.id == by or target.id in core.candidates.listed):
            # where others reach it, or where it would be reached best, may be a network that we are not on
            target = replace(target, address=known.address, port=known.port)
        self.learn(target)
        if core.live and target.claim < core.own.claim:
            self.yield_to(target)
