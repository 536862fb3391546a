"""What Avahi tells about this machine and the others, and what glibc makes of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from avahi_gpu.avahi.browse import Browser, Listing, browse
from avahi_gpu.avahi.bus import Avahi, connect
from avahi_gpu.avahi.names import SERVER_REGISTERING, avahi_missing
from avahi_gpu.errors import BusError, BusUnavailable
from avahi_gpu.files import txt
from avahi_gpu.host import net, nss
from avahi_gpu.host.aside import aside
from avahi_gpu.host.system import System
from avahi_gpu.model import NODE_SERVICE, DaemonState, Interface, Lookup, PeerFacts, Service

SETTLE_S = 3.0  # claiming a host name takes 1 s, after a conflict 2 s: "registering" is then a fact
OWN_SERVICE_S = 0.6  # our own service comes from the daemon's memory in a millisecond, or not at all
PROBE_S = 1.5  # a connection within a LAN takes a millisecond; one lost packet costs a second
LOOKUPS_AT_ONCE = 8  # each is a process


@dataclass(frozen=True)
class LanFacts:
    """See the fields of the same names in ``model.Facts``."""

    daemon: DaemonState
    own_service: tuple[Service, ...] | None = None
    own_name: Lookup | None = None
    peers: tuple[PeerFacts, ...] | None = None


async def read_lan(
    system: System,
    interfaces: Sequence[Interface],
    told: asyncio.Future[DaemonState],
    *,
    with_peers: bool,
) -> LanFacts:
    """Ask Avahi; never raises for a bus or a daemon that is not there. ``daemon.installed`` is not asked.

    ``told`` gets the daemon's state as soon as it is known: others wait for it alone.
    """
    lan = LanFacts(DaemonState(installed=False, bus_reachable=False))
    try:
        lan = await _read_lan(system, interfaces, told, with_peers=with_peers)
    finally:
        if not told.done():
            told.set_result(lan.daemon)
    return lan


async def _read_lan(
    system: System,
    interfaces: Sequence[Interface],
    told: asyncio.Future[DaemonState],
    *,
    with_peers: bool,
) -> LanFacts:
    try:
        async with connect(need_avahi=False) as avahi:
            daemon = DaemonState(installed=False, bus_reachable=True, on_bus=avahi.on_bus)
            try:
                daemon = await _read_daemon(avahi)
                told.set_result(daemon)
                return await _read_services(avahi, daemon, system, interfaces, with_peers=with_peers)
            except BusError as fault:
                return LanFacts(replace(daemon, bus_error=fault.message))
    except BusUnavailable as fault:
        return LanFacts(DaemonState(installed=False, bus_reachable=False, bus_error=fault.message))


async def _read_daemon(avahi: Avahi) -> DaemonState:
    if not avahi.on_bus:
        raise avahi_missing()
    state = await avahi.server_state()
    if state == SERVER_REGISTERING:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(avahi.running(), SETTLE_S)
        state = await avahi.server_state()
    return DaemonState(
        installed=False,
        bus_reachable=True,
        on_bus=True,
        pid=await avahi.process_id(),
        version=await avahi.version(),
        server_state=state,
        host_name=await avahi.host_name(),
        domain=await avahi.domain(),
    )


async def _read_services(
    avahi: Avahi,
    daemon: DaemonState,
    system: System,
    interfaces: Sequence[Interface],
    *,
    with_peers: bool,
) -> LanFacts:
    own_name = asyncio.ensure_future(aside(nss.lookup, system, f"{daemon.host_name}.{daemon.domain}"))
    try:
        listing = await _list_nodes(avahi, interfaces, with_peers=with_peers)
        peers = await _read_peers(listing, system, interfaces) if with_peers else None
    finally:
        lookup = await own_name
    own = tuple(s for s in listing.services if s.own)
    return LanFacts(daemon, own, lookup, peers)


async def _list_nodes(avahi: Avahi, interfaces: Sequence[Interface], *, with_peers: bool) -> Listing:
    """List the nodes; without peers only as long as it takes to see ourselves."""
    prefer = [i.index for i in net.lan_interfaces(tuple(interfaces))]
    if with_peers:
        return await browse(avahi, NODE_SERVICE, prefer=prefer)
    loop = asyncio.get_running_loop()
    end = loop.time() + OWN_SERVICE_S
    async with Browser(avahi, NODE_SERVICE, prefer=prefer) as browser:
        while not any(s.own for s in browser.services.values()):
            if await browser.next_event(end - loop.time()) is None:
                break
        return Listing(tuple(browser.services.values()), tuple(browser.unresolved))


async def _read_peers(
    listing: Listing, system: System, interfaces: Sequence[Interface]
) -> tuple[PeerFacts, ...]:
    gate = asyncio.Semaphore(LOOKUPS_AT_ONCE)
    others = [s for s in listing.services if not s.own]
    resolved = await asyncio.gather(*(_read_peer(s, system, interfaces, gate) for s in others))
    lost = [
        PeerFacts(name, "", None, None, resolve_error="nobody answers for that name")
        for name in listing.unresolved
    ]
    return tuple(sorted((*resolved, *lost), key=lambda peer: peer.name))


async def _read_peer(
    service: Service, system: System, interfaces: Sequence[Interface], gate: asyncio.Semaphore
) -> PeerFacts:
    async def look_up() -> Lookup:
        async with gate:
            return await aside(nss.lookup, system, service.host)

    index = {i.index: i.name for i in interfaces}
    interface = index.get(service.interface)
    address = service.address
    if address.startswith("fe80:") and interface is not None:
        address = f"{address}%{interface}"
    alive, lookup = await asyncio.gather(net.probe(address, service.port, PROBE_S), look_up())
    told = txt.read(service.txt)
    return PeerFacts(
        service.name,
        service.host,
        service.address,
        interface,
        glibc=lookup,
        alive=alive,
        id=told.id,
        port=service.port,
        versions=told.versions,
    )
