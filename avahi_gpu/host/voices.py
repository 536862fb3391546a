"""Whether each node's avahi-daemon speaks now, or is only remembered by ours.

Ours keeps what it heard for two minutes and more, and asks nobody while it does. So it is asked what it
cannot remember (host/questions.py), and a tap on the card sees whether the node answers (root only).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from types import TracebackType

from avahi_gpu.avahi.bus import Avahi
from avahi_gpu.avahi.names import (
    IPV4,
    IPV6,
    TYPE_A,
    TYPE_AAAA,
)
from avahi_gpu.errors import BusError
from avahi_gpu.files.mdns_message import Datagram
from avahi_gpu.host.questions import ask_at_once, instance, of_service
from avahi_gpu.host.tap import Tap
from avahi_gpu.model import Interface, Service

# Avahi asks 0.1, 1.1 and 3.1 s after the start: who is silent then is so, also where packets get lost
SPEAKS_S = 3.5
LAST_S = 0.1  # for the answer to the last question, where putting them took all of it
ENOUGH = 3  # questions that have left without an answer: two packets may be lost


class Call:
    """How many questions to a node have left, and whether anything came from there."""

    def __init__(self) -> None:
        self.sent = 0
        self.heard = asyncio.Event()


class Voices:
    """Listens on some interfaces for nodes that answer; a context manager."""

    def __init__(self, avahi: Avahi, interfaces: Iterable[Interface]) -> None:
        self._avahi = avahi
        self._interfaces = {i.index: i for i in interfaces}
        self._taps = contextlib.ExitStack()
        self._tapped: set[str] = set()
        self._awaited: dict[tuple[str, str], Call] = {}  # (interface, name or address) -> how it goes

    def __enter__(self) -> Voices:
        for interface in self._interfaces.values():
            with contextlib.suppress(OSError):  # not root, or a container's root
                self._taps.enter_context(Tap(interface.name, self._take))
                self._tapped.add(interface.name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._taps.close()

    async def speaks(self, service: Service) -> bool | None:
        """Ask for a node's service; tell whether anything comes from there. None: this cannot be told."""
        return await self._ask(
            service.name, service.interface, service.protocol, service.address, service.host
        )

    async def speaks_anywhere(self, name: str, within_s: float) -> bool:
        """Ask for a service on all interfaces; tell whether anybody answers for it."""
        asked = [self._ask(name, i, 4 if self._interfaces[i].ipv4 else 6, "") for i in self._interfaces]
        with contextlib.suppress(asyncio.TimeoutError):
            return any(await asyncio.wait_for(asyncio.gather(*asked), within_s))
        return any(self._awaited[key].heard.is_set() for key in self._awaited if key[1] == instance(name))

    async def _ask(self, name: str, index: int, family: int, address: str, host: str = "") -> bool | None:
        interface = self._interfaces.get(index)
        if interface is None or interface.name not in self._tapped:
            return None
        call = Call()
        for sign in filter(None, (instance(name), host.lower().rstrip("."), address)):
            self._awaited[interface.name, sign] = call
        records = of_service(name)
        if host:
            records.append((host, TYPE_A if family == 4 else TYPE_AAAA))
        loop = asyncio.get_running_loop()
        end = loop.time() + SPEAKS_S
        try:
            async with contextlib.AsyncExitStack() as stack:
                await ask_at_once(
                    self._avahi,
                    stack,
                    (index, IPV4 if family == 4 else IPV6),
                    records,
                    heard=call.heard,
                    sent=lambda: call.sent,
                    enough=ENOUGH,
                )
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(call.heard.wait(), max(end - loop.time(), LAST_S))
        except BusError:
            return None
        if not call.heard.is_set() and call.sent < ENOUGH:
            return None  # whom nobody asked is not silent
        return call.heard.is_set()

    def _take(self, interface: str, outgoing: bool, datagram: Datagram) -> None:
        if outgoing:
            for name in datagram.message.urgent:
                if (call := self._awaited.get((interface, name))) is not None:
                    call.sent += 1
        elif datagram.message.response:
            for sign in (datagram.source, *datagram.message.told):
                if (call := self._awaited.get((interface, sign))) is not None:
                    call.heard.set()
