"""What avahi-daemon answers about this very host: what it announces where, and its own address."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from avahi_gpu.avahi.bus import Avahi
from avahi_gpu.avahi.names import ANY, IPV4, IPV6, RESULT_LOCAL, SERVER_PATH
from avahi_gpu.errors import AvahiCallFailed, BusError
from avahi_gpu.model import DOMAIN, Announcement, OwnRecords

OWN_NAME_S = 1.5  # it comes from the daemon's memory in a millisecond, or after five seconds not at all
QUIET_S = 0.05  # own services come together
CLAIM_S = 1.5  # claiming the name on a card that has just come takes 0.8 s; the rest is for a busy machine
CLAIM_AGAIN_S = 0.4


async def read_own(
    avahi: Avahi,
    types: Sequence[str],
    expected: Iterable[tuple[str, str]],
    within_s: float,
    *,
    with_ipv4: bool,
    lan: Collection[int] = (),
) -> OwnRecords:
    """Ask for this host's own records.

    ``types`` are browsed until every one of ``expected`` (instance name, type) was seen, ``within_s`` at
    most. ``with_ipv4``: this host has such an address to be told. ``lan``: the indexes of the interfaces one
    of which is expected to be told; it is asked again where another one is. Raises what ``Avahi.call`` does.
    """
    address, found = await asyncio.gather(
        _settled_address(avahi, lan, with_ipv4=with_ipv4),
        _own_services(avahi, types, set(expected), within_s),
    )
    return OwnRecords(tuple(found), tuple(types), *address)


async def _settled_address(
    avahi: Avahi, lan: Collection[int], *, with_ipv4: bool
) -> tuple[str | None, int | None]:
    """Return the own address; until the name is claimed on the LAN's card another one's is told."""
    loop = asyncio.get_running_loop()
    end = loop.time() + CLAIM_S
    while True:
        address, interface = await _own_address(avahi, with_ipv4=with_ipv4)
        if not lan or interface in lan or loop.time() > end:
            return address, interface
        await asyncio.sleep(CLAIM_AGAIN_S)


async def _own_address(avahi: Avahi, *, with_ipv4: bool) -> tuple[str | None, int | None]:
    """Resolve the own name as any program is told it: on whatever interface."""
    name = await avahi.host_fqdn()
    for family in (IPV4, IPV6) if with_ipv4 else (IPV6,):
        try:
            question = ("iisiu", ANY, ANY, name, family, 0)
            answer = await avahi.call(
                SERVER_PATH, "Server", "ResolveHostName", *question, within_s=OWN_NAME_S
            )
        except BusError:
            continue
        return str(answer[4]), int(answer[0])
    return None, None


async def _own_services(
    avahi: Avahi, types: Sequence[str], expected: set[tuple[str, str]], within_s: float
) -> list[Announcement]:
    found: dict[Announcement, None] = {}
    loop = asyncio.get_running_loop()
    end = loop.time() + within_s
    missing = {(name.lower(), kind.lower()) for name, kind in expected}

    async def browse(kind: str) -> None:
        arguments = ("iissu", ANY, ANY, kind, DOMAIN, 0)
        async with avahi.make("ServiceBrowser", "ServiceBrowserNew", *arguments) as remote:
            while True:
                signal = await remote.next_signal()
                if signal.member == "ItemNew" and signal.body[5] & RESULT_LOCAL:
                    interface, protocol, name, told, *_ = signal.body
                    version: Literal[4, 6] = 4 if protocol == IPV4 else 6
                    found[Announcement(int(interface), version, str(name), str(told))] = None
                    missing.discard((str(name).lower(), str(told).lower()))

    tasks = [asyncio.ensure_future(_quietly(browse(kind))) for kind in types]
    try:
        while loop.time() < end:
            before = len(found)
            await asyncio.sleep(QUIET_S)
            if not missing and len(found) == before:
                break
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return list(found)


async def _quietly(work: object) -> None:
    try:
        await work  # type: ignore[misc]
    except AvahiCallFailed:  # a type that Avahi does not take: its file is judged elsewhere
        return
