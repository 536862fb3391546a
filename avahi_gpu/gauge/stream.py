"""One TCP connection between two nodes of a measurement: round trips, then one way as fast as it goes.

Whoever measures connects and says what it wants, after the secret that all nodes of this measurement share.
The receiver decides when a stream is over and sends what it has counted. Blocking, with a deadline on every
call: it runs in a thread of its own, so that nothing of ours takes the processor from it.
"""

from __future__ import annotations

import hmac
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from avahi_gpu.gauge.figures import percentile
from avahi_gpu.gauge.messages import Place, Tried
from avahi_gpu.gauge.schedule import WARM_SHARE
from avahi_gpu.rendezvous.wire import describe

CHUNK = 1 << 20  # bytes handed to the kernel at once: fewer calls than it takes to fill any card
ECHO_BYTES = 64  # about what a barrier sends
ECHO_MIN = 5  # round trips, however long they take
ECHO_WARM = 3  # the first ones wake processors and fill neighbour tables
CONNECT_S = 3.0  # two lost SYNs
HEAD_S = 1.0  # a stranger that says nothing holds nobody up for longer
GRACE_S = 5.0  # beyond the time that was asked for: retransmissions, a machine that is busy
SEND_MAX_S = 30.0  # what a stranger with the secret could hold us up
POLL_S = 0.2  # how soon the end of the measurement is seen
HEAD = struct.Struct("!32scdd")  # the secret, what is wanted, seconds in all, seconds not counted
TAIL = struct.Struct("!QQ")  # bytes, nanoseconds
ECHO, SEND = b"e", b"s"
RESENT_AT, SENT_AT = (
    100,
    136,
)  # tcpi_total_retrans and tcpi_segs_out in struct tcp_info (linux/tcp.h), u32 each


@dataclass(frozen=True)
class Wanted:
    """What a connection is for. ``whole_s``: of sending, ``warm_s`` of which is not counted."""

    kind: bytes
    whole_s: float
    warm_s: float


