"""What this machine tells of itself, and what it tries when it is asked to."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket
import time
from collections.abc import Iterable, Sequence

from avahi_gpu.avahi.browse import resolve_host
from avahi_gpu.avahi.bus import Avahi
from avahi_gpu.errors import BusError
from avahi_gpu.host import nss, reach
from avahi_gpu.host.aside import aside
from avahi_gpu.host.net import lan_interfaces
from avahi_gpu.host.system import System
from avahi_gpu.model import Address, Interface
from avahi_gpu.survey import messages as m
from avahi_gpu.survey.limits import without_containers

RESOLVE_S = 6.0  # of one name; Avahi itself gives up after 5 s
LOOKUPS_AT_ONCE = 4  # each is a process
CONNECTS_AT_ONCE = 64
HELD_MAX = 8  # connections to a port that we listen on, which are closed as soon as they are there


class Witness:
    """This machine. ``avahi`` None: it does not run here."""

    def __init__(self, system: System, avahi: Avahi | None, about: m.About) -> None:
        self.system, self.avahi, self.about = system, avahi, about
        self._lookups = asyncio.Semaphore(LOOKUPS_AT_ONCE)
        self._connects = asyncio.Semaphore(CONNECTS_AT_ONCE)

    def clock(self) -> m.Now:
        """Tell the time of day."""
        return m.Now(time.time())

    async def probe(self, target: m.Target, here: str) -> m.Report:
        """Resolve, ping and connect. ``here``: our address towards whoever asks."""
        address = with_zone(target.address, here)
        glibc, avahi, echo, ports = await asyncio.gather(
            self._ask_glibc(target.host),
            self._ask_avahi(target.host),
            reach.echo(address),
            asyncio.gather(*(self._connect(address, port) for port in target.ports)),
        )
        # one that fills a frame tells nothing where not even a small one comes back
        frame = await reach.echo(address, target.mtu) if target.mtu and echo.ok else reach.Attempt(None)
        return m.Report(glibc, avahi, _tried(echo), _tried(frame), tuple(ports))

    async def _connect(self, address: str, port: int) -> m.Tried:
        async with self._connects:
            return _tried(await reach.connect(address, port))

    async def _ask_glibc(self, host: str) -> m.Tried:
        if not host:
            return m.Tried()
        async with self._lookups:
            found = await aside(nss.lookup, self.system, host, None, RESOLVE_S)
        if found.addresses:
            return m.Tried(True, m.clip(", ".join(found.addresses)), found.elapsed_s)
        return m.Tried(False, m.clip(found.error), found.elapsed_s)

    async def _ask_avahi(self, host: str) -> m.Tried:
        if not host or self.avahi is None:
            return m.Tried()
        began = time.monotonic()
        asked = {asyncio.ensure_future(resolve_host(self.avahi, host, family=family)) for family in (4, 6)}
        words = "no answer"
        try:
            for answer in asyncio.as_completed(asked, timeout=RESOLVE_S):
                try:
                    address, _ = await answer
                except BusError as fault:
                    words = fault.message
                    continue
                return m.Tried(True, m.clip(address), time.monotonic() - began)
        except asyncio.TimeoutError:
            pass
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        return m.Tried(False, m.clip(words), time.monotonic() - began)


class Ears:
    """Ports that we listen on for a while, saying nothing; closed with ``close``."""

    def __init__(self) -> None:
        self._servers: list[asyncio.Server] = []
        self._timer: asyncio.TimerHandle | None = None

    async def open(self, address: str, asked: Sequence[int], seconds: float) -> m.Listening:
        """Listen on these ports in place of earlier ones; 0 stands for any free one.

        On all addresses of the family of ``address``, else on it alone where another program has the port on
        a different one.
        """
        self.close()
        opened = [await self._open(address, port) for port in asked]
        self._timer = asyncio.get_running_loop().call_later(seconds, self.close)
        return m.Listening(tuple(opened))

    async def _open(self, address: str, port: int) -> m.Opened:
        everywhere = "::" if ":" in address else "0.0.0.0"
        try:
            try:
                server = await asyncio.start_server(_hang_up, everywhere, port, backlog=HELD_MAX)
            except OSError:
                server = await asyncio.start_server(_hang_up, address, port, backlog=HELD_MAX)
        except OSError as fault:
            if fault.errno == errno.EADDRINUSE:
                return m.Opened(port, port, True, "another program listens there")
            return m.Opened(port, port, False, m.clip(reach.explain(fault)))
        self._servers.append(server)
        return m.Opened(port, int(server.sockets[0].getsockname()[1]), True)

    def close(self) -> None:
        """Listen no more."""
        if self._timer is not None:
            self._timer.cancel()
        for server in self._servers:
            server.close()
        self._servers.clear()


async def _hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def _tried(attempt: reach.Attempt) -> m.Tried:
    return m.Tried(attempt.ok, m.clip(attempt.words), attempt.took_s)


def with_zone(address: str, here: str) -> str:
    """Return a link-local IPv6 address with the interface of ``here``; every other one as it is."""
    try:
        plain = ipaddress.ip_address(address)
    except ValueError:
        return address
    zone = here.partition("%")[2]
    return f"{address}%{zone}" if plain.version == 6 and plain.is_link_local and zone else address


def describe_networks(interfaces: Iterable[Interface]) -> tuple[m.Network, ...]:
    """Return the LANs of this machine as it tells others of them.

    Without IPv6 link-local addresses: every interface has one, which tells nothing of who shares a network.
    """
    return tuple(
        m.Network(
            i.name[:15],
            min(i.mtu, 65536),
            tuple(m.Ip4or6(a.ip, a.prefix) for a in _told(i)[: m.ADDRESSES_MAX]),
        )
        for i in without_containers(lan_interfaces(interfaces))[: m.NETWORKS_MAX]
    )


def _told(interface: Interface) -> list[Address]:
    return [a for a in interface.addresses if a.scope == "global" or a.family == 4]


def own_hostname() -> str:
    """Return the kernel's name of this machine."""
    return socket.gethostname()[:255]
