"""How a leader brings a round about: the proposal, its promises, the mesh's gaps, the commit. Pure."""

from __future__ import annotations

from collections import Counter

from avahi_gpu.rendezvous import messages as m
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.core import GAP_S, LEFT_OUT_S, PREPARE_S, RETRY_S, Core
from avahi_gpu.rendezvous.networks import Standing, Way, describe_discord, find_ways
from avahi_gpu.rendezvous.roster import Member, Proposal, Roster, common_address, standing


class Proposing:
    """The half of a leader that makes rounds; ``Leading`` adds what it does about its members."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.roster = Roster()
        self.proposal: Proposal | None = None
        self.not_before = 0.0  # no proposal before this
        self.committed_at = 0.0
        self.gaps = 0  # how many proposals in a row found the mesh broken
        self.broken_until: dict[tuple[str, ...], float] = {}  # by a way's addresses: its mesh had gaps
        self.shown: tuple[str, ...] = ()
        self.losses: dict[str, tuple[float, str]] = {}  # by id: when to tell of it, and how
        self.news_due = False  # members have come: the others should know where to find them

    def form(self) -> None:
        """Propose a round if one closes now."""
        core = self.core
        if (
            self.proposal is not None
            or core.ended
            or not core.ready
            or core.live
            or core.now < max(self.not_before, core.mourn_until)
        ):
            return
        terms = core.terms
        coming = [c for c in core.candidates.usable(core.now) if c.id not in self.roster.members]
        order = self.roster.close(terms, core.own.id, core.now, previous=core.seated, coming=len(coming))
        if order is None:
            self.show_waiting()
            return
        members = [self.roster.members[id] for id in order[1:]]
        way = self.choose_way(members)
        if way is None:
            return
        core.epoch = 1 + max([core.epoch, *(x.epoch for x in members)])
        token = m.Token(core.epoch, core.own.id)
        self.proposal = Proposal(token, order, way, core.now + PREPARE_S)
        core.emit(steps.Reserve(token, way.addresses[0]))

    def ways(self, members: list[Member]) -> list[Way]:
        """Return the ways to seat us and ``members``, best first; those whose mesh had gaps lately last."""
        core = self.core
        seen = common_address(members, core.own.address)
        own = Standing(core.own.host, seen, core.networks, core.asked)
        found = find_ways([own, *map(standing, members)])
        return sorted(found, key=lambda way: self.broken_until.get(way.addresses, 0.0) > core.now)

    def choose_way(self, members: list[Member]) -> Way | None:
        """Return the addresses of a round of us and ``members``; where there are none, tell so and wait."""
        core = self.core
        found = self.ways(members)
        if found:
            return found[0]
        own = Standing(core.own.host, core.own.address, core.networks, core.asked)
        reason = describe_discord([own, *map(standing, members)])
        self.not_before = core.now + RETRY_S
        if reason != core.reason:
            core.reason = reason
            self.announce(reason)
        return None

    def seats(self) -> tuple[m.Seat, ...]:
        """Return the seats of the proposal, ourselves first."""
        assert self.proposal is not None
        core = self.core
        members = [self.roster.members[id] for id in self.proposal.order[1:]]
        seats = [(core.own.id, core.own.host, core.mesh_port)]
        seats += [(x.candidate.id, x.candidate.host, x.mesh_port) for x in members]
        return tuple(
            m.Seat(id, host, address, port)
            for (id, host, port), address in zip(seats, self.proposal.way.addresses, strict=True)
        )

    def reserved(self, event: steps.Reserved) -> None:
        """The ports are ours: ask the members for their promise, and test the mesh ourselves."""
        proposal = self.proposal
        if proposal is None or proposal.token != event.token:
            return
        proposal.store_port, proposal.worker_port = event.store_port, event.worker_port
        prepare = m.Prepare(
            proposal.token, self.seats(), event.store_port, event.worker_port, proposal.way.why
        )
        for id in proposal.order[1:]:
            self.core.send(self.roster.members[id].conn, prepare)
        self.core.emit(steps.TestMesh(proposal.token, prepare.seats, event.store_port, event.worker_port))

    def hear_ack(self, id: str, token: m.Token) -> None:
        """Somebody, or we ourselves, promised."""
        proposal = self.proposal
        if proposal is None or proposal.token != token or id not in proposal.order:
            return
        proposal.acks.add(id)
        if proposal.agreed:
            self.commit()
        elif proposal.tested:
            self.mend()

    def hear_nack(self, id: str, nack: m.Nack) -> None:
        """Somebody, or we ourselves, cannot take part; where it is the mesh, hear everybody out."""
        proposal = self.proposal
        if proposal is None or proposal.token != nack.token or id not in proposal.order:
            return
        proposal.reasons.append(nack.reason or f"{self.host_of(id)} cannot take part")
        gaps = tuple(other for other in nack.unreachable if other != id and other in proposal.order)
        if not gaps:
            self.abort(proposal.reasons[-1], retry=True)
        else:
            proposal.unreached[id] = gaps
            if proposal.tested:
                self.mend()

    def mend(self) -> None:
        """The mesh has gaps: try another network, or go on without those that do not fit in if enough do."""
        core, proposal = self.core, self.proposal
        assert proposal is not None
        if self.try_next_way(proposal):
            return
        misfits = proposal.misfits(core.seated)
        enough = len(proposal.order) - len(misfits) >= core.terms.min_nodes and core.own.id not in misfits
        self.gaps += 1
        enough = enough and self.gaps > 1  # once may have been a cable that was out for a moment
        self.abort("; ".join(proposal.reasons), retry=not enough)
        for id in misfits & set(self.roster.members):
            member = self.roster.members[id]
            if enough:
                member.left_out_until = core.now + LEFT_OUT_S * 10**member.left_out
                member.left_out += 1
                core.send(member.conn, self.waiting(f"left out: {core.reason}"))

    def try_next_way(self, proposal: Proposal) -> bool:
        """Return whether there is another network to try, now that this one's mesh has gaps."""
        core = self.core
        reasons = "; ".join(proposal.reasons)
        self.broken_until = {w: until for w, until in self.broken_until.items() if until > core.now}
        self.broken_until[proposal.way.addresses] = core.now + GAP_S
        left = [
            way
            for way in self.ways([self.roster.members[id] for id in proposal.order[1:]])
            if way.addresses not in self.broken_until
        ]
        if not left:
            self.broken_until.clear()  # all have been tried: from the best one again
            return False
        where = left[0].network or "the network of the control connections"
        self.abort(f"{reasons}; trying {where} instead", retry=False)
        return True

    def mesh_done(self, event: steps.MeshDone) -> None:
        """Our own mesh test has ended."""
        if not event.unreachable:
            self.hear_ack(self.core.own.id, event.token)
            return
        reason = "; ".join(text for _, text in event.unreachable)
        ids = tuple(id for id, _ in event.unreachable)
        self.hear_nack(self.core.own.id, m.Nack(event.token, reason, ids))

    def commit(self) -> None:
        """Everybody has promised: the round begins."""
        proposal = self.proposal
        assert proposal is not None
        seats = self.seats()
        for id in proposal.order[1:]:
            member = self.roster.members[id]
            member.ready, member.busy_since, member.left_out = False, self.core.now, 0
            self.core.send(member.conn, m.Commit(proposal.token))
        self.proposal, self.committed_at, self.shown = None, self.core.now, ()
        self.roster.last_call_until, self.gaps = None, 0
        self.core.deliver(
            steps.Round(proposal.token, seats, 0, proposal.store_port, proposal.worker_port, proposal.way.why)
        )
        self.core.set_size(len(seats))

    def abort(self, reason: str, *, retry: bool) -> None:
        """The proposal is off. ``retry``: the same members may try again after a pause."""
        proposal, self.proposal = self.proposal, None
        assert proposal is not None
        core = self.core
        for id in proposal.order[1:]:
            if id in self.roster.members:
                core.send(self.roster.members[id].conn, m.Abort(proposal.token, reason))
        if retry:
            self.not_before = core.now + RETRY_S
        if reason != core.reason:
            core.reason = reason
            core.tell(reason)

    # --- for people ----------------------------------------------------------------------------------------

    def host_of(self, id: str) -> str:
        """Return the host name of a member, or our own."""
        return self.roster.members[id].candidate.host if id in self.roster.members else self.core.own.host

    def present(self) -> tuple[str, ...]:
        """Return who is there, ourselves first; hosts of one name are told apart by their address."""
        hosts = [(self.core.own.host, self.core.own.address)]
        hosts += [(x.candidate.host, x.address) for x in self.roster.members.values() if not x.finished]
        count = Counter(host for host, _ in hosts)
        return tuple(host if count[host] == 1 else f"{host[:180]} ({address})" for host, address in hosts)

    def waiting(self, note: str = "") -> m.Waiting:
        terms = self.core.terms
        return m.Waiting(self.present()[: m.MEMBERS_MAX], terms.min_nodes, terms.max_nodes, note)

    def announce(self, text: str) -> None:
        """Tell everybody what keeps the round from forming."""
        for member in self.roster.members.values():
            self.core.send(member.conn, self.waiting(text))
        self.core.tell(text)

    def show_waiting(self) -> None:
        """Tell everybody who is there, when that has changed."""
        core = self.core
        present = self.present()
        mark = (*present, core.reason)
        if mark == self.shown:
            return
        self.shown = mark
        for member in self.roster.members.values():
            core.send(member.conn, self.waiting())
        core.tell(f"{core.own.host} leads", present, waiting=True)
