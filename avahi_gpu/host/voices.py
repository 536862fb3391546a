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
        interface = self._interfaces.get(service.interface)
        if interface is None or interface.name not in self._tapped:
            return None
        heard = asyncio.Event()
        instance = f"{service.name}.{NODE_SERVICE}.{DOMAIN}".lower()
        for sign in (instance, service.address):
            self._awaited[interface.name, sign] = heard
        question = (
            service.interface,
            IPV4 if service.protocol == 4 else IPV6,
            f"{escape_label(service.name)}.{NODE_SERVICE}.{DOMAIN}",
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
