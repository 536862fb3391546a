"""The nodes of the LAN, watched: who comes and goes, by Avahi; who is alive, by asking; what changes here."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from types import TracebackType

from avahi_gpu.avahi.browse import RETRY_S, SETTLE_S, Appeared, Browser, Left
from avahi_gpu.avahi.bus import Avahi
from avahi_gpu.errors import BusError
from avahi_gpu.host.aside import aside
from avahi_gpu.host.jobs import JobWatch
from avahi_gpu.host.net import lan_interfaces, may_be_asked, read_interfaces, route_source
from avahi_gpu.host.news import News
from avahi_gpu.host.peers import Sighting, make_peers
from avahi_gpu.host.pulse import Beat, Pulse, Target
from avahi_gpu.host.system import System
from avahi_gpu.host.vram import FreeMemory
from avahi_gpu.model import DOMAIN, NODE_SERVICE, Interface, Peer, Seat, Service, Watched, WatchEvent

# Avahi tells nobody that a node has a new address: who is silent is looked up again, ever more seldom
LOOK_AGAIN_S = (1.0, 2.0, 4.0, 8.0, 15.0)
LOOKED_UP_AT_ONCE = 8
NOTES_AT_MOST = 64  # of which nobody took notice yet


class Watch:
    """An async context manager. ``nodes()`` tells the state at any time, ``notes()`` what happened here.

    Entering it raises a BusError where Avahi is not there; later it may come and go.
    """

    def __init__(self, avahi: Avahi, interfaces: Sequence[Interface]) -> None:
        self._avahi = avahi
        self._interfaces = tuple(interfaces)
        prefer = [i.index for i in lan_interfaces(interfaces)]
        self._browser = Browser(avahi, NODE_SERVICE, prefer=prefer)
        self._jobs = JobWatch(avahi, interfaces, tell=self.wake)
        self._services: dict[str, Service] = {}
        self._adrift: set[str] = set()  # Avahi lost them with our own network: not a word that they have left
        self._dead: set[str] = set()
        self._pulse = Pulse(self.wake)
        self._memory = FreeMemory()
        self._notes: list[WatchEvent] = []
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._lookups: dict[str, asyncio.Task[None]] = {}
        self._lookup_turns = asyncio.Semaphore(LOOKED_UP_AT_ONCE)
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Watch:
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(self._browser)
            await stack.enter_async_context(self._jobs)
            await stack.enter_async_context(self._pulse)
            stack.enter_context(self._memory)
            stack.push_async_callback(self._end_tasks)
            for work in (self._follow_nodes, self._follow_network, self._follow_avahi):
                self._tasks.append(asyncio.get_running_loop().create_task(work()))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    async def _end_tasks(self) -> None:
        tasks = [*self._tasks, *self._lookups.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- what is seen ------------------------------------------------------------------------------------

    @property
    def hears(self) -> bool:
        """Whether avahi-daemon is there: without it nobody new is seen."""
        return self._avahi.on_bus

    def nodes(self) -> list[Watched]:
        """Return who is seen now, in natural order of names."""
        self._follow_targets()
        now = asyncio.get_running_loop().time()
        names = {i.index: i.name for i in self._interfaces}
        sightings = [Sighting(s, self._alive(s), probed=True) for s in self._services.values()]
        peers = make_peers(sightings, self._browser.unresolved, names)
        seats = self._seats_by_host()
        return [self._watched(peer, now, seats) for peer in peers]

    def notes(self) -> list[WatchEvent]:
        """Return what happened to this machine's Avahi and network since the last call."""
        notes, self._notes = self._notes, []
        return notes

    def wake(self) -> None:
        """End a ``change`` that waits."""
        self._changed.set()

    async def change(self, within_s: float) -> bool:
        """Wait until something has changed since the last call; False where nothing does in time."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._changed.wait(), max(0.0, within_s))
        changed = self._changed.is_set()
        self._changed.clear()
        return changed

    def _alive(self, service: Service) -> bool | None:
        if service.own:
            return True
        beat = self._beat(service)
        alive = beat.alive if beat is not None else None
        if alive is None and service.name in self._dead:
            return False  # it has moved, and has not answered there yet
        if alive is False:
            self._dead.add(service.name)
        else:
            self._dead.discard(service.name)
        return alive

    def _beat(self, service: Service) -> Beat | None:
        return self._pulse.beat(target_of(service))

    def _watched(self, peer: Peer, now: float, seats: dict[str, list[Seat]]) -> Watched:
        service = self._services.get(peer.name)
        speed = next((i.speed_mbit for i in self._interfaces if i.name == peer.interface), None)
        own = tuple(seats.get(bare_host(peer.host), ()))
        if peer.self:
            return Watched(peer, None, 0.0, speed, self._memory.free_mib, own)
        beat = self._beat(service) if service is not None else None
        if beat is None:
            return Watched(peer, speed_mbit=speed, seats=own, asked=False)
        silent_s = None if beat.heard_at is None else now - beat.heard_at
        return Watched(peer, beat.rtt_s, silent_s, speed, None, own)

    def _seats_by_host(self) -> dict[str, list[Seat]]:
        found: dict[str, list[Seat]] = {}
        for node in self._jobs.nodes():
            part = node.part
            seat = Seat(node.job, part.rank, part.size) if part.running else Seat(node.job)
            found.setdefault(bare_host(node.host), []).append(seat)
        return {host: sorted(seats, key=lambda s: s.job) for host, seats in found.items()}

    def _note(self, kind: str, lines: Iterable[str]) -> None:
        self._notes += [WatchEvent("avahi" if kind == "avahi" else "network", line) for line in lines]
        del self._notes[:-NOTES_AT_MOST]
        self.wake()

    # --- asking ------------------------------------------------------------------------------------------

    def _follow_targets(self) -> None:
        others = [s for s in self._services.values() if not s.own and may_be_asked(s.address)]
        self._pulse.follow(map(target_of, others))
        silent = {s.name for s in others if self._alive(s) is False}
        for name in [n for n in self._lookups if n not in silent]:
            self._lookups.pop(name).cancel()
        for name in silent - self._lookups.keys():
            self._lookups[name] = asyncio.get_running_loop().create_task(self._look_up(name))

    async def _look_up(self, name: str) -> None:
        """Ask Avahi where a silent node is now, until it answers."""
        for wait_s in chain(LOOK_AGAIN_S, repeat(LOOK_AGAIN_S[-1])):
            async with self._lookup_turns:
                with contextlib.suppress(BusError):
                    await self._browser.resolve(name)
            await asyncio.sleep(wait_s)

    # --- what happens ------------------------------------------------------------------------------------

    async def _follow_nodes(self) -> None:
        async for event in self._browser:
            if isinstance(event, Appeared):
                self._services[event.service.name] = event.service
                self._adrift.discard(event.service.name)
            elif isinstance(event, Left):
                service = self._services.get(event.name)
                if service is not None and await aside(is_cut_off, service):
                    self._adrift.add(event.name)
                else:
                    self._drop(event.name)
            self.wake()

    async def _follow_avahi(self) -> None:
        there, generation = self._avahi.on_bus, self._avahi.generation
        while True:
            await self._avahi.news()
            if not self._avahi.on_bus and there:
                self._note("avahi", ["avahi-daemon has gone: nobody new is seen until it is back"])
            elif self._avahi.on_bus and not there:
                self._note("avahi", ["avahi-daemon is back"])
            elif self._avahi.on_bus and generation != self._avahi.generation:
                self._note("avahi", ["avahi-daemon was restarted"])
            there, generation = self._avahi.on_bus, self._avahi.generation

    async def _follow_network(self) -> None:
        with News() as news:
            while True:
                await news.wait()
                before = self._interfaces
                with contextlib.suppress(OSError):
                    self._interfaces = await aside(read_interfaces)
                lines = describe_change(before, self._interfaces)
                if not lines:
                    continue
                prefer = [i.index for i in lan_interfaces(self._interfaces)]
                self._browser.prefer(prefer)
                self._note("network", lines)
                self._tasks.append(asyncio.get_running_loop().create_task(self._settle()))
                self._tasks = [t for t in self._tasks if not t.done()]

    async def _settle(self) -> None:
        """After a change of the network: learn our own new address; whoever stays away has left."""
        for wait_s in (RETRY_S, SETTLE_S - RETRY_S):
            await asyncio.sleep(wait_s)
            for service in [s for s in self._services.values() if s.own]:
                with contextlib.suppress(BusError):
                    await self._browser.resolve(service.name)
        for name in list(self._adrift):
            lost = self._services.get(name)
            if lost is not None and not await aside(is_cut_off, lost) and name in self._adrift:
                self._drop(name)
        self.wake()

    def _drop(self, name: str) -> None:
        self._services.pop(name, None)
        self._adrift.discard(name)
        self._dead.discard(name)


def target_of(service: Service) -> Target:
    """Return where a service's node is asked."""
    scoped = service.protocol == 6 and ipaddress.ip_address(service.address).is_link_local
    return Target(service.address, service.interface if scoped else 0, service.port)


