"""A short look at who is announced now, for whoever cannot wait: a shell that completes a word."""

from __future__ import annotations

import asyncio
import contextlib

from avahi_gpu.avahi.browse import Browser, Listing
from avahi_gpu.avahi.bus import connect

QUIET_S = 0.15  # answers to one question are spread over 0.1 s (RFC 6762 section 6)
STEP_S = 0.02


async def glance(type: str, within_s: float, *, enough: int) -> Listing:
    """Return who is seen within ``within_s`` seconds, nobody where Avahi does not answer in that time.

    It ends sooner where ``enough`` are there and no other comes for a moment. Raises a BusError.
    """
    with contextlib.suppress(asyncio.TimeoutError):
        # the look ends by itself; this is for a bus that is there and says nothing
        return await asyncio.wait_for(_look(type, within_s, enough), 2 * within_s)
    return Listing((), ())


async def _look(type: str, within_s: float, enough: int) -> Listing:
    loop = asyncio.get_running_loop()
    end = loop.time() + within_s
    async with connect() as avahi, Browser(avahi, type) as browser:
        seen, quiet_from = 0, loop.time()
        while (now := loop.time()) < end:
            there = len({*browser.services, *browser.unresolved})
            if there != seen:
                seen, quiet_from = there, now
            elif seen >= enough and now - quiet_from >= QUIET_S:
                break
            await browser.next_event(STEP_S)
        return Listing(tuple(browser.services.values()), tuple(browser.unresolved))
