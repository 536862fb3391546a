"""Objects that Avahi makes for its clients: browsers, groups of records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from avahi_gpu.avahi.signals import Inbox, Signal

Call = Callable[..., Awaitable[list[Any]]]  # (path, interface, member, signature, *body): Avahi.call


class Remote:
    """An object that Avahi made for us: its calls and signals, until it is freed or its daemon goes."""

    def __init__(self, call: Call, inbox: Inbox, path: str, interface: str) -> None:
        self._call = call
        self._inbox = inbox
        self.path = path
        self.interface = interface

    @property
    def gone(self) -> bool:
        """Whether the daemon that made it has gone, and the object with it."""
        return self._inbox.ended is not None

    async def call(self, member: str, signature: str = "", *body: Any) -> list[Any]:
        """Call a method of the object. Raises a BusError."""
        if self._inbox.ended is not None:  # a new daemon may give its path to another object
            raise self._inbox.ended
        return await self._call(self.path, self.interface, member, signature, *body)

    async def next_signal(self) -> Signal:
        """Wait for the next signal of the object. Raises a BusError once its daemon has gone."""
        return await self._inbox.get()

    def listen(self, path: str) -> None:
        """Take the signals of another path in the same order, those of the server say."""
        self._inbox.listen(path)