def bare_host(host: str) -> str:
    """Return ``gpu-node-2`` of ``gpu-node-2.local``, in small letters."""
    return host.rstrip(".").removesuffix(f".{DOMAIN}").lower()


def is_cut_off(service: Service) -> bool:
    """Return whether this machine itself has lost the network on which it saw the service."""
    try:
        name = socket.if_indextoname(service.interface)
    except OSError:
        return True
    carrier = System().read(f"/sys/class/net/{name}/carrier").content
    return (carrier or b"").strip() != b"1" or route_source(service.address) is None


def describe_change(before: Sequence[Interface], now: Sequence[Interface]) -> list[str]:
    """Return what has changed for mDNS, one sentence each; tunnels and what containers bring say nothing."""
    old = {i.name: i for i in before if i.link in ("wired", "wireless")}
    new = {i.name: i for i in now if i.link in ("wired", "wireless")}
    lines = [f"{name} is gone" for name in old.keys() - new.keys()]
    for name, interface in new.items():
        was = old.get(name)
        if was is None:
            lines.append(f"{name} is there, {_addresses(interface) or 'without an address'}")
        elif was.running != interface.running:
            lines.append(f"{name} {'is connected again' if interface.running else 'has lost its connection'}")
        if was is not None and _addresses(was) != _addresses(interface):
            has = _addresses(interface)
            lines.append(f"{name} has the address {has} now" if has else f"{name} has no address any more")
    return lines


def _addresses(interface: Interface) -> str:
    """Return the addresses that others reach: temporary and link-local IPv6 ones come and go."""
    return ", ".join(a.ip for a in interface.addresses if a.family == 4) or ", ".join(
        a.ip for a in interface.addresses if a.scope == "global"
    )
