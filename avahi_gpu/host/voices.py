"""Whether each node's avahi-daemon speaks now, or is only remembered by ours.

Ours keeps what it heard for two minutes and more, and asks nobody while it does. A question of the class "IN,
answer at once" (RFC 6762 section 5.4) is another one to it, of which it remembers nothing: it is asked on the
wire, and the node has to answer. A tap on the card sees whether it does (root only).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from types import TracebackType

from avahi_gpu.avahi.bus import Avahi
from avahi_gpu.avahi.names import (
    CLASS_IN,
    IPV4,
    IPV6,
    TYPE_A,
    TYPE_AAAA,
    TYPE_SRV,
    TYPE_TXT,
    USE_MULTICAST,
)
from avahi_gpu.avahi.records import escape_label
from avahi_gpu.errors import BusError
from avahi_gpu.files.mdns_message import Datagram
from avahi_gpu.host.hearing import ANSWER_AT_ONCE, open_question
from avahi_gpu.host.tap import Tap
from avahi_gpu.model import DOMAIN, NODE_SERVICE, Interface, Service

# Avahi asks 0.1, 1.1 and 3.1 s after the start: who is silent then is so, also where packets get lost
SPEAKS_S = 3.5
LEAVES_S = 0.6  # a new question leaves 0.1 s after it was put
# A question that somebody put a moment ago, and left before its turn, is not new to Avahi: it goes on in the
# old pace, of one, two, four, eight seconds. Then others are put that the node has an answer to, too.
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
        return any(self._awaited[key].heard.is_set() for key in self._awaited if key[1] == _instance(name))

    async def _ask(self, name: str, index: int, family: int, address: str, host: str = "") -> bool | None:
        interface = self._interfaces.get(index)
        if interface is None or interface.name not in self._tapped:
            return None
        call = Call()
        instance = f"{escape_label(name)}.{NODE_SERVICE}.{DOMAIN}"
        for sign in filter(None, (_instance(name), host.lower().rstrip("."), address)):
            self._awaited[interface.name, sign] = call
        protocol = IPV4 if family == 4 else IPV6
        wholes = [(instance, TYPE_SRV), (instance, TYPE_TXT)]
        if host:
            wholes.append((host, TYPE_A if family == 4 else TYPE_AAAA))
        try:
            async with contextlib.AsyncExitStack() as stack:
                for turn, (whole, kind) in enumerate(wholes):
                    if turn and (call.heard.is_set() or call.sent >= min(turn, ENOUGH)):
                        break
                    question = (index, protocol, whole, CLASS_IN | ANSWER_AT_ONCE, kind, USE_MULTICAST)
                    await open_question(self._avahi, stack, "iisqqu", *question)
                    with contextlib.suppress(asyncio.TimeoutError):
                        await asyncio.wait_for(call.heard.wait(), LEAVES_S)
                with contextlib.suppress(asyncio.TimeoutError):
                    rest_s = SPEAKS_S - LEAVES_S * (turn + 1)
                    await asyncio.wait_for(call.heard.wait(), max(rest_s, 0.1))
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


def _instance(name: str) -> str:
    """Return the full name of a service as a packet tells it."""
    return f"{name}.{NODE_SERVICE}.{DOMAIN}".lower()
