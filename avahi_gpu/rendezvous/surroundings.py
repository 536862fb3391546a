"""The interfaces of this host as they are now, and where a round may reach it. Read anew when they change."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from avahi_gpu.errors import LaunchFailed
from avahi_gpu.host.net import interface_of, lan_interfaces, read_interfaces
from avahi_gpu.host.news import News
from avahi_gpu.model import Interface
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.environment import Demand
from avahi_gpu.rendezvous.networks import attachments, choose_address, describe, lacks


class Surroundings:
    """Where this node is. ``alone``: its job needs no other one."""

    def __init__(self, demand: Demand, *, alone: bool) -> None:
        self.demand = demand
        self.alone = alone
        self.interfaces: tuple[Interface, ...] = ()
        self.address = ""  # the one that this node offers before a round has one
        self._told: tuple[str, str] | None = None

    async def read(self) -> None:
        """Read the interfaces. Raises LaunchFailed where none of them can serve, OSError."""
        self.interfaces = await asyncio.get_running_loop().run_in_executor(None, read_interfaces)
        self.address = choose_address(self.interfaces, self.demand, alone=self.alone)

    @property
    def moved(self) -> steps.Moved:
        """What the agreement has to know."""
        found = attachments(self.interfaces, self.demand)
        return steps.Moved(self.address, found, self.demand.words, lacks(self.interfaces))

    @property
    def addresses(self) -> frozenset[str]:
        """Every address of this host."""
        return frozenset(a.ip for i in self.interfaces for a in i.addresses)

    @property
    def best_first(self) -> list[int]:
        """The indexes of the interfaces on which others are looked for, best first."""
        chosen = interface_of(self.address, self.interfaces)
        order = [*([chosen] if chosen else []), *lan_interfaces(self.interfaces)]
        return list(dict.fromkeys(i.index for i in order))

    def interface_at(self, address: str) -> str:
        """Return the name of the interface that has ``address``, '' where none does."""
        interface = interface_of(address, self.interfaces)
        return interface.name if interface is not None else ""

    def explain(self, formed: steps.Round) -> str:
        """Return the line that says where a round runs here and why, '' where that was said before."""
        address = formed.own.address
        interface = interface_of(address, self.interfaces)
        if interface is None or self._told == (interface.name, address):
            return ""
        self._told = (interface.name, address)
        why = formed.why or f"{formed.leader.host}, which leads, has seen this node there"
        return f"interface {describe(interface, address)}: {why}"

    async def watch(self, feed: Callable[[steps.Event], None]) -> None:
        """Read the interfaces anew whenever one changes, for ever; whoever is fed learns of it."""
        with contextlib.suppress(OSError), News() as news:
            while True:
                await news.wait()
                with contextlib.suppress(OSError, LaunchFailed):  # none can serve: we are where we were
                    await self.read()
                feed(self.moved)
