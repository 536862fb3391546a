"""The first moments of a connection between two doctors: the proof of the cluster key, then bounded lines."""

from __future__ import annotations

import asyncio
import secrets

from avahi_gpu.errors import MalformedInput
from avahi_gpu.rendezvous import proof
from avahi_gpu.rendezvous.proof import PROOF_LINE_MAX, SEAL_DIGITS, Handshake, NotProven, Pass
from avahi_gpu.rendezvous.wire import PROVE_S, READ_AT_ONCE, Wire
from avahi_gpu.survey.messages import LINE_MAX, Said, decode, encode

JOB = "avahi-gpu doctor"  # what the proof of the key is for: one for a job opens nothing here
CONNECT_S = 2.2  # a lost SYN is repeated after a second
FIRST_WORD_S = 3.0  # for whoever connects


class Line:
    """A connection to another doctor, sealed where both hold the key."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    @property
    def here(self) -> str:
        return self.wire.here

    @property
    def remote(self) -> str:
        return self.wire.remote

    def say(self, said: Said) -> None:
        """Send one line."""
        line = encode(said)
        session = self.wire.session
        self.wire.write(session.seal(line) if session is not None else line)

    async def hear(self, within_s: float) -> Said | None:
        """Return the next line, None at the end. Raises MalformedInput, NotProven, OSError, TimeoutError."""
        session = self.wire.session
        limit = LINE_MAX + (SEAL_DIGITS + 1 if session is not None else 0)
        line = await asyncio.wait_for(self.wire.line(limit), within_s)
        if not line:
            return None
        if session is not None:
            return decode(session.open(line, self.remote), self.remote)
        try:
            return decode(line, self.remote)
        except MalformedInput:
            said = proof.decode_or_none(line)
            if isinstance(said, proof.Unproven):
                raise NotProven(said.why, said.host) from None
            raise

    def abort(self) -> None:
        """End it at once."""
        self.wire.abort()

    async def close(self) -> None:
        """End it once what was said is out."""
        await self.wire.close()


async def dial(address: str, port: int, us: Pass) -> Line:
    """Connect, and prove the key where we have one. Raises OSError, asyncio.TimeoutError or NotProven."""
    connecting = asyncio.open_connection(address, port, limit=READ_AT_ONCE)
    wire = Wire(*await asyncio.wait_for(connecting, CONNECT_S))
    if us.key is not None:
        try:
            await asyncio.wait_for(_prove(wire, us), PROVE_S)
        except (asyncio.TimeoutError, MalformedInput):
            wire.abort()
            raise NotProven("no-proof") from None
        except BaseException:
            await wire.close()
            raise
    return Line(wire)


async def greet(line: Line, us: Pass) -> Said | None:
    """Return the first line of whoever has connected to us, None where they go again; the key is proven then.

    Raises NotProven, MalformedInput, OSError or asyncio.TimeoutError.
    """
    wire = line.wire
    first = await asyncio.wait_for(wire.line(min(PROOF_LINE_MAX, LINE_MAX)), FIRST_WORD_S)
    if not first:
        return None
    if us.key is None:
        if isinstance(proof.decode_or_none(first), proof.Prove):
            wire.write(proof.refusal("no-key", us.host))
            raise NotProven("key-wanted")
        return decode(first, line.remote)
    if proof.decode_or_none(first) is None:
        wire.write(proof.refusal("key-wanted", us.host))
        raise NotProven("no-key")
    await asyncio.wait_for(_prove(wire, us, first), PROVE_S)
    return await line.hear(FIRST_WORD_S)


async def _prove(wire: Wire, us: Pass, first: bytes = b"") -> None:
    """Prove the key to the other side, and it to us. ``first``: its first line; b'' where we begin."""
    handshake = Handshake(us, secrets.token_bytes(proof.NONCE_BYTES), wire.here, wire.remote)
    heard = first
    if not first:
        wire.write(handshake.begin())
        heard = await wire.line(PROOF_LINE_MAX)
    try:
        while heard:
            wire.write(handshake.hear(heard))
            if handshake.session is not None:
                wire.session = handshake.session
                return
            heard = await wire.line(PROOF_LINE_MAX)
    except NotProven as failure:
        wire.write(failure.answer)
        raise
    raise NotProven("no-proof", handshake.host)
