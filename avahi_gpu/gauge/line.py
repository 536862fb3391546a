"""The connection of a node to the one that leads the measurement: whole messages, sealed where a key is."""

from __future__ import annotations

import asyncio
import socket

from avahi_gpu.errors import MalformedInput
from avahi_gpu.gauge.messages import LINE_MAX, Message, decode, encode
from avahi_gpu.rendezvous.proof import SEAL_DIGITS, NotProven, Pass
from avahi_gpu.rendezvous.wire import READ_AT_ONCE, Wire, dial, prove

FIRST_WORD_S = 5.0  # for whoever connects: it says who it is at once


class Line:
    """One connection; both sides speak the messages of ``gauge.messages``."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    def say(self, message: Message) -> None:
        """Send one message."""
        line = encode(message)
        session = self.wire.session
        self.wire.write(session.seal(line) if session is not None else line)

    async def hear(self) -> Message | None:
        """Return the next message, None at the end. Raises MalformedInput or OSError."""
        session = self.wire.session
        line = await self.wire.line(LINE_MAX + (SEAL_DIGITS + 1 if session is not None else 0))
        if not line:
            return None
        return decode(line if session is None else session.open(line, self.wire.remote), self.wire.remote)

    async def close(self) -> None:
        """End it once what was said is out."""
        await self.wire.close()


async def call(address: str, port: int, us: Pass) -> Line:
    """Return a line to the leader. Raises OSError, asyncio.TimeoutError or NotProven."""
    return Line(await dial(address, port, us))


async def answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, us: Pass
) -> tuple[Line, Message] | None:
    """Return the line to somebody who has connected, and its first message; None for a stranger."""
    line = Line(Wire(reader, writer))
    try:
        if us.key is not None:
            await prove(line.wire, us, begin=False)
        first = await asyncio.wait_for(line.hear(), FIRST_WORD_S)
        if first is not None:
            return line, first
    except (MalformedInput, NotProven, OSError, asyncio.TimeoutError):
        pass
    writer.close()
    return None


async def listen(store: socket.socket, meet: object) -> asyncio.Server:
    """Listen on the socket that the round has reserved and that every member has reached."""
    return await asyncio.start_server(meet, sock=store, limit=READ_AT_ONCE)  # type: ignore[arg-type]
