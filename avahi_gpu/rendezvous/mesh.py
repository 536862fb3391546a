"""The ports of a round, and the test that every member reaches every other one before it starts."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import math
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field

from avahi_gpu.errors import LaunchFailed
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.messages import Seat
from avahi_gpu.rendezvous.wire import describe, far_end, is_address

PORT_TRIES = 20  # an ephemeral port that is free for IPv4 is nearly always free for IPv6
HELD_DEAD_S = 30.0  # a member that has vanished is forgotten then
HELD_MAX = 128  # connections that other members hold to ours: a round has 64 seats at most
REDIAL_S = 0.5  # before a connection that was ended is made again: whoever is gone refuses it then
CLOSE_S = 0.5  # readers that are told to end do so in the next round of the loop
MESH_TIMEOUT_S = 2.0  # a lost SYN is repeated after 1 s; who has not answered two is blocked
WORKER_PORTS = range(29500, 30000)  # below every kernel's ephemeral range, torch's own default first


def listen_on(address: str, port: int = 0) -> socket.socket:
    """Return a socket that listens on ``address``; raises OSError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # a port in TIME_WAIT is free for torch too
        sock.bind((address, port))
        sock.listen(128)
    except OSError:
        sock.close()
        raise
    return sock


def port_of(sock: socket.socket) -> int:
    """Return the port that a socket is bound to."""
    return int(sock.getsockname()[1])


def claim(name: str) -> socket.socket | None:
    """Claim ``name`` (100 bytes at most) on this host until the socket is closed or the process ends.

    Returns None where it is claimed. Raises LaunchFailed where that cannot be told.
    An abstract Unix socket: one name space for each network namespace, gone with its process (unix(7)).
    """
    sock = None
    try:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.bind("\0avahi-gpu/" + name)
    except OSError as error:
        if sock is not None:
            sock.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise LaunchFailed(
            f"this process cannot claim {name} on its host: {describe(error)}",
            "look at `ulimit -n`, and at what a sandbox forbids",
        ) from None
    return sock


def claim_job(job: str, cluster: str) -> socket.socket | None:
    """Claim a job on this host as ``claim`` does, whatever the length of its name."""
    whole = "\0".join((cluster, job)).encode("utf-8", "replace")
    return claim("job/" + hashlib.sha256(whole).hexdigest())


@dataclass(frozen=True)
class Formed:
    """A round, with what is ours in it: the interface, and on the leader the socket of the agents' store."""

    round: steps.Round
    interface: str
    store: socket.socket | None


@dataclass
class Ports:
    """What a leader holds for one proposal: the store's socket and the port that its workers will take.

    The worker port is held by name for as long as the round lives, so that no other job of this host takes
    it, and listens until the round begins, so that the mesh test can reach it.
    """

    store: socket.socket
    worker_port: int
    _held: list[socket.socket] = field(default_factory=list)
    _claimed: socket.socket | None = None

    def open_for_workers(self) -> None:
        """The round begins: the worker of rank 0 will listen on the port itself."""
        for sock in self._held:
            sock.close()
        self._held.clear()

    def release(self) -> None:
        """Nobody needs the ports any more. The store's socket belongs to torch once the round has begun."""
        self.open_for_workers()
        if self._claimed is not None:
            self._claimed.close()
            self._claimed = None

    def discard(self) -> None:
        """The proposal has failed: the store's socket goes too."""
        self.release()
        self.store.close()


def reserve(address: str, after: int = 0) -> Ports:
    """Reserve the ports of a round on ``address``; a worker port behind ``after``, so that each round has a
    fresh one. Raises LaunchFailed."""
    store = listen_on(address)
    later = [p for p in WORKER_PORTS if p > after] + [p for p in WORKER_PORTS if p <= after]
    for port in later:
        try:
            claimed = claim(f"port/{port}")
        except LaunchFailed:
            store.close()
            raise
        if claimed is None:
            continue
        with contextlib.suppress(OSError):
            return Ports(store, port, [listen_on("0.0.0.0" if ":" not in address else "::", port)], claimed)
        claimed.close()
    store.close()
    raise LaunchFailed(
        f"every port from {WORKER_PORTS.start} to {WORKER_PORTS.stop - 1} is taken there",
        "`ss -ltnp` shows by whom",
    )


