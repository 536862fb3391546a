"""Who is there, asked once a second for as long as somebody watches: by one small packet a node.

A node is dead when three echoes 0.4 s apart, and a TCP connection beside them, went unanswered. With a second
between two questions that is 2.3 s after its cable was cut at most.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from avahi_gpu.host.echoes import Echoes

EVERY_S = 1.0
TRY_S = 0.4  # a LAN answers in a millisecond, sleepy Wi-Fi in a quarter of a second
TRIES = 3  # of a hundred packets lost one by one, two in a million call a living node dead
GIVE_UP_S = 1.3  # for all of them
# a node beyond these is listed and not asked: thousands of records are somebody's flood, not a cluster
ASKED_AT_MOST = 128


@dataclass(frozen=True)
class Target:
    """Where nodes are asked, once for all records that name the address.

    ``scope``: the interface's index, for a link-local IPv6 address alone. ``port``: of one of the records.
    """

    address: str
    scope: int
    port: int = field(compare=False)


@dataclass(frozen=True)
class Beat:
    """What a target said so far; ``heard_at`` is monotonic time. ``alive`` None: not known, or not yet."""

    alive: bool | None = None
    rtt_s: float | None = None
    heard_at: float | None = None


class Pulse:
    """Asks its targets for ever; an async context manager. ``tell`` is called when one dies or revives."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._beats: dict[Target, Beat] = {}
        self._tasks: dict[Target, asyncio.Task[None]] = {}
        self._by_tcp: set[Target] = set()  # those that answer no echo
        self._echoes: Echoes | None = None

    async def __aenter__(self) -> Pulse:
        self._echoes = Echoes()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        if self._echoes is not None:
            self._echoes.close()

    def follow(self, targets: Iterable[Target]) -> None:
        """Ask these and no others, at most ASKED_AT_MOST: those first that are asked already."""
        wanted = dict.fromkeys(targets)
        for target in [t for t in self._tasks if t not in wanted]:
            self._tasks.pop(target).cancel()
            self._beats.pop(target, None)
            self._by_tcp.discard(target)
        for target in wanted:
            if target not in self._tasks and len(self._tasks) < ASKED_AT_MOST:
                self._beats[target] = Beat()
                self._tasks[target] = asyncio.get_running_loop().create_task(self._keep_asking(target))

    def beat(self, target: Target) -> Beat | None:
        """Return what a target said, None where it is not asked."""
        return self._beats.get(target)

    async def _keep_asking(self, target: Target) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            rtt_s = await self._ask(target)
            before = self._beats[target]
            if rtt_s is not None:
                now = Beat(alive=True, rtt_s=rtt_s, heard_at=loop.time())
            else:
                now = replace(before, alive=self._verdict(target, before), rtt_s=None)
            self._beats[target] = now
            if now.alive != before.alive or before == Beat():
                self._tell()
            await asyncio.sleep(max(0.0, began + EVERY_S - loop.time()))

    def _verdict(self, target: Target, before: Beat) -> bool | None:
        """Return what silence means: nothing where we may send no echo, and TCP was never answered either."""
        assert self._echoes is not None
        may_tell = self._echoes.may_ask(target.address) or before.heard_at is not None
        return False if may_tell else None

    async def _ask(self, target: Target) -> float | None:
        """Return the seconds that an answer took, None where none came."""
        assert self._echoes is not None
        loop = asyncio.get_running_loop()
        may_echo = self._echoes.may_ask(target.address)
        tcp_at = 0 if target in self._by_tcp or not may_echo else 1  # which try brings the connection in
        began = loop.time()
        awaited: set[asyncio.Future[float | None]] = set()
        connecting: asyncio.Future[float | None] | None = None
        try:
            for number in range(TRIES):
                if number == tcp_at:
                    connecting = asyncio.ensure_future(_connect(target))
                    awaited.add(connecting)
                if may_echo and not (number == tcp_at == 0):
                    awaited.add(self._echoes.send(target.address, target.scope))
                end = began + (GIVE_UP_S if number == TRIES - 1 else TRY_S * (number + 1))
                while awaited and (left_s := end - loop.time()) > 0:
                    done, awaited = await asyncio.wait(
                        awaited, timeout=left_s, return_when=asyncio.FIRST_COMPLETED
                    )
                    for answer in done:
                        rtt_s = answer.result()
                        if rtt_s is not None:
                            self._remember(target, by_tcp=answer is connecting)
                            return rtt_s
                await asyncio.sleep(max(0.0, end - loop.time()))
        finally:
            for answer in awaited:
                answer.cancel()
        return None

    def _remember(self, target: Target, *, by_tcp: bool) -> None:
        if by_tcp:
            self._by_tcp.add(target)
        else:
            self._by_tcp.discard(target)


async def _connect(target: Target) -> float | None:
    """Connect and close without a word; return the seconds until it was accepted or refused, None else."""
    loop = asyncio.get_running_loop()
    six = ":" in target.address
    where = (target.address, target.port, 0, target.scope) if six else (target.address, target.port)
    began = loop.time()
    try:
        with socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_STREAM) as sock:
            sock.setblocking(False)
            with contextlib.suppress(ConnectionRefusedError):
                await loop.sock_connect(sock, where)
    except OSError:
        return None
    return loop.time() - began
