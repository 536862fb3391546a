"""Control connections: lines in, lines out, over TCP. The edge of the agreement; it decides nothing.

The agreement hears of a connection that somebody made to us once its other end has said who it is: with a
cluster key once it has proved that it holds it, without one once it has said something of the protocol. Until
then it is a stranger, of whom there are only so many for only so long.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import random
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable
from typing import Any

from avahi_gpu.errors import LaunchFailed, MalformedInput
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.election import Candidate
from avahi_gpu.rendezvous.messages import Message
from avahi_gpu.rendezvous.proof import REASONS, NotProven, Pass, describe_unproven
from avahi_gpu.rendezvous.strangers import FLOOD, Strangers
from avahi_gpu.rendezvous.trace import shown
from avahi_gpu.rendezvous.wire import (
    CLOSE_S,
    READ_AT_ONCE,
    Wire,
    describe,
    dial,
    hear_first,
    is_address,
    prove,
)

log = logging.getLogger(__name__)

CONNECTIONS_MAX = 128  # of others to us: ten nodes need ten, a flood must not eat our descriptors
CONNECTIONS_PER_HOST = 12  # one host has one node; the rest are its predecessors and its mistakes
# whoever breaks a proof off is told of when nothing better is known of it by then: another connection to it,
# or of its own to us, mostly says more in the same instant
NO_PROOF_S = 0.5
KEEP_S = 1.0  # for a proven connection until somebody wants it: the agreement does at once, or not at all
KEY_HINT = "`avahi-gpu key new` makes a key that keeps strangers out"


class Channel:
    """All control connections of a node. Events go to ``feed``, words for people to ``tell``."""

    def __init__(self, feed: Callable[[steps.Event], None], us: Pass, tell: Callable[[str], None]) -> None:
        self.feed, self.us, self.tell = feed, us, tell
        self.port = 0
        self._wires: dict[int, Wire] = {}
        self._readers: dict[int, asyncio.Task[None]] = {}
        self._numbers = itertools.count(1)
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._strangers = Strangers(random.choice)
        self._kept: dict[tuple[str, int], Wire] = {}  # proven, and not wanted yet, by address and port
        self._accepted: Counter[str] = Counter()  # connections to us that are no strangers', by address

    async def listen(self, ports: Iterable[int]) -> int:
        """Listen on the first free one of ``ports``, IPv4 and IPv6; return it. Raises LaunchFailed."""
        for port in ports:
            try:
                self._servers = [
                    await asyncio.start_server(self._accept, "0.0.0.0", port, limit=READ_AT_ONCE)
                ]
            except OSError:
                continue
            with contextlib.suppress(OSError):  # a host without IPv6 has no second one
                self._servers.append(await asyncio.start_server(self._accept, "::", port, limit=READ_AT_ONCE))
            self.port = port
            return port
        raise LaunchFailed(
            f"every control port from {min(ports)} to {max(ports)} is taken",
            "`ss -ltnp` shows by whom; jobs that have ended badly are ended with `kill`",
        )

    def open(self, candidate: Candidate) -> None:
        """Connect to a candidate; Opened or OpenFailed follows."""
        self._start(self._connect(candidate))

    def expect(self, addresses: Iterable[str]) -> None:
        """Take these addresses for members of the running round."""
        self._strangers.members = frozenset(addresses)

    def reserve(self, known: Callable[[], Collection[str]]) -> None:
        """Keep places for strangers from these addresses, where candidates of the job are said to be."""
        self._strangers.known = known

    def send(self, conn: int, message: Message) -> None:
        """Send a message; nothing happens where the connection is gone."""
        wire = self._wires.get(conn)
        if wire is not None:
            wire.send(message)

    def drop(self, conn: int) -> None:
        """Close a connection once what was sent is out; no Lost follows."""
        wire, reader = self._wires.pop(conn, None), self._readers.pop(conn, None)
        if reader is not None:
            reader.cancel()
        if wire is not None:
            self._start(wire.close())

    async def close(self) -> None:
        """Stop listening and close every connection; what was sent has half a second to leave."""
        for server in self._servers:
            server.close()
        for conn in list(self._wires):
            self.drop(conn)
        for place in list(self._kept):
            self._let_go(place)
        pending = list(self._tasks)
        if pending:
            await asyncio.wait(pending, timeout=CLOSE_S)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    # --- from us to others ---------------------------------------------------------------------------------

    async def _connect(self, candidate: Candidate) -> None:
        wire = self._kept.pop((candidate.address, candidate.port), None)
        try:
            wire = wire or await self.reach(candidate)
        except Unreached as failure:
            self.feed(steps.OpenFailed(candidate.id, failure.reason))
            return
        conn = self._adopt(wire)
        self.feed(steps.Opened(conn, candidate.id, wire.here))
        self._read_on(conn)

    def keep(self, place: tuple[str, int], wire: Wire) -> None:
        """Keep a proven connection for whoever wants to ``open`` that place within a second."""
        self._let_go(place)
        self._kept[place] = wire
        asyncio.get_running_loop().call_later(KEEP_S, self._let_go, place, wire)

    def _let_go(self, place: tuple[str, int], wire: Wire | None = None) -> None:
        if wire is None or self._kept.get(place) is wire:
            kept = self._kept.pop(place, None)
            if kept is not None:
                kept.writer.close()

    async def reach(self, candidate: Candidate) -> Wire:
        """Return a connection to a candidate, proven where we have a key. Raises Unreached."""
        if not is_address(candidate.address):  # others told it: no name of theirs is looked up
            raise Unreached("not an address")
        try:
            return await dial(candidate.address, candidate.port, self.us)
        except NotProven as failure:
            self.tell_unproven(failure, candidate.address, candidate.host)
            raise Unreached(Unreached.UNPROVEN) from None
        except (OSError, asyncio.TimeoutError) as error:
            raise Unreached(describe(error)) from None

    # --- from others to us ---------------------------------------------------------------------------------

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = Wire(reader, writer)
        conn = self._adopt(wire)
        crowded = self._strangers.admit(conn, wire.remote)
        if crowded is not None:
            self._tell_flood(self._strangers.address_of(crowded))
            self._wires[crowded].abort()
            self._turn_away(crowded)
        self._readers[conn] = self._start(self._meet(conn, wire))

    async def _meet(self, conn: int, wire: Wire) -> None:
        """Let a stranger show who it is, then listen to it."""
        try:
            first = None
            if self.us.key is not None:
                await prove(wire, self.us, begin=False)
            else:
                first = await hear_first(wire, self.us)
                if first is None:
                    return self._turn_away(conn)
        except NotProven as failure:
            self.tell_unproven(failure, wire.remote)
            return self._turn_away(conn)
        except MalformedInput:
            what = "sends what is not of the protocol and is ignored"
            self.tell_once(wire.remote, f"{wire.remote} {what}: {KEY_HINT}")
            return self._turn_away(conn)
        except (OSError, asyncio.TimeoutError):
            return self._turn_away(conn)
        self._strangers.leave(conn)
        remote = wire.remote
        if sum(self._accepted.values()) >= CONNECTIONS_MAX or self._accepted[remote] >= CONNECTIONS_PER_HOST:
            return self._turn_away(conn)
        self._accepted[remote] += 1
        try:
            self.feed(steps.Accepted(conn, wire.here, remote))
            if first is not None:
                self.feed(steps.Received(conn, first))
            await self._read(conn, wire)
        finally:
            self._accepted[remote] -= 1
            self._accepted += Counter()  # drops what has come to nothing
        return None

    def _turn_away(self, conn: int) -> None:
        """A stranger goes; the agreement never heard of it."""
        self._strangers.leave(conn)
        self.drop(conn)

    def tell_unproven(self, failure: NotProven, address: str, host: str = "") -> None:
        """Somebody at ``address``, perhaps ``host``, does not prove the key: tell why it cannot join."""
        host = failure.host or host
        text = describe_unproven(failure.why, host, address)
        if failure.why == "no-proof" and host:
            asyncio.get_running_loop().call_later(NO_PROOF_S, self._tell_no_proof, address, text)
        elif failure.why == "no-proof":
            self.tell_once(address, text, failure.why)
        elif failure.why != "other-job":  # a stale record, or a port that another job has taken meanwhile
            self.exclude(address, host, text, failure.why)

    def exclude(self, address: str, host: str, reason: str, what: str) -> None:
        """Somebody says that it is of our job and cannot be; once for each address and kind of thing."""
        if self._strangers.first_time(address, what):
            self.feed(steps.Excluded(host or address, reason))

    def _tell_no_proof(self, address: str, text: str) -> None:
        if not self._strangers.told(address, REASONS):
            self.tell_once(address, text, "no-proof")

    def _tell_flood(self, address: str) -> None:
        what = "makes one connection after the other and says nothing of use"
        self.tell_once(address, f"{address} {what}" + ("" if self.us.key else f": {KEY_HINT}"), FLOOD)

    def tell_once(self, address: str, text: str, what: str = "") -> None:
        """Tell people of a stranger, once for each address and kind of thing; of some addresses alone."""
        if self._strangers.first_time(address, what):
            self.tell(text)

    # --- both ----------------------------------------------------------------------------------------------

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _adopt(self, wire: Wire) -> int:
        conn = next(self._numbers)
        self._wires[conn] = wire
        return conn

    def _read_on(self, conn: int) -> None:
        wire = self._wires.get(conn)
        if wire is not None:  # not dropped in answer to its opening
            self._readers[conn] = self._start(self._read(conn, wire))

    async def _read(self, conn: int, wire: Wire) -> None:
        # no deadline here: the agreement itself watches how long every connection has been silent
        reason = "its connection was closed"
        try:
            while conn in self._wires and (message := await wire.receive()) is not None:
                self.feed(steps.Received(conn, message))
        except NotProven as failure:
            self.tell_unproven(failure, wire.remote)
            reason = "it asks for a proof of the cluster key"
        except MalformedInput as error:
            reason = f"it sent what is not of the protocol ({error})"
            log.warning("%s is dropped: %s", wire.remote, shown(reason, 300))
        except OSError as error:
            reason = describe(error)
        if self._wires.pop(conn, None) is not None:
            self._readers.pop(conn, None)
            wire.writer.close()
            self.feed(steps.Lost(conn, reason))


class Unreached(Exception):
    """A candidate could not be reached, or does not prove the key."""

    UNPROVEN = "it does not prove the cluster key"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
