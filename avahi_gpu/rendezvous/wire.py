"""One control connection: bounded lines in and out, sealed from the moment that both have proved the key."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import os
import secrets
import socket

from avahi_gpu.errors import MalformedInput
from avahi_gpu.rendezvous import proof
from avahi_gpu.rendezvous.messages import LINE_MAX, Hello, Message, Who, decode, encode
from avahi_gpu.rendezvous.proof import (
    PROOF_LINE_MAX,
    SEAL_DIGITS,
    Answer,
    Handshake,
    NotProven,
    Pass,
    Session,
)

CONNECT_TIMEOUT_S = 1.5  # a LAN answers in milliseconds; one lost SYN is repeated after a second
PROVE_S = 2.0  # for the two lines of a proof: one round trip, and one loss of each on a bad network
FIRST_WORD_S = 3.0  # for the first message of whoever connects to us and needs no proof
CLOSE_S = 0.5  # what was sent last, a goodbye, has that long to leave
UNSENT_MAX = 1 << 20  # bytes: who does not read for that long is as good as gone
READ_AT_ONCE = 1 << 14  # bytes taken from the kernel for one connection before somebody has looked at them


class Wire:
    """One connection. ``answered``: what the other side has proved to be, where we have made it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        # what asyncio asks the kernel for at once: its own 256 KiB are mapped and unmapped at every beat
        writer.transport.max_size = READ_AT_ONCE  # type: ignore[attr-defined]
        self.here, self.remote = own_end(writer), far_end(writer)
        self.answered: Answer | None = None
        self.session: Session | None = None
        self._ahead = bytearray()

    async def line(self, limit: int) -> bytes:
        """Return the next line, newline included, b'' at the end. Raises MalformedInput for a longer one."""
        searched = 0
        while (end := self._ahead.find(b"\n", searched)) < 0:
            searched = len(self._ahead)
            if searched > limit:
                break
            more = await self.reader.read(READ_AT_ONCE)
            if not more:
                return b""
            self._ahead += more
        if not 0 <= end < limit:
            raise MalformedInput(self.remote, f"a line of more than {limit} bytes")
        found = bytes(self._ahead[: end + 1])
        del self._ahead[: end + 1]
        return found

    async def receive(self) -> Message | None:
        """Return the next message, None at the end. Raises MalformedInput, NotProven or OSError."""
        if self.session is not None:
            line = await self.line(LINE_MAX + SEAL_DIGITS + 1)
            return decode(self.session.open(line, self.remote), self.remote) if line else None
        line = await self.line(LINE_MAX)
        if not line:
            return None
        try:
            return decode(line, self.remote)
        except MalformedInput:
            said = proof.decode_or_none(line)
            if isinstance(said, proof.Unproven):  # they have a key, and we have none
                raise NotProven(said.why, said.host) from None
            raise

    def send(self, message: Message) -> None:
        """Send a message; one that does not read what was sent is cut off."""
        line = encode(message)
        self.write(self.session.seal(line) if self.session is not None else line)

    def write(self, line: bytes) -> None:
        """Send bytes as they are."""
        if line and not self.writer.is_closing():
            self.writer.write(line)
            if self.writer.transport.get_write_buffer_size() > UNSENT_MAX:
                self.abort()

    def abort(self) -> None:
        """End the connection at once."""
        self.writer.transport.abort()

    async def close(self) -> None:
        """End the connection once what was sent is out, at most ``CLOSE_S`` later."""
        self.writer.close()
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            await asyncio.wait_for(self.writer.wait_closed(), CLOSE_S)


async def dial(address: str, port: int, us: Pass, within_s: float = CONNECT_TIMEOUT_S) -> Wire:
    """Return a connection, proven where we have a key. Raises OSError, asyncio.TimeoutError or NotProven."""
    connecting = asyncio.open_connection(address, port, limit=READ_AT_ONCE)
    wire = Wire(*await asyncio.wait_for(connecting, within_s))
    if us.key is not None:
        try:
            await prove(wire, us, begin=True)
        except BaseException:
            wire.writer.close()
            raise
    return wire