class MeshListener:
    """An ephemeral port of every address, for the other members to reach; it says nothing.

    A connection stays for as long as the other side holds it: see ``watch_seat``.
    """

    def __init__(self) -> None:
        self.port = 0
        self._servers: list[asyncio.Server] = []
        self._held: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}  # oldest first
        self.members: frozenset[str] = frozenset()  # the addresses of the running round's seats

    async def open(self) -> int:
        """Listen, IPv4 and IPv6; return the port. Raises OSError."""
        for _ in range(PORT_TRIES):
            server = await asyncio.start_server(self._accept, "0.0.0.0", 0)
            self.port = port_of(server.sockets[0])
            self._servers = [server]
            try:
                self._servers.append(await asyncio.start_server(self._accept, "::", self.port))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    server.close()
                    continue  # a host without IPv6 has no second one
            break
        return self.port

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._make_room(far_end(writer)):
            self._held[writer] = asyncio.current_task()
            set_keepalive(writer, HELD_DEAD_S)
            with contextlib.suppress(OSError):
                await reader.read(1)  # nobody has anything to say here
            self._held.pop(writer, None)
        writer.close()

    def _make_room(self, newcomer: str) -> bool:
        """Return whether a newcomer may stay; a stranger never takes the place of a member."""
        if len(self._held) < HELD_MAX:
            return True
        strangers = (w for w in self._held if far_end(w) not in self.members)
        oldest = next(strangers, None)
        if oldest is None and newcomer in self.members:
            oldest = next(iter(self._held))
        if oldest is not None:
            self._held.pop(oldest)
            oldest.close()  # which ends its reading
        return oldest is not None

    async def close(self) -> None:
        """Stop listening, and let nothing go on reading."""
        for server in self._servers:
            server.close()
        readers = [task for task in self._held.values() if task is not None]
        for writer in self._held:
            writer.close()  # which ends its reading
        if readers:
            await asyncio.wait(readers, timeout=CLOSE_S)
        self._servers.clear()


async def test_mesh(
    seats: Sequence[Seat], own_id: str, store_port: int, worker_port: int
) -> tuple[tuple[str, str], ...]:
    """Reach every other seat and the leader's two ports; return the ids not reached, with sentences."""
    own = next(s for s in seats if s.id == own_id)
    targets = [(s, s.mesh_port) for s in seats if s.id != own_id]
    if seats[0].id != own_id:
        targets += [(seats[0], store_port), (seats[0], worker_port)]
    tried = await asyncio.gather(*(_reach(own, seat, port) for seat, port in targets))
    failed: dict[str, str] = {}
    for (seat, _), sentence in zip(targets, tried, strict=True):
        if sentence is not None:
            failed.setdefault(seat.id, sentence)
    return tuple(failed.items())


async def _reach(own: Seat, seat: Seat, port: int) -> str | None:
    if not is_address(seat.address):
        return f"{seat.host} is given an address that is none"
    try:
        connecting = asyncio.open_connection(seat.address, port, local_addr=(own.address, 0))
        _, writer = await asyncio.wait_for(connecting, MESH_TIMEOUT_S)
    except (OSError, asyncio.TimeoutError) as error:
        why = describe(error)
        guess = ": is a firewall in between?" if why == "no answer" else ""
        way = f"{own.host} ({own.address}) cannot reach {seat.host} ({seat.address})"
        return f"{way} on port {port} ({why}){guess}"
    writer.close()
    return None


async def watch_seat(own: Seat, leader: Seat, lost_after_s: float) -> str:
    """Hold a connection between two seats; say so once nothing comes through it, '' where nobody listens.

    The control connection may run on another network than the round, and would not notice. It is the kernels
    that ask and answer, every second, so a frozen process is none that is lost. A connection that just ends
    is made again: the other side may have had too many.
    """
    if not is_address(leader.address):
        return ""
    while True:
        reason = await _hold(own, leader, lost_after_s)
        if reason is not None:
            return reason
        await asyncio.sleep(REDIAL_S)


async def _hold(own: Seat, leader: Seat, lost_after_s: float) -> str | None:
    """Hold one connection to its end; None where another one is worth a try."""
    connecting = asyncio.open_connection(leader.address, leader.mesh_port, local_addr=(own.address, 0))
    try:
        reader, writer = await asyncio.wait_for(connecting, MESH_TIMEOUT_S)
    except ConnectionRefusedError:
        return ""  # its process has ended, which the control connection tells
    except (OSError, asyncio.TimeoutError):
        return None  # it was reached a moment ago
    try:
        set_keepalive(
            writer, lost_after_s + 1
        )  # where the control connection runs here too, it says it first
        await reader.read(1)
    except ConnectionResetError:
        pass
    except OSError as error:
        return (
            f"{own.host} ({own.address}) is cut off from {leader.host} ({leader.address}): {describe(error)}"
        )
    finally:
        writer.close()
    return None


def set_keepalive(writer: asyncio.StreamWriter, dead_after_s: float) -> None:
    """Let the kernel end a connection with ETIMEDOUT that nothing has come through for so long (tcp(7)).

    It asks once a second, so the end comes within a second after that time, and never before it.
    """
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, max(2, math.ceil(dead_after_s)))
