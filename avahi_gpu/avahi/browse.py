"""Finding service instances: one-shot with a stop rule, or watched for as long as a job runs.

The timings rest on Avahi 0.8: the first query leaves 100 ms after the start, answers arrive by 220 ms, the
next queries follow 1.1, 3.1 and 7.1 s after the start.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from types import TracebackType

from avahi_gpu.avahi.bus import Avahi
from avahi_gpu.avahi.names import ANY, IPV4, IPV6, RESULT_LOCAL, SERVER_PATH, UNKNOWN_METHOD, avahi_missing
from avahi_gpu.avahi.places import Place, Places, is_final
from avahi_gpu.avahi.remote import Remote
from avahi_gpu.avahi.signals import Signal
from avahi_gpu.avahi.turns import Turns
from avahi_gpu.errors import AvahiCallFailed, AvahiUnavailable, BusError, ResolveTimeout
from avahi_gpu.model import DOMAIN, Service

RELIABLE_S = 1.35  # two queries and their answers: 18 of 20 peers with 30 % of packets lost
RESOLVE_TIMEOUT_S = 6.0  # Avahi itself gives up after 5 s
RESOLVE_GRACE_S = 1.0  # an instance seen just before the end is still resolved: mostly in 1 ms
BETTER_PLACE_S = 0.12  # an announcement over IPv6 or loopback waits that long for the one over IPv4
SETTLE_S = 5.0  # after a restart of the daemon: three queries; who has not answered by then has left
RETRY_S = 1.0  # between two attempts at what failed: the daemon may be starting
RESOLVES_AT_ONCE = 64  # the system bus allows 128 unanswered calls of one connection
MAX_TXT_BYTES = 4096  # of one service; ours have 1000 at most


@dataclass(frozen=True)
class Appeared:
    """An instance was resolved, or resolved to something new."""

    service: Service


@dataclass(frozen=True)
class Left:
    """An instance has gone. That it has not is no proof of life: see facts on power cuts."""

    name: str


Event = Appeared | Left


@dataclass(frozen=True)
class Listing:
    """What a one-shot browse saw: resolved instances, and names that nobody answered for."""

    services: tuple[Service, ...]
    unresolved: tuple[str, ...]


async def browse(
    avahi: Avahi,
    type: str,
    *,
    expect: int | None = None,
    within_s: float = RELIABLE_S,
    prefer: Sequence[int] = (),
) -> Listing:
    """List the instances of ``type``: until ``expect`` distinct ones are resolved, at most ``within_s``.

    What was seen but is not resolved then has one second more. ``prefer`` orders interfaces, best first.
    Raises a BusError.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + within_s
    async with Browser(avahi, type, prefer=prefer) as browser:
        while expect is None or len(browser.services) < expect:
            if await browser.next_event(end - loop.time()) is None:
                break
        enough = expect is not None and len(browser.services) >= expect
        grace_end = loop.time() + (0 if enough else RESOLVE_GRACE_S)
        while browser.unresolved and await browser.next_event(grace_end - loop.time()) is not None:
            pass
        if not avahi.on_bus:
            raise avahi_missing()
        return Listing(tuple(browser.services.values()), tuple(browser.unresolved))


async def resolve_host(avahi: Avahi, name: str, interface: int = ANY, *, family: int = 4) -> tuple[str, int]:
    """Return ``(address, interface index)`` of the host ``name`` (``gpu-node-2.local``) as Avahi knows it.

    Raises ResolveTimeout and other BusErrors. Our own name may come with a loopback address: give the
    interface then.
    """
    answer = await avahi.call(
        SERVER_PATH,
        "Server",
        "ResolveHostName",
        "iisiu",
        interface,
        ANY,
        name,
        IPV4 if family == 4 else IPV6,
        0,
        within_s=RESOLVE_TIMEOUT_S,
        what=f"for the host {name}",
    )
    return str(answer[4]), int(answer[0])