class Receiver:
    """Answers the other nodes on a port of its own, one after the other, until it is closed."""

    def __init__(self, address: str) -> None:
        """Raises OSError where the address is not ours any more."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._secret = ""  # nobody is let in before it is known
        self._welcome: frozenset[str] = frozenset()
        self._closed = threading.Event()
        self._socket = socket.create_server((address, 0), family=family, backlog=16)
        self._socket.settimeout(POLL_S)
        self.port = int(self._socket.getsockname()[1])
        self._thread = threading.Thread(target=self._run, name="receiver", daemon=True)
        self._thread.start()

    def let_in(self, secret: str, addresses: Iterable[str]) -> None:
        """Answer those who know the secret and come from one of these addresses."""
        self._secret, self._welcome = secret, frozenset(addresses)

    def close(self) -> None:
        """Answer nobody any more."""
        self._closed.set()
        self._thread.join(2 * POLL_S)

    def _run(self) -> None:
        buffer = bytearray(CHUNK)
        with self._socket:
            while not self._closed.is_set():
                try:
                    connection, where = self._socket.accept()
                except OSError:  # nobody has come, or too many files are open
                    self._closed.wait(0.01)
                    continue
                with connection, suppress(OSError, ValueError):
                    if where[0] in self._welcome:
                        connection.settimeout(HEAD_S)
                        self._answer(connection, buffer)

    def _answer(self, connection: socket.socket, buffer: bytearray) -> None:
        wanted = read_head(read_exactly(connection, HEAD.size), self._secret)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(POLL_S)
        until = time.monotonic() + wanted.whole_s + GRACE_S
        if wanted.kind == ECHO:
            self._echo(connection, until)
        else:
            self._count(connection, wanted, until, memoryview(buffer))

    def _echo(self, connection: socket.socket, until: float) -> None:
        while not self._closed.is_set() and time.monotonic() < until:
            with suppress(TimeoutError):
                said = connection.recv(ECHO_BYTES)
                if not said:
                    return
                connection.sendall(said)

    def _count(self, connection: socket.socket, wanted: Wanted, until: float, buffer: memoryview) -> None:
        """Count what comes between the end of the warm-up and the end of the time; then say it."""
        total, began, counted_from = 0, 0, 0
        now = time.monotonic_ns()
        while not self._closed.is_set() and now < until * 1e9:
            try:
                read = connection.recv_into(buffer)
            except TimeoutError:
                read = -1
            now = time.monotonic_ns()
            if read == 0:
                return
            if read > 0 and not began:
                began = now
            elif began and not counted_from and now - began >= wanted.warm_s * 1e9:
                counted_from = now  # this piece came before
            elif counted_from:
                total += max(read, 0)
            if counted_from and now - counted_from >= (wanted.whole_s - wanted.warm_s) * 1e9:
                break
        connection.settimeout(GRACE_S)
        connection.sendall(TAIL.pack(total, now - counted_from if counted_from else 0))
        # what the other side has sent meanwhile would otherwise reset the connection, and our words with it
        drained = time.monotonic() + GRACE_S
        while time.monotonic() < drained and connection.recv_into(buffer):
            pass


def read_head(head: bytes, secret: str) -> Wanted:
    """Return what a connection is for. Raises ValueError for one that is not of this measurement."""
    said, kind, whole_s, warm_s = HEAD.unpack(head)
    if not secret or not hmac.compare_digest(said, secret.encode()):
        raise ValueError("not of this measurement")
    if kind not in (ECHO, SEND) or not 0 <= warm_s <= whole_s <= SEND_MAX_S:
        raise ValueError("no such wish")
    return Wanted(kind, whole_s, warm_s)


def read_exactly(connection: socket.socket, size: int) -> bytes:
    """Return so many bytes. Raises OSError, also where the other side ends before."""
    found = b""
    while len(found) < size:
        more = connection.recv(size - len(found))
        if not more:
            raise ConnectionResetError
        found += more
    return found


@dataclass(frozen=True)
class Way:
    """From an address of ours to another node; ``stop``: whether the measurement has ended meanwhile."""

    own: str
    place: Place
    secret: str
    stop: Callable[[], bool] = lambda: False

    def dial(self, wanted: Wanted) -> socket.socket:
        """Return a connection that has said what it is for. Raises OSError."""
        where = (self.place.address, self.place.port)
        connection = socket.create_connection(where, CONNECT_S, (self.own, 0))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(GRACE_S)
        connection.sendall(HEAD.pack(self.secret.encode(), wanted.kind, wanted.whole_s, wanted.warm_s))
        return connection


def measure(way: Way, echo_s: float, send_s: float) -> Tried:
    """Measure a way; what goes wrong is told in the answer."""
    place = way.place
    try:
        trips = echo(way, echo_s)
        bits, resent = send(way, send_s)
    except (OSError, ValueError) as error:
        return Tried(error=f"{place.address} port {place.port}: {describe(error)}")
    return Tried(
        bits_per_s=bits,
        round_trip_best_s=min(trips),
        round_trip_s=percentile(trips, 0.5),
        round_trip_p99_s=percentile(trips, 0.99),
        resent=resent,
    )


def echo(way: Way, echo_s: float) -> list[float]:
    """Return round trips in seconds, at least one. Raises OSError."""
    trips: list[float] = []
    message = bytes(ECHO_BYTES)
    with way.dial(Wanted(ECHO, echo_s, 0.0)) as connection:
        began = last = time.perf_counter()
        while not way.stop() and (last - began < echo_s or len(trips) < ECHO_MIN + ECHO_WARM):
            if last - began > echo_s + GRACE_S / 2 and len(trips) > ECHO_WARM:
                break
            connection.sendall(message)
            read_exactly(connection, ECHO_BYTES)
            now = time.perf_counter()
            trips.append(now - last)
            last = now
    return trips[ECHO_WARM:] or trips


def send(way: Way, send_s: float) -> tuple[float, float]:
    """Return bits per second as the receiver counts them, and the share of segments sent again.

    Raises OSError.
    """
    chunk = memoryview(bytes(CHUNK))
    with way.dial(Wanted(SEND, send_s, WARM_SHARE * send_s)) as connection:
        connection.setblocking(False)
        waiting = select.poll()
        waiting.register(connection, select.POLLIN | select.POLLOUT)
        until = time.monotonic() + send_s + 2 * GRACE_S
        while True:
            if way.stop() or time.monotonic() > until:
                raise TimeoutError
            events = dict(waiting.poll(1000 * POLL_S))
            state = events.get(connection.fileno(), 0)
            if state & (select.POLLIN | select.POLLHUP | select.POLLERR):
                break
            if state & select.POLLOUT:
                with suppress(BlockingIOError):
                    connection.send(chunk)
        connection.settimeout(GRACE_S)
        size, took_ns = TAIL.unpack(read_exactly(connection, TAIL.size))
        resent = share_resent(connection)
        # what still waits in our queue is thrown away: on a slow link it would run for seconds
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if not took_ns:
        raise TimeoutError
    return 8e9 * size / took_ns, resent


def share_resent(connection: socket.socket) -> float:
    """Return the share of segments that were sent again; 0 where the kernel does not tell.

    TCP_INFO of tcp(7).
    """
    with suppress(OSError):
        told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, SENT_AT + 4)
        if len(told) >= SENT_AT + 4:
            again, sent = (int(struct.unpack_from("=I", told, at)[0]) for at in (RESENT_AT, SENT_AT))
            return min(1.0, again / max(1, sent))
    return 0.0