async def prove(wire: Wire, us: Pass, *, begin: bool) -> None:
    """Prove the key to the other side, and it to us, within ``PROVE_S``. ``begin``: we have connected.

    Raises NotProven or OSError, and asyncio.TimeoutError where somebody connects and says nothing.
    """
    try:
        await asyncio.wait_for(_prove(wire, us, begin=begin), PROVE_S)
    except NotProven as failure:
        wire.write(failure.answer)
        raise
    except asyncio.TimeoutError:
        if not begin:
            raise
        raise NotProven("no-proof") from None
    except MalformedInput:
        raise NotProven("no-proof") from None


async def _prove(wire: Wire, us: Pass, *, begin: bool) -> None:
    handshake = Handshake(us, secrets.token_bytes(proof.NONCE_BYTES), wire.here, wire.remote)
    if begin:
        wire.write(handshake.begin())
    while handshake.session is None:
        line = await wire.line(PROOF_LINE_MAX)
        if not line and (begin or handshake.host):
            raise NotProven("no-proof", handshake.host)
        if not line:  # somebody who looks which ports are open
            raise ConnectionResetError
        if not begin and not handshake.host:
            refuse_plain(line, us)
        wire.write(handshake.hear(line))
    wire.session = handshake.session
    wire.answered = handshake.answered if begin else None


def refuse_plain(line: bytes, us: Pass) -> None:
    """Raise NotProven where the first line of somebody is that of a node without a key."""
    try:
        said = decode(line, "")
    except MalformedInput:
        return
    if isinstance(said, Hello | Who):
        host = said.me.host if isinstance(said, Hello) else said.host
        ours = (said.job, said.cluster) == (us.job, us.cluster)
        answer = proof.refusal("key-wanted" if ours else "other-job", us.host)
        raise NotProven("no-key" if ours else "other-job", host, answer)


async def hear_first(wire: Wire, us: Pass) -> Message | None:
    """Return the first message of somebody who has connected to us, who have no key; None at the end.

    Raises MalformedInput, OSError, asyncio.TimeoutError, and NotProven where it asks for a proof.
    """
    line = await asyncio.wait_for(wire.line(LINE_MAX), FIRST_WORD_S)
    if not line:
        return None
    try:
        return decode(line, wire.remote)
    except MalformedInput:
        said = proof.decode_or_none(line)
        if not isinstance(said, proof.Prove):
            raise
    ours = (said.job, said.cluster) == (us.job, us.cluster)
    wire.write(proof.refusal("no-key" if ours else "other-job", us.host))
    raise NotProven("key-wanted" if ours else "other-job", said.host)


def own_end(writer: asyncio.StreamWriter) -> str:
    """Return our own address of a connection."""
    return _address(writer.get_extra_info("sockname"))


def far_end(writer: asyncio.StreamWriter) -> str:
    """Return the other side's address of a connection."""
    return _address(writer.get_extra_info("peername"))


def _address(name: tuple[object, ...] | None) -> str:
    return str(name[0]) if name else "0.0.0.0"


def is_address(text: str) -> bool:
    """Return whether ``text`` is an IPv4 or IPv6 address, with or without a scope."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def describe(error: BaseException) -> str:
    """Return why a connection could not be made or kept, in words for people."""
    if isinstance(error, asyncio.TimeoutError | socket.timeout):
        return "no answer"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, ConnectionResetError):
        return "its connection was reset"
    if isinstance(error, OSError) and error.strerror:
        # asyncio puts the address where the reason should be: it is told beside this
        known = error.errno if error.errno in errno.errorcode else None
        return (error.strerror if known is None else os.strerror(known)).lower()
    return str(error) or type(error).__name__
