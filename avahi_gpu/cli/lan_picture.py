"""``avahi-gpu peers --format svg``: the LAN as a picture."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from avahi_gpu.model import Interface, Job, Peer
from avahi_gpu.render.lan import draw_lan
from avahi_gpu.result import Result


async def picture(look: Awaitable[tuple[list[Peer], Result]], cluster: str | None) -> tuple[str, Result]:
    """Return the picture of the nodes that ``look`` finds, with their jobs. Raises a BusError.

    ``cluster``: whose jobs are shown; None: all.
    """
    (peers, result), (jobs, interfaces) = await asyncio.gather(look, _look_for_jobs())
    shown = [job for job in jobs if cluster in (None, job.cluster)]
    return draw_lan(peers, shown, interfaces), result


async def _look_for_jobs() -> tuple[tuple[Job, ...], tuple[Interface, ...]]:
    from avahi_gpu.avahi.bus import connect
    from avahi_gpu.host.jobs import look_for_jobs
    from avahi_gpu.host.net import read_interfaces

    async with connect() as avahi:
        interfaces = await asyncio.to_thread(read_interfaces)
        return await look_for_jobs(avahi, interfaces), interfaces
