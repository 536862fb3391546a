"""The other nodes' records on the LAN, as they come, go and move: what Avahi tells the agreement."""

from __future__ import annotations

import asyncio
import contextlib

from avahi_gpu.avahi.browse import Appeared, Browser
from avahi_gpu.errors import BusError
from avahi_gpu.model import Service
from avahi_gpu.rendezvous.channel import Channel
from avahi_gpu.rendezvous.record import candidate_from, cluster_apart, describe_apart, host_of
from avahi_gpu.rendezvous.scout import CROWD_TOLD, Scout
from avahi_gpu.rendezvous.terms import Terms


class Sightings:
    """The records of one job but our own."""

    def __init__(self, browser: Browser, terms: Terms, channel: Channel) -> None:
        self._browser, self._terms, self._own = browser, terms, channel.us.id
        self._channel = channel
        self._ids: dict[str, str] = {}  # by the record's name
        self._scout = Scout(channel, self._ask_again)
        self._tasks: set[asyncio.Future[None]] = set()

    async def watch(self) -> None:
        """Tell of every record that appears, changes or goes, for ever."""
        try:
            await self._watch()
        finally:
            self._scout.close()
            for task in self._tasks:
                task.cancel()

    async def _watch(self) -> None:
        async for event in self._browser:
            if isinstance(event, Appeared):
                self._compare_cluster(event.service)
                candidate = candidate_from(event.service, self._terms)
                if candidate is not None and candidate.id != self._own:
                    self._ids[event.service.name] = candidate.id
                    self._scout.seen(event.service.name, candidate)
            elif event.name in self._ids:
                del self._ids[event.name]
                self._scout.unseen(event.name)

    def _compare_cluster(self, service: Service) -> None:
        """Whoever waits for a node should know where that node was set up for another cluster."""
        cluster = cluster_apart(service, self._terms)
        if cluster and not service.own:
            text = describe_apart(service, cluster, self._terms)
            self._channel.exclude(service.address, host_of(service), text, "other-cluster")

    @property
    def crowded(self) -> bool:
        """Whether there are more records of jobs than a LAN has, resolved or not."""
        return len(self._browser.services) + len(self._browser.unresolved) >= CROWD_TOLD

    def failed(self, id: str) -> None:
        """The agreement could not reach a candidate."""
        self._scout.failed(id)
        self._ask_again(id)

    def _ask_again(self, id: str) -> None:
        task: asyncio.Future[None] = asyncio.ensure_future(self._find_again(id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _find_again(self, id: str) -> None:
        """Nobody answers where a candidate was: ask Avahi anew, which tells nobody of changed addresses."""
        for name in [name for name, known in self._ids.items() if known == id]:
            with contextlib.suppress(BusError):
                await self._browser.resolve(name)  # what is new comes as an event
