"""``doctor --serve SECONDS``: be there for the doctors of the other nodes, for a while."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from avahi_gpu.host.system import System
from avahi_gpu.rendezvous.seek import find_address
from avahi_gpu.survey.service import Service
from avahi_gpu.survey.station import Station, station

OFFER_AFTER_S = 2.0  # an asker that can reach us does so within a second
OFFER_AGAIN_S = 5.0
OFFERS_MAX = 3  # to one asker
ASKERS_MAX = 16  # that we have offered ourselves to: more is somebody publishing them by the hundred
NEWS_S = 0.5


async def serve(
    system: System,
    seconds: float,
    *,
    python: str | None,
    peers: Sequence[str],
    tell: Callable[[str], None],
) -> int:
    """Answer for ``seconds``; return how many askers were answered. Raises AvahiGpuError."""
    async with contextlib.AsyncExitStack() as stack:
        here = await stack.enter_async_context(station(system, python))
        found = await asyncio.gather(*(find_address(p, here.avahi) for p in peers))
        named = frozenset(a for a in found if a is not None)
        service = Service(here.witness, here.us, lambda: here.seen | named, tell)
        port = await service.open()
        stack.push_async_callback(service.close)
        await here.appear(stack, "answers", port)
        for line in _introduction(here, port, seconds):
            tell(line)
        await _stay(here, service, seconds)
        return service.served


def _introduction(here: Station, port: int, seconds: float) -> list[str]:
    key = here.us.key
    lines = [
        f"{here.us.host} answers `avahi-gpu doctor --cluster` of the other nodes for {seconds:g} s, "
        f"on port {port}; Ctrl-C ends it sooner"
    ]
    if key is not None:
        lines.append(f"only to who holds the cluster key {key.fingerprint}")
    else:
        lines.append(
            "without a cluster key whoever is on this LAN may ask it: `avahi-gpu key new` changes that"
        )
    if here.trouble:
        lines.append(f"not announced ({here.trouble}): ask with --cluster --peers and its address")
    return lines


async def _stay(here: Station, service: Service, seconds: float) -> None:
    """Offer ourselves to askers who do not come by themselves, until the time is over."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    next_offer: dict[str, float] = {}
    offers: dict[str, int] = {}
    tasks: set[asyncio.Task[None]] = set()
    try:
        while (now := loop.time()) < end:
            for doctor in here.doctors:
                if doctor.role != "asks" or service.knows(doctor.id):
                    continue
                if doctor.id not in next_offer:
                    if len(next_offer) < ASKERS_MAX:
                        next_offer[doctor.id] = now + OFFER_AFTER_S
                elif now >= next_offer[doctor.id] and offers.get(doctor.id, 0) < OFFERS_MAX:
                    next_offer[doctor.id] = now + OFFER_AGAIN_S
                    offers[doctor.id] = offers.get(doctor.id, 0) + 1
                    task = asyncio.ensure_future(service.offer(doctor.address, doctor.port))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
            await here.wait_for_news(min(NEWS_S, end - now))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
