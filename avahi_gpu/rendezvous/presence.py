"""A node on the LAN as mDNS shows it: its own record, and the watch for those of the others."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import replace

from avahi_gpu.avahi.browse import Browser
from avahi_gpu.avahi.bus import Avahi
from avahi_gpu.avahi.publish import Publication
from avahi_gpu.errors import BusError, DeadlineExceeded
from avahi_gpu.host.clock import unix_time
from avahi_gpu.model import JOB_SERVICE, JobPart
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.channel import Channel
from avahi_gpu.rendezvous.election import Candidate
from avahi_gpu.rendezvous.record import encode_record
from avahi_gpu.rendezvous.sightings import Sightings
from avahi_gpu.rendezvous.terms import Terms

NAME_MAX = 63  # bytes of a DNS label (RFC 1035 section 2.3.4)
AGAIN_S = 1.0  # between two attempts with an avahi-daemon that does not answer


class Presence:
    """From ``enter`` to ``leave``; the agreement behind ``channel`` hears of the others.

    ``txt``: what our record says by now.
    """

    def __init__(self, avahi: Avahi, terms: Terms, own: Candidate, channel: Channel) -> None:
        self.avahi, self.terms, self.own, self.channel = avahi, terms, own, channel
        self._part = JobPart(since=unix_time())
        self.txt = encode_record(terms, own, self._part)
        self._stack = contextlib.AsyncExitStack()
        self._publication: Publication | None = None
        self._sightings: Sightings | None = None
        self._again: asyncio.Future[None] | None = None

    async def enter(self, prefer: Sequence[int]) -> None:
        """Publish and watch; ``prefer``: interfaces, best first. Raises BusError where Avahi refuses.

        An avahi-daemon that is overwhelmed is asked again for as long as it is; people are told.
        """
        try:
            await self._enter(prefer)
        except DeadlineExceeded as error:
            self.channel.tell(f"{error.message}: trying again")
            self._again = asyncio.ensure_future(self._enter_later(prefer))

    async def leave(self) -> None:
        """Withdraw our record and watch no more."""
        if self._again is not None:
            self._again.cancel()
            await asyncio.gather(self._again, return_exceptions=True)
        await self._stack.aclose()

    def show(self, formed: steps.Round | None, epoch: int, leader: str) -> None:
        """Change what our record says: this round runs here, or (None) we wait for one.

        It is for people, as is the time of day in it. ``epoch``, ``leader``: as we know them where we wait.
        """
        before = self._part
        if formed is None:
            part = JobPart(epoch=epoch, leader=leader, began=before.began, restarts=before.restarts)
        else:
            part = JobPart(
                running=True,
                epoch=formed.token.epoch,
                leader=formed.leader.host,
                leader_id=formed.token.leader,
                rank=formed.rank,
                size=len(formed.seats),
                began=before.began or unix_time(),
                restarts=before.restarts + (before.began is not None),
            )
        self._part = replace(part, since=unix_time())
        self.txt = encode_record(self.terms, self.own, self._part)
        if self._publication is not None:
            self._publication.update(self.txt)

    @property
    def crowded(self) -> bool:
        """Whether Avahi knows of more records of jobs than a LAN has, or is too busy to tell."""
        return self._sightings is None or self._sightings.crowded

    def failed(self, id: str) -> None:
        """The agreement could not reach a candidate."""
        if self._sightings is not None:
            self._sightings.failed(id)

    async def _enter_later(self, prefer: Sequence[int]) -> None:
        while self._sightings is None:
            await asyncio.sleep(AGAIN_S)
            with contextlib.suppress(BusError):
                await self._enter(prefer)

    async def _enter(self, prefer: Sequence[int]) -> None:
        label = f"{self.own.host.encode()[: NAME_MAX - 17].decode(errors='ignore')}-{self.own.id}"
        async with contextlib.AsyncExitStack() as stack:
            publication = Publication(self.avahi, JOB_SERVICE, label, self.own.port, self.txt)
            await stack.enter_async_context(publication)
            browser = Browser(self.avahi, JOB_SERVICE, prefer=prefer)
            await stack.enter_async_context(browser)
            self._publication = publication
            self._sightings = Sightings(browser, self.terms, self.channel)
            watch = asyncio.ensure_future(self._sightings.watch())
            stack.callback(watch.cancel)
            self._stack = stack.pop_all()
