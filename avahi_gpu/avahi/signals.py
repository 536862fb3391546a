"""Signals of Avahi's objects, sorted by object path; no bus in here.

A signal may be read before the reply that names its path: signals of paths that nobody listens to yet wait.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from avahi_gpu.errors import BusError

CLIENT_PREFIX = "/Client"  # the paths of the objects that Avahi makes for a client
EARLY_PATHS = 64  # paths with waiting signals; objects freed meanwhile leave theirs behind, the oldest go
EARLY_SIGNALS = 8192  # of one path: more than a daemon's whole cache (4096 entries, two protocols)


@dataclass(frozen=True)
class Signal:
    """One signal, as it came."""

    path: str
    member: str
    body: list[Any]


class Inbox:
    """The signals of some paths in the order of the bus, until the daemon behind them goes."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._queue: asyncio.Queue[Signal | BusError] = asyncio.Queue()
        self.ended: BusError | None = None

    def listen(self, path: str) -> None:
        """Take the signals of ``path`` from now on, the waiting ones first."""
        self._router.route(path, self)

    async def get(self) -> Signal:
        """Return the next signal. Raises the error that ended the inbox, once that is all there is."""
        if self.ended is not None and self._queue.empty():
            raise self.ended
        item = await self._queue.get()
        if isinstance(item, Signal):
            return item
        raise item

    def put(self, signal: Signal) -> None:
        """Add a signal; one that comes after the end is dropped."""
        if self.ended is None:
            self._queue.put_nowait(signal)

    def end(self, error: BusError) -> None:
        """Close the inbox: ``get`` raises ``error`` after what has come."""
        if self.ended is None:
            self.ended = error
            self._queue.put_nowait(error)

    def close(self) -> None:
        """Stop listening."""
        self._router.forget(self)


class Router:
    """Carries each signal to the inboxes that listen to its path."""

    def __init__(self) -> None:
        self._routes: dict[str, list[Inbox]] = {}
        self._early: OrderedDict[str, list[Signal]] = OrderedDict()

    def route(self, path: str, inbox: Inbox) -> None:
        """Send the signals of ``path`` to ``inbox`` too."""
        for signal in self._early.pop(path, ()):
            inbox.put(signal)
        self._routes.setdefault(path, []).append(inbox)

    def deliver(self, signal: Signal) -> None:
        """Hand ``signal`` to its listeners, or keep it for one who is about to listen."""
        inboxes = self._routes.get(signal.path)
        if inboxes:
            for inbox in inboxes:
                inbox.put(signal)
        elif signal.path.startswith(CLIENT_PREFIX):
            waiting = self._early.setdefault(signal.path, [])
            if len(waiting) < EARLY_SIGNALS:
                waiting.append(signal)
            while len(self._early) > EARLY_PATHS:
                self._early.popitem(last=False)

    def forget(self, inbox: Inbox) -> None:
        """Send nothing to ``inbox`` any more."""
        for path, inboxes in list(self._routes.items()):
            if inbox in inboxes:
                inboxes.remove(inbox)
            if not inboxes:
                del self._routes[path]

    def end_all(self, error: BusError) -> None:
        """The daemon has gone and its paths with it: a new one counts from zero again."""
        inboxes = {id(i): i for listeners in self._routes.values() for i in listeners}
        self._routes.clear()
        self._early.clear()
        for inbox in inboxes.values():
            inbox.end(error)
