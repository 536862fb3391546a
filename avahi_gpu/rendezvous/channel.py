"""Control connections: lines in, lines out, over TCP. The edge of the agreement; it decides nothing.

Everything from the network is bounded here: connections in all and from one address, bytes of a line, bytes
waiting to be sent. What is malformed ends its connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import itertools
import logging
import socket
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from avahi_gpu.errors import LaunchFailed, MalformedInput
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.election import Candidate
from avahi_gpu.rendezvous.messages import LINE_MAX, Message, decode, encode
from avahi_gpu.rendezvous.trace import shown

log = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 1.5  # a LAN answers in milliseconds; one lost SYN is repeated after a second
CONNECTIONS_MAX = 128  # of others to us: ten nodes need ten, a flood must not eat our descriptors
CONNECTIONS_PER_HOST = 12  # one host has one node; the rest are its predecessors and its mistakes
UNSENT_MAX = 1 << 20  # bytes: who does not read for that long is as good as gone
CLOSE_S = 0.5  # what was sent last, a goodbye, has that long to leave


@dataclass
class Wire:
    """One connection."""

    conn: int
    remote: str
    writer: asyncio.StreamWriter
    reader_task: asyncio.Task[None] | None = None


class Channel:
    """All control connections of a node. Events go to ``feed``, in the loop's thread."""

    def __init__(self, feed: Callable[[steps.Event], None]) -> None:
        self.feed = feed
        self.port = 0
        self._wires: dict[int, Wire] = {}
        self._numbers = itertools.count(1)
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._accepted: Counter[str] = Counter()

    async def listen(self, ports: Iterable[int]) -> int:
        """Listen on the first free one of ``ports``, IPv4 and IPv6; return it. Raises LaunchFailed."""
        for port in ports:
            try:
                self._servers = [await asyncio.start_server(self._accept, "0.0.0.0", port, limit=LINE_MAX)]
            except OSError:
                continue
            with contextlib.suppress(OSError):  # a host without IPv6 has no second one
                self._servers.append(await asyncio.start_server(self._accept, "::", port, limit=LINE_MAX))
            self.port = port
            return port
        raise LaunchFailed(
            f"every control port from {min(ports)} to {max(ports)} is taken",
            "`ss -ltnp` shows by whom; jobs that have ended badly are ended with `kill`",
        )

    def open(self, candidate: Candidate) -> None:
        """Connect to a candidate; Opened or OpenFailed follows."""
        self._start(self._connect(candidate))

    def send(self, conn: int, message: Message) -> None:
        """Send a message; nothing happens where the connection is gone."""
        wire = self._wires.get(conn)
        if wire is None or wire.writer.is_closing():
            return
        wire.writer.write(encode(message))
        if wire.writer.transport.get_write_buffer_size() > UNSENT_MAX:
            wire.writer.transport.abort()

    def drop(self, conn: int) -> None:
        """Close a connection once what was sent is out; no Lost follows."""
        wire = self._wires.pop(conn, None)
        if wire is not None:
            if wire.reader_task is not None:
                wire.reader_task.cancel()
            self._start(_close(wire.writer))

    async def close(self) -> None:
        """Stop listening and close every connection; what was sent has half a second to leave."""
        for server in self._servers:
            server.close()
        for conn in list(self._wires):
            self.drop(conn)
        pending = list(self._tasks)
        if pending:
            await asyncio.wait(pending, timeout=CLOSE_S)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    # --- inside --------------------------------------------------------------------------------------------

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _connect(self, candidate: Candidate) -> None:
        if not is_address(candidate.address):  # others told it: no name of theirs is looked up
            self.feed(steps.OpenFailed(candidate.id, "not an address"))
            return
        connecting = asyncio.open_connection(candidate.address, candidate.port, limit=LINE_MAX)
        try:
            reader, writer = await asyncio.wait_for(connecting, CONNECT_TIMEOUT_S)
        except (OSError, asyncio.TimeoutError) as error:
            self.feed(steps.OpenFailed(candidate.id, describe(error)))
            return
        wire = self._adopt(reader, writer)
        self.feed(steps.Opened(wire.conn, candidate.id, own_end(writer)))
        self._read_on(wire, reader)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        remote = far_end(writer)
        if sum(self._accepted.values()) >= CONNECTIONS_MAX or self._accepted[remote] >= CONNECTIONS_PER_HOST:
            writer.transport.abort()
            return
        self._accepted[remote] += 1
        wire = self._adopt(reader, writer)
        self.feed(steps.Accepted(wire.conn, own_end(writer), wire.remote))
        task = self._read_on(wire, reader)

        def forget(_: object) -> None:
            self._accepted[remote] -= 1
            self._accepted += Counter()  # drops what has come to nothing

        if task is None:
            forget(None)
        else:
            task.add_done_callback(forget)

    def _adopt(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Wire:
        wire = Wire(next(self._numbers), far_end(writer), writer)
        self._wires[wire.conn] = wire
        return wire

    def _read_on(self, wire: Wire, reader: asyncio.StreamReader) -> asyncio.Task[None] | None:
        if wire.conn not in self._wires:  # dropped in answer to its opening
            return None
        wire.reader_task = self._start(self._read(wire, reader))
        return wire.reader_task

    async def _read(self, wire: Wire, reader: asyncio.StreamReader) -> None:
        # no deadline here: the agreement itself watches how long every connection has been silent
        reason = "its connection was closed"
        try:
            while line := await reader.readuntil(b"\n"):
                self.feed(steps.Received(wire.conn, decode(line, wire.remote)))
        except asyncio.IncompleteReadError:
            pass
        except (asyncio.LimitOverrunError, MalformedInput) as error:
            reason = f"it sent what is not of the protocol ({error})"
            log.warning("%s is dropped: %s", wire.remote, shown(reason, 300))
        except OSError as error:
            reason = describe(error)
        if self._wires.pop(wire.conn, None) is not None:
            wire.writer.close()
            self.feed(steps.Lost(wire.conn, reason))


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError, asyncio.TimeoutError):
        await asyncio.wait_for(writer.wait_closed(), CLOSE_S)


def is_address(text: str) -> bool:
    """Return whether ``text`` is an IPv4 or IPv6 address, with or without a scope."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def own_end(writer: asyncio.StreamWriter) -> str:
    """Return our own address of a connection."""
    return _address(writer.get_extra_info("sockname"))


def far_end(writer: asyncio.StreamWriter) -> str:
    """Return the other side's address of a connection."""
    return _address(writer.get_extra_info("peername"))


def _address(name: tuple[object, ...] | None) -> str:
    return str(name[0]) if name else "0.0.0.0"


def describe(error: BaseException) -> str:
    """Return why a connection could not be made or kept, in words for people."""
    if isinstance(error, asyncio.TimeoutError | socket.timeout):
        return "no answer"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, ConnectionResetError):
        return "its connection was reset"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__