class Browser:
    """Watches the instances of one type; an async context manager and an endless iterator of events.

    ``services`` and ``unresolved`` tell the state as of the events taken so far. A restart of avahi-daemon
    takes nobody away by itself: who is not seen again ``SETTLE_S`` after it has left. The first start raises
    a BusError where it fails; later ones are tried again for as long as it takes.
    """

    def __init__(self, avahi: Avahi, type: str, *, prefer: Sequence[int] = ()) -> None:
        self._avahi = avahi
        self.type = type
        self.services: dict[str, Service] = {}
        self._places = Places(prefer)
        self._known: dict[str, Service] = {}  # as last told; runs ahead of ``services`` by the queue
        self._unconfirmed: set[str] = set()  # known before a restart, not seen since
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._resolving: dict[str, asyncio.Task[None]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}  # waiting for a better place to resolve at
        self._turns = Turns(RESOLVES_AT_ONCE)
        self._watch: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Browser:
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watch = asyncio.get_running_loop().create_task(self._run(ready))
        try:
            await ready
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self._stop()

    async def _stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        tasks = list(self._resolving.values())
        if self._watch is not None:
            tasks.append(self._watch)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        return self._apply(await self._events.get())

    async def next_event(self, within_s: float) -> Event | None:
        """Return the next event, None where none comes in time."""
        with contextlib.suppress(asyncio.QueueEmpty):
            return self._apply(self._events.get_nowait())
        if within_s <= 0:
            return None
        waiting = asyncio.ensure_future(self._events.get())
        try:
            done, _ = await asyncio.wait({waiting}, timeout=within_s)
        finally:
            if not waiting.done():
                waiting.cancel()
        return self._apply(waiting.result()) if done else None

    @property
    def unresolved(self) -> list[str]:
        """Names that are announced and not resolved."""
        return [name for name in self._places.names() if name not in self._known]

    def prefer(self, indexes: Sequence[int]) -> None:
        """Order the interfaces anew, best first, for whoever is resolved from now on."""
        self._places.prefer(indexes)

    async def resolve(self, name: str) -> Service:
        """Ask Avahi anew for ``name`` where it was seen last, trying its other places too.

        Avahi tells nobody of changed addresses: ask where a peer does not answer. Raises ResolveTimeout where
        nobody answers (which does not prove that it is down) or the name is not announced.
        """
        failure: BusError = ResolveTimeout("", f"{name} is not announced on this LAN", "is it running?")
        for place in self._places.best(name):
            try:
                service = await self._ask(name, place)
            except AvahiCallFailed as error:
                failure = error
                continue
            if name in self._places:
                self._tell(service)
            return service
        raise failure

    # --- watching ----------------------------------------------------------------------------------------

    def _apply(self, event: Event) -> Event:
        if isinstance(event, Appeared):
            self.services[event.service.name] = event.service
        else:
            self.services.pop(event.name, None)
        return event

    async def _run(self, ready: asyncio.Future[None]) -> None:
        """Browse; after a loss of the daemon, again."""
        while await self._browse_until_lost(ready):
            await self._avahi.present()

    async def _browse_until_lost(self, ready: asyncio.Future[None]) -> bool:
        """Browse until the daemon goes; return whether to try again."""
        try:
            async with contextlib.AsyncExitStack() as stack:
                remote = await self._open(stack)
                if not ready.done():
                    ready.set_result(None)
                await self._follow(remote)
        except BusError as error:
            if not ready.done():
                ready.set_exception(error)
                return False
            self._doubt()
            if self._avahi.on_bus:
                # a new daemon is there already, or this one is odd
                await asyncio.sleep(RETRY_S / 10 if isinstance(error, AvahiUnavailable) else RETRY_S)
        return True

    async def _open(self, stack: contextlib.AsyncExitStack) -> Remote:
        arguments = ("iissu", ANY, ANY, self.type, DOMAIN, 0)
        try:
            remote = await stack.enter_async_context(
                self._avahi.make("ServiceBrowser", "ServiceBrowserPrepare", *arguments, server="Server2")
            )
        except AvahiCallFailed as error:
            if error.name != UNKNOWN_METHOD:
                raise
        else:
            await remote.call("Start")  # 0.7 ms to the first signal instead of 10
            return remote
        # Avahi before 0.8 has no Server2
        return await stack.enter_async_context(
            self._avahi.make("ServiceBrowser", "ServiceBrowserNew", *arguments)
        )

    async def _follow(self, remote: Remote) -> None:
        settle = asyncio.get_running_loop().call_later(SETTLE_S, self._settle) if self._unconfirmed else None
        try:
            while True:
                self._take(await remote.next_signal())
        finally:
            if settle is not None:
                settle.cancel()

    def _take(self, signal: Signal) -> None:
        if signal.member == "ItemNew":
            interface, protocol, name, _type, _domain, flags = signal.body
            doubted = name in self._unconfirmed
            self._unconfirmed.discard(name)
            if self._places.add(name, Place(interface, protocol, bool(flags & RESULT_LOCAL))):
                self._start_resolving(name, anew=doubted)
        elif signal.member == "ItemRemove":
            interface, protocol, name = signal.body[:3]
            if name not in self._places:
                return
            if self._places.remove(name, Place(interface, protocol)):
                self._drop(name)
            else:
                self._start_resolving(name)  # perhaps it was the place that we had chosen

    def _doubt(self) -> None:
        """The daemon has gone: nobody is where we saw them, and nobody has left for that."""
        self._places.clear()
        self._unconfirmed = set(self._known)
        for task in self._resolving.values():
            task.cancel()
        for timer in self._timers.values():
            timer.cancel()
        self._resolving.clear()
        self._timers.clear()

    def _settle(self) -> None:
        for name in self._unconfirmed & set(self._known):
            self._drop(name)
        self._unconfirmed.clear()

    def _drop(self, name: str) -> None:
        task, timer = self._resolving.pop(name, None), self._timers.pop(name, None)
        if task is not None:
            task.cancel()
        if timer is not None:
            timer.cancel()
        if self._known.pop(name, None) is not None:
            self._events.put_nowait(Left(name))

    # --- resolving ---------------------------------------------------------------------------------------

    def _start_resolving(self, name: str, *, anew: bool = False) -> None:
        places = self._places.best(name)
        known = self._known.get(name)
        if known is not None and _lies_at(known, places[0]) and not anew:
            return
        if is_final(places):
            self._resolve_now(name)
        elif name not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[name] = loop.call_later(BETTER_PLACE_S, self._resolve_now, name)

    def _resolve_now(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()
        running = self._resolving.get(name)
        if running is None or running.done():  # a running one looks at the places anew after each answer
            task = asyncio.get_running_loop().create_task(self._resolve_until_known(name))
            self._resolving[name] = task

    async def _resolve_until_known(self, name: str) -> None:
        while places := self._places.best(name):
            service = await self._ask_any(name, places)
            if service is None:
                # an instance is listed before its other records are published, and a query may be lost
                await asyncio.sleep(RETRY_S)
                continue
            self._tell(service)
            if self._places.best(name)[:1] == places[:1]:
                return

    async def _ask_any(self, name: str, places: Sequence[Place]) -> Service | None:
        for place in places:
            with contextlib.suppress(BusError):
                return await self._ask(name, place)
        return None

    async def _ask(self, name: str, place: Place) -> Service:
        async with self._turns.turn():
            answer = await self._avahi.call(
                SERVER_PATH,
                "Server",
                "ResolveService",
                "iisssiu",
                place.interface,
                place.protocol,
                name,
                self.type,
                DOMAIN,
                place.protocol,  # an IPv4 announcement leads to an IPv4 address
                0,
                within_s=RESOLVE_TIMEOUT_S,
                what=f"for the service {name}",
            )
        interface, _protocol, _name, _type, _domain, host, family, address, port, txt, _flags = answer
        return Service(
            name=name,
            type=self.type,
            interface=int(interface),
            protocol=4 if family == IPV4 else 6,
            host=str(host),
            address=str(address),
            port=int(port),
            txt=_bounded(txt),
            own=place.own,
        )

    def _tell(self, service: Service) -> None:
        if self._known.get(service.name) != service:
            self._known[service.name] = service
            self._events.put_nowait(Appeared(service))


def _lies_at(service: Service, place: Place) -> bool:
    return service.interface == place.interface and (service.protocol == 4) == (place.protocol == IPV4)


def _bounded(txt: Sequence[bytes]) -> tuple[bytes, ...]:
    kept: list[bytes] = []
    left = MAX_TXT_BYTES
    for item in txt:
        left -= len(item) + 1
        if left < 0:
            break
        kept.append(bytes(item))
    return tuple(kept)
