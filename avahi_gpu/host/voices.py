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
from avahi_gpu.avahi.names import CLASS_IN, IPV4, IPV6, TYPE_SRV, USE_MULTICAST
from avahi_gpu.avahi.records import escape_label
from avahi_gpu.errors import BusError
from avahi_gpu.files.mdns_message import Datagram
from avahi_gpu.host.hearing import ANSWER_AT_ONCE, open_question
from avahi_gpu.host.tap import Tap
from avahi_gpu.model import DOMAIN, NODE_SERVICE, Interface, Service

# Avahi asks 0.1, 1.1 and 3.1 s after the start: who is silent then is so, also where packets get lost
SPEAKS_S = 3.5


class Voices:
    """Listens on some interfaces for nodes that answer; a context manager."""

    def __init__(self, avahi: Avahi, interfaces: Iterable[Interface]) -> None:
        self._avahi = avahi
        self._interfaces = {i.index: i for i in interfaces}
        self._taps = contextlib.ExitStack()
        self._tapped: set[str] = set()
        self._awaited: dict[tuple[str, str], asyncio.Event] = {}  # (interface, name or address) -> heard

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
        return await self._ask(service.name, service.interface, service.protocol, service.address)

    async def speaks_anywhere(self, name: str, within_s: float) -> bool:
        """Ask for a service on all interfaces; tell whether anybody answers for it."""
        asked = [self._ask(name, i, 4 if self._interfaces[i].ipv4 else 6, "") for i in self._interfaces]
        with contextlib.suppress(asyncio.TimeoutError):
            return any(await asyncio.wait_for(asyncio.gather(*asked), within_s))
        return any(self._awaited[key].is_set() for key in self._awaited if key[1] == _instance(name))

    async def _ask(self, name: str, index: int, family: int, address: str) -> bool | None:
        interface = self._interfaces.get(index)
        if interface is None or interface.name not in self._tapped:
            return None
        heard = asyncio.Event()
        for sign in filter(None, (_instance(name), address)):
            self._awaited[interface.name, sign] = heard
        question = (
            index,
            IPV4 if family == 4 else IPV6,
            f"{escape_label(name)}.{NODE_SERVICE}.{DOMAIN}",
            CLASS_IN | ANSWER_AT_ONCE,
            TYPE_SRV,
            USE_MULTICAST,
        )
        try:
            async with contextlib.AsyncExitStack() as stack:
                await open_question(self._avahi, stack, "iisqqu", *question)
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(heard.wait(), SPEAKS_S)
        except BusError:
            return None
        return heard.is_set()

    def _take(self, interface: str, outgoing: bool, datagram: Datagram) -> None:
        if outgoing or not datagram.message.response:
            return
        for sign in (datagram.source, *datagram.message.told):
            heard = self._awaited.get((interface, sign))
            if heard is not None:
                heard.set()


def _instance(name: str) -> str:
    """Return the full name of a service as a packet tells it."""
    return f"{name}.{NODE_SERVICE}.{DOMAIN}".lower()
