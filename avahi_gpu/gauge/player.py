"""What one node does in a measurement: it is measured by others, measures, and reduces together with them."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from avahi_gpu.gauge.messages import Begin, Enlist, Reduce, Reduced, Tried, Try
from avahi_gpu.gauge.stream import Receiver, Way, measure
from avahi_gpu.gauge.workers import Means, Workers
from avahi_gpu.host.aside import aside
from avahi_gpu.host.net import read_interfaces
from avahi_gpu.host.system import System
from avahi_gpu.rendezvous.environment import interface_variables, missing_variables
from avahi_gpu.rendezvous.messages import Seat

NOT_ASKED = "it was not asked for"
DUPLEX_MAX = 15  # characters; the kernel says full, half or unknown


class Player:
    """This node, between the start of a round and its end. ``word``: processes; '' for no all-reduce."""

    def __init__(self, seat: Seat, interface: str, word: str) -> None:
        """Raises OSError where the seat's address cannot be listened on."""
        self.seat, self.interface, self.word = seat, interface, word
        self.receiver = Receiver(seat.address)
        wanted = interface_variables(interface, seat.address) if interface else {}
        self.workers = Workers(word, missing_variables(wanted, os.environ, {}))
        self._begin: Begin | None = None
        self._stop = threading.Event()

    async def enlist(self) -> Enlist:
        """Get ready, and return what this node brings."""
        means = await self.workers.prepare() if self.word else Means(lacks=NOT_ASKED)
        link, mbit, duplex = self._read_card()
        return Enlist(
            self.seat.id,
            self.receiver.port,
            self.interface,
            link,
            mbit,
            duplex,
            means.processes,
            means.backend,
            means.torch,
            means.lacks,
        )

    def begin(self, begin: Begin) -> None:
        """All are there: let them in."""
        self._begin = begin
        self.receiver.let_in(begin.secret, (place.address for place in begin.places))

    async def attempt(self, wish: Try) -> Tried:
        """Measure the way to another node."""
        begin = self._begin
        if begin is None or not wish.target < len(begin.places):
            return Tried(error="there is no such node")
        way = Way(self.seat.address, begin.places[wish.target], begin.secret, self._stop.is_set)
        return await aside(measure, way, wish.echo_s, wish.send_s)

    async def reduce(self, wish: Reduce) -> Reduced:
        """Take part in the all-reduce."""
        return await self.workers.run(wish)

    async def stop_reducing(self) -> None:
        """End the all-reduce: it has failed elsewhere."""
        await self.workers.close()

    async def close(self) -> None:
        """Leave nothing behind."""
        self._stop.set()
        await self.workers.close()
        self.receiver.close()

    def _read_card(self) -> tuple[str, int, str]:
        """Return the kind of our interface, its speed in Mbit/s (0: not told) and its duplex."""
        system = System()
        try:
            own = next((i for i in read_interfaces(system) if i.name == self.interface), None)
        except OSError:  # the kernel refuses netlink, as in some sandboxes
            own = None
        if own is None:
            return "", 0, ""
        told = system.read(Path("/sys/class/net") / own.name / "duplex").content or b""
        duplex = told.decode("ascii", "replace").strip()[:DUPLEX_MAX]
        return own.link, own.speed_mbit or 0, duplex if duplex in ("full", "half") else ""
