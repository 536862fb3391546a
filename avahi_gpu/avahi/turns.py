"""So many at once, and whoever comes last is served before those who wait."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator


class Turns:
    """Lets ``limit`` tasks in at a time; of those who wait, the newest and the oldest by turns.

    Where somebody has published thousands of records, the one of a node that starts now is the newest of
    all; a queue would come to it last. That the oldest have every second turn keeps anybody from waiting
    for ever.
    """

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._waiting: dict[asyncio.Future[None], None] = {}  # in the order of their coming
        self._newest = True  # whose turn is next

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn, which lasts as long as the block."""
        if self._free > 0:
            self._free -= 1
        else:
            await self._wait()
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[turn] = None
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was ours already
                self._pass_on()
            self._waiting.pop(turn, None)
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            turn = next(reversed(self._waiting) if self._newest else iter(self._waiting))
            del self._waiting[turn]
            if not turn.done():
                self._newest = not self._newest
                turn.set_result(None)
                return
        self._free += 1
