"""The other nodes' records on the LAN, as they come, go and move: what Avahi tells the agreement."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from avahi_gpu.avahi.browse import Appeared, Browser
from avahi_gpu.errors import BusError
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.record import candidate_from
from avahi_gpu.rendezvous.terms import Terms


class Sightings:
    """The records of one job but our own."""

    def __init__(self, browser: Browser, terms: Terms, own_id: str) -> None:
        self._browser, self._terms, self._own = browser, terms, own_id
        self._ids: dict[str, str] = {}  # by the record's name

    async def watch(self, feed: Callable[[steps.Event], None]) -> None:
        """Tell of every record that appears, changes or goes, for ever."""
        async for event in self._browser:
            if isinstance(event, Appeared):
                candidate = candidate_from(event.service, self._terms)
                if candidate is not None and candidate.id != self._own:
                    self._ids[event.service.name] = candidate.id
                    feed(steps.Seen(candidate))
            elif event.name in self._ids:
                feed(steps.Unseen(self._ids.pop(event.name)))

    async def find_again(self, id: str) -> None:
        """Nobody answers where a candidate was: ask Avahi anew, which tells nobody of changed addresses."""
        for name in [name for name, known in self._ids.items() if known == id]:
            with contextlib.suppress(BusError):
                await self._browser.resolve(name)  # what is new comes as an event
