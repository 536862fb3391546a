"""Goes to those whose records say that they are nodes of the job, before the agreement hears of them.

With a cluster key the agreement hears of nobody who has not proved it, and of what is proven alone; the
connection is kept for it, so that nothing is done twice. Without one it hears of the first ones at once, as
they are; where a crowd says that it is of the job, of those who at least accept a connection, a few of each
address.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.channel import KEY_HINT, Channel, Unreached
from avahi_gpu.rendezvous.election import Candidate
from avahi_gpu.rendezvous.hearsay import Claim, Hearsay
from avahi_gpu.rendezvous.wire import Wire

FIRST_VISIT_S = 0.5  # a LAN answers in milliseconds; who does not is visited again, with more patience
VISIT_S = 3.5  # for connecting and for the proof
CROWD = 24  # records of one job that are taken as they are, without a key: twice the nodes of a large one
CROWD_PER_HOST = 3  # and of one address: a node, its predecessor, and one more
CROWD_TOLD = 100  # records of one job that are worth a word
MISSES_TOLD = 2  # the first may be a stale record, or a lost packet
REFUSED = "connection refused"  # as wire.describe says it: a node that has ended, whose record goes by itself


class Scout:
    """Stands between the records and the agreement; its methods run in the loop's thread."""

    def __init__(self, channel: Channel, ask_again: Callable[[str], None]) -> None:
        self.channel, self.feed, self.ask_again = channel, channel.feed, ask_again
        self.hearsay = Hearsay()
        self.proving = channel.us.key is not None
        self._heard: dict[str, str] = {}  # by record: the id that the agreement has heard of
        self._trusted: dict[str, Candidate] = {}  # by record: those that are taken as they are, without a key
        self._per_host: Counter[str] = Counter()  # of these
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def close(self) -> None:
        """Visit nobody any more."""
        if self._timer is not None:
            self._timer.cancel()
        for task in list(self._tasks):
            task.cancel()

    def seen(self, name: str, candidate: Candidate) -> None:
        """A record of the job has appeared, or has changed."""
        if not self.proving and (name in self._trusted or self._room(candidate)):
            self._trust(name, candidate)
            return
        self.hearsay.hear(name, candidate)
        if self.hearsay.records == CROWD_TOLD:
            what = f"more than {CROWD_TOLD} records on the LAN say that they are nodes of this job"
            told = "only those count that prove the cluster key" if self.proving else KEY_HINT
            self.channel.tell_once("", f"{what}: {told}; --peers needs no records")
        self._go()

    def unseen(self, name: str) -> None:
        """A record has gone."""
        self._distrust(name)
        self.hearsay.forget(name)
        id = self._heard.pop(name, None)
        if id is not None and id not in self._heard.values():
            self.feed(steps.Unseen(id))

    def failed(self, id: str) -> None:
        """The agreement could not reach a candidate: without a key, its place among the first is free."""
        for name, candidate in list(self._trusted.items()):
            if candidate.id == id and len(self._trusted) >= CROWD // 2:
                self._distrust(name)
                self.hearsay.hear(name, candidate)
                self._go()

    # --- without a key -------------------------------------------------------------------------------------

    def _room(self, candidate: Candidate) -> bool:
        return len(self._trusted) < CROWD and self._per_host[candidate.address] < CROWD_PER_HOST

    def _trust(self, name: str, candidate: Candidate) -> None:
        self._distrust(name)
        self._trusted[name] = candidate
        self._per_host[candidate.address] += 1
        self._introduce(name, candidate)

    def _distrust(self, name: str) -> None:
        candidate = self._trusted.pop(name, None)
        if candidate is not None:
            self._per_host[candidate.address] -= 1
            self._per_host += Counter()  # drops what has come to nothing

    def _introduce(self, name: str, candidate: Candidate) -> None:
        self._heard[name] = candidate.id
        self.feed(steps.Seen(candidate))

    # --- visits --------------------------------------------------------------------------------------------

    def _go(self) -> None:
        now = time.monotonic()
        for claim in self.hearsay.take(now):
            task = asyncio.ensure_future(self._visit(claim))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self.hearsay.next_change()
        if due is not None:
            self._timer = asyncio.get_running_loop().call_later(max(0.0, due - now) + 0.001, self._go)

    async def _visit(self, claim: Claim) -> None:
        wire, candidate = None, claim.candidate
        limit_s = VISIT_S if claim.failures else FIRST_VISIT_S
        try:
            wire = await asyncio.wait_for(self.channel.reach(candidate), limit_s)
        except asyncio.TimeoutError:
            self._missed(claim, candidate, "no answer")
        except Unreached as failure:
            self._missed(claim, candidate, failure.reason)
        self.hearsay.done(claim, time.monotonic(), reached=wire is not None)
        if wire is not None:
            self._reached(claim, candidate, wire)
        self._go()

    def _reached(self, claim: Claim, candidate: Candidate, wire: Wire) -> None:
        if not claim.records:  # the last one has gone meanwhile
            wire.writer.close()
        elif wire.answered is not None:
            it = wire.answered
            self.channel.keep(claim.place, wire)
            for name in claim.records:
                self._introduce(name, replace(candidate, id=it.id, host=it.host, priority=it.priority))
        else:
            wire.writer.close()
            for name, said in list(claim.records.items()):
                if self._room(said):
                    self.hearsay.forget(name)
                    self._trust(name, said)

    def _missed(self, claim: Claim, candidate: Candidate, reason: str) -> None:
        if claim.failures + 1 != MISSES_TOLD or reason in (REFUSED, Unreached.UNPROVEN):
            return
        if len(self.hearsay.claims) <= CROWD:
            self.ask_again(candidate.id)  # it may have another address by now
        where = f"{candidate.host} ({candidate.address}) on port {candidate.port}"
        text = f"{self.channel.us.host} cannot reach {where} ({reason}): is a firewall in between?"
        self.channel.tell_once(candidate.address, text, "unreached")
