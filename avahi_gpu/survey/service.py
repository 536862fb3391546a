"""``doctor --serve``: for a while, answer what the doctor of another node asks. Everybody is a stranger.

Whoever connects has seconds to prove the cluster key, where there is one, and to say the first word; of those
there are only so many. One asker is answered at a time, for so long, so much; the next ones wait in a queue.
There is no way from here to a file, a shell or a word that is not in ``messages``.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any

import msgspec

from avahi_gpu.errors import AvahiGpuError, MalformedInput
from avahi_gpu.host.aside import aside
from avahi_gpu.host.net import read_interfaces
from avahi_gpu.model import Interface
from avahi_gpu.rendezvous.proof import NotProven, Pass, describe_unproven
from avahi_gpu.rendezvous.strangers import Strangers
from avahi_gpu.rendezvous.wire import READ_AT_ONCE, Wire
from avahi_gpu.survey import messages as m
from avahi_gpu.survey.encounter import Line, dial, greet
from avahi_gpu.survey.limits import DOCTOR_PORTS, is_job_port, refuse_target
from avahi_gpu.survey.witness import Ears, Witness, describe_networks

QUEUE_MAX = 8  # askers who wait for their turn
SESSION_S = 90.0  # of one asker: it may wait 45 s for others; then a cluster of ten takes five
REQUESTS_MAX = 64  # of one asker; it takes a dozen
TOLD_MAX = 20  # sentences about strangers


class Service:
    """Listens from ``open`` to ``close``. ``seen`` tells the addresses of the nodes that we see ourselves."""

    def __init__(
        self, witness: Witness, us: Pass, seen: Callable[[], Collection[str]], tell: Callable[[str], None]
    ) -> None:
        self.witness, self.us, self.seen, self.tell = witness, us, seen, tell
        self.port = 0
        self.served = 0
        self._servers: list[asyncio.Server] = []
        self._strangers = Strangers(random.choice)
        self._wires: dict[int, Wire] = {}
        self._numbers = itertools.count()
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._told: set[str] = set()
        self._askers: dict[str, int] = {}  # start ids of those who are or were here -> how often

    async def open(self) -> int:
        """Listen on the first free port, IPv4 and IPv6; return it. Raises AvahiGpuError."""
        for port in DOCTOR_PORTS:
            try:
                server = await asyncio.start_server(self._accept, "0.0.0.0", port, limit=READ_AT_ONCE)
            except OSError:
                continue
            self._servers.append(server)
            with contextlib.suppress(OSError):  # a host without IPv6 has no second one
                self._servers.append(await asyncio.start_server(self._accept, "::", port, limit=READ_AT_ONCE))
            self.port = port
            return port
        raise AvahiGpuError(
            f"every port from {DOCTOR_PORTS.start} to {DOCTOR_PORTS.stop - 1} is taken",
            "`ss -ltnp` shows by whom",
        )

    async def close(self) -> None:
        """Listen no more and end every session."""
        for server in self._servers:
            server.close()
        for wire in list(self._wires.values()):
            wire.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def knows(self, id: str) -> bool:
        """Return whether an asker has come by itself."""
        return id in self._askers

    async def offer(self, address: str, port: int) -> None:
        """Connect to an asker who does not come by itself: a firewall may let us out and nobody in."""
        try:
            line = await dial(address, port, self.us)
        except NotProven as failure:
            self._tell_once(describe_unproven(failure.why, failure.host, address))
            return
        except (OSError, asyncio.TimeoutError):
            return
        await self._hold(line.wire, self._offered(line))

    async def _offered(self, line: Line) -> None:
        line.say(m.Offer(self.us.id, self.us.host))
        first = await line.hear(SESSION_S)
        if isinstance(first, m.Hello):
            await self._wait_and_answer(line, first)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = Wire(reader, writer)
        conn = next(self._numbers)
        evicted = self._strangers.admit(conn, wire.remote)
        if evicted is not None and evicted in self._wires:
            self._wires[evicted].abort()
        await self._hold(wire, self._greeted(Line(wire), conn), conn)

    async def _hold(self, wire: Wire, talk: Coroutine[Any, Any, None], conn: int | None = None) -> None:
        """Let a talk go on to its end, whatever the other side does."""
        number = next(self._numbers) if conn is None else conn
        self._wires[number] = wire
        task = asyncio.ensure_future(talk)
        self._tasks.add(task)
        try:
            await task
        except NotProven as failure:
            self._tell_once(describe_unproven(failure.why, failure.host, wire.remote))
        except MalformedInput:
            self._tell_once(f"{wire.remote} sends what no doctor says, and is ignored")
        except (OSError, asyncio.TimeoutError):
            pass
        finally:
            self._tasks.discard(task)
            self._strangers.leave(number)
            self._wires.pop(number, None)
            await wire.close()

    def _tell_once(self, text: str) -> None:
        if text not in self._told and len(self._told) < TOLD_MAX:
            self._told.add(text)
            self.tell(text)

    async def _greeted(self, line: Line, conn: int) -> None:
        first = await greet(line, self.us)
        if isinstance(first, m.Hello):
            self._strangers.leave(conn)
            await self._wait_and_answer(line, first)
        elif first is not None:
            raise MalformedInput(line.remote, "not how an asker begins")

    async def _wait_and_answer(self, line: Line, hello: m.Hello) -> None:
        self._askers[hello.id] = self._askers.get(hello.id, 0) + 1
        if hello.version != m.PROTOCOL:
            line.say(
                m.Refused(f"{self.us.host} speaks version {m.PROTOCOL}: install the same avahi-gpu on both")
            )
            return
        if self._waiting >= QUEUE_MAX:
            line.say(m.Refused("too many others wait to ask"))
            return
        self._waiting += 1
        try:
            if self._turn.locked():
                line.say(m.Busy())
            await self._turn.acquire()
        finally:
            self._waiting -= 1
        ears = Ears()
        try:
            self.served += 1
            self.tell(f"{hello.host} ({line.remote}) asks")
            await asyncio.wait_for(self._answer(line, ears), SESSION_S)
            self.tell(f"{hello.host} ({line.remote}) has no more questions")
        except (OSError, asyncio.TimeoutError, MalformedInput):
            self.tell(f"{hello.host} ({line.remote}) has gone before its last question")
            raise
        finally:
            ears.close()
            self._turn.release()

    async def _answer(self, line: Line, ears: Ears) -> None:
        interfaces = await aside(read_interfaces)
        about = self.witness.about
        line.say(msgspec.structs.replace(about, networks=describe_networks(interfaces)))
        for _ in range(REQUESTS_MAX):
            said = await line.hear(SESSION_S)
            match said:
                case m.AskClock():
                    line.say(self.witness.clock())
                case m.Listen(ports, seconds):
                    if not all(p == 0 or is_job_port(p) for p in ports):
                        line.say(m.Refused("no job uses such a port"))
                        continue
                    line.say(await ears.open(line.here, ports, seconds))
                case m.Probe(targets):
                    proven = line.wire.session is not None
                    seen = None if proven else {*self.seen(), line.remote.partition("%")[0]}
                    tried = (self._probe(t, seen, interfaces, line.here) for t in targets)
                    reports = await asyncio.gather(*tried)
                    line.say(m.Probed(tuple(reports)))
                case m.Bye():
                    return
                case None:
                    raise ConnectionResetError
                case _:
                    raise MalformedInput(line.remote, "not a question")
        line.say(m.Refused("too many questions"))

    async def _probe(
        self, target: m.Target, seen: Collection[str] | None, interfaces: Sequence[Interface], here: str
    ) -> m.Report:
        why = refuse_target(target, seen, interfaces)
        if why:
            none = m.Tried(None, why)
            return m.Report(none, none, none, none, tuple(none for _ in target.ports))
        return await self.witness.probe(target, here)
