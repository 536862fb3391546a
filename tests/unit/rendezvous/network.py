"""A LAN in which time is a queue of events: hosts with own clocks, TCP, and multicast that gets lost.

Nothing here knows the agreement. What is modelled, and how real machines were seen to behave:

- TCP keeps the order of a connection. A process that dies resets its connections; a host without power or
  cable is silent, and what was sent to it arrives late, after retransmissions that wait longer each time.
- A connect to a host that is there is accepted or refused at once; one into nothing ends after 1.5 s.
- A host may have a second, faster network that carries no control connection, but the round. What breaks
  there is seen by the mesh test, and between a member and its leader by the kernel's keepalive.
- mDNS: announcements and queries are lost one by one; a record lives for 10 s after it was last heard, or
  for ever in a cache that protects it; a goodbye may be lost as well.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from avahi_gpu.rendezvous.messages import Attachment

CONNECT_TIMEOUT_S = 1.5
RECORD_TTL_S = 10.0
PUBLISH_S = 0.02  # records are published without probing
QUERIES_S = (0.1, 1.1, 3.1, 7.1, 15.1, 31.1, 63.1)  # after a browser's start, the interval doubling
REFRESH = (0.80, 0.85, 0.90, 0.95)  # of a record's life: when its holders ask again
DAY_S = 86_400.0


class Program(Protocol):
    """What runs on a host and listens on its control port."""

    host: Host
    id: str
    port: int
    mesh_port: int
    alive: bool

    def opened(self, end: End, id: str) -> None: ...
    def open_failed(self, id: str, reason: str) -> None: ...
    def accepted(self, end: End) -> None: ...
    def received(self, end: End, line: bytes) -> None: ...
    def lost(self, end: End, reason: str) -> None: ...
    def seen(self, program: Program) -> None: ...
    def unseen(self, id: str) -> None: ...


@dataclass(eq=False)
class Host:
    """A machine. Its monotonic clock started at ``offset`` and runs ``drift`` too fast."""

    index: int
    name: str
    offset: float
    drift: float
    powered: bool = True
    cable: bool = True
    programs: list[Any] = field(default_factory=list)
    workers: set[tuple[str, Any]] = field(default_factory=set)  # job and token of those that live here
    fast: bool = False  # it has a card in the fast network as well

    @property
    def address(self) -> str:
        return f"10.77.0.{self.index + 1}"

    @property
    def networks(self) -> tuple[Attachment, ...]:
        """What it tells of its networks; every host has Docker's, which joins nobody."""
        fast = [Attachment("eth1", f"10.9.0.{self.index + 1}", 24, "wired", 10_000)] * self.fast
        lan = Attachment("eth0", self.address, 24, "wired", 1000)
        return (*fast, lan, Attachment("docker0", "172.17.0.1", 16, "virtual"))

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(n.address for n in self.networks)

    def clock(self, t: float) -> float:
        """Return the host's monotonic time at true time ``t``."""
        return self.offset + t * (1 + self.drift)

    def true_time(self, clock: float) -> float:
        return (clock - self.offset) / (1 + self.drift)


class Lan:
    """The network and the queue of everything that is going to happen, in true time."""

    def __init__(
        self,
        seed: int,
        hosts: int,
        *,
        loss: float = 0.0,
        slow: bool = False,
        stale: float = 0.0,
        days: int = 0,
    ) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.loss = loss  # of a multicast packet
        self.slow = slow  # a bad Wi-Fi: up to 0.3 s for a packet
        self.stale = stale  # how often a dead record is kept for ever
        self.queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self.order = itertools.count()
        drifts = [self.random.uniform(-0.01, 0.01) for _ in range(hosts)]
        offsets = [self.random.uniform(0, 1e5) + days * DAY_S * i for i in range(hosts)]
        self.hosts = [Host(i, f"node-{i + 1}", offsets[i], drifts[i]) for i in range(hosts)]
        self.blocked: set[tuple[int, int]] = set()  # packets from -> to that are dropped
        self.fast_blocked: set[tuple[int, int]] = set()  # pairs that the fast network does not join
        self.deaf: set[tuple[int, int]] = set()  # multicast from -> to that never arrives
        self.stalled: list[Stream] = []
        self.multicast = Multicast(self)
        self.changed_at = 0.0  # the last time that the network itself became another
        self.trace: list[str] = []
        self.tracing = False

    # --- time ----------------------------------------------------------------------------------------------

    def after(self, delay: float, call: Callable[..., None], *arguments: Any) -> None:
        heapq.heappush(self.queue, (self.now + max(0.0, delay), next(self.order), call, arguments))

    def run(self, until: float) -> None:
        """Let everything happen that is due by ``until``."""
        while self.queue and self.queue[0][0] <= until:
            self.now, _, call, arguments = heapq.heappop(self.queue)
            call(*arguments)
        self.now = until

    def note(self, who: str, what: str) -> None:
        if self.tracing:
            self.trace.append(f"{self.now:9.4f} {who:8} {what}")

    # --- packets -------------------------------------------------------------------------------------------

    def path(self, one: Host, other: Host) -> bool:
        """Whether a packet from ``one`` to ``other`` arrives now."""
        if one is other:
            return one.powered
        up = one.powered and other.powered and one.cable and other.cable
        return up and (one.index, other.index) not in self.blocked

    def both_ways(self, one: Host, other: Host) -> bool:
        return self.path(one, other) and self.path(other, one)

    @staticmethod
    def network_of(address: str) -> str:
        return address.rpartition(".")[0]

    def joined(self, one: Host, other: Host, address: str) -> bool:
        """Whether the network of ``address``, which is ``other``'s, joins the two."""
        if self.network_of(address) == "10.9.0":
            pair = (one.index, other.index)
            return one.powered and other.powered and not {pair, pair[::-1]} & self.fast_blocked
        return self.both_ways(one, other)

    def delay(self) -> float:
        if self.slow and self.random.random() < 0.5:
            return self.random.uniform(0.01, 0.3)
        return self.random.uniform(0.0002, 0.003)

    def topology_changed(self) -> None:
        """Cables, power or blocks are not what they were: what waits for a way may go on."""
        self.changed_at = self.now
        self.note("", f"network: {self.describe()}")
        stalled, self.stalled = self.stalled, []
        for stream in stalled:
            waited = self.now - stream.stalled_since
            self.after(self.random.uniform(0.05, max(0.2, min(waited, 5.0))), stream.pump)

    def describe(self) -> str:
        off = [h.name for h in self.hosts if not h.powered]
        cut = [h.name for h in self.hosts if not h.cable]
        return f"off {off} cut {cut} blocked {sorted(self.blocked)} deaf {sorted(self.deaf)}"

    # --- TCP -----------------------------------------------------------------------------------------------

    def host_at(self, address: str) -> Host | None:
        return next((h for h in self.hosts if address in h.addresses), None)

    def listener(self, address: str, port: int) -> Program | None:
        host = self.host_at(address)
        programs = host.programs if host else []
        return next((p for p in programs if p.alive and p.port == port), None)

    def connect(self, program: Program, id: str, address: str, port: int) -> None:
        """Open a connection; the program hears ``opened`` or ``open_failed``."""
        attempt = Attempt(self, program, id, address, port)
        self.after(CONNECT_TIMEOUT_S, attempt.time_out)
        self.after(self.delay(), attempt.arrive)
        self.after(1.0 + self.delay(), attempt.arrive)  # a SYN that got lost is sent again once in that time


@dataclass(eq=False)
class Attempt:
    """A connect under way."""

    lan: Lan
    program: Program
    id: str
    address: str
    port: int
    arrived: bool = False
    over: bool = False
    end: End | None = None

    def arrive(self) -> None:
        target = self.lan.host_at(self.address)
        if self.over or self.arrived or target is None or not self.lan.path(self.program.host, target):
            return
        listener = self.lan.listener(self.address, self.port)
        if listener is None:
            if self.lan.path(target, self.program.host):
                self.arrived = True
                self.lan.after(self.lan.delay(), self.fail, "connection refused")
            return
        self.arrived = True
        ours, theirs = connection(self.lan, self.program, listener)
        self.end = ours
        theirs.out.push(("open", self))
        listener.accepted(theirs)

    def succeed(self) -> None:
        assert self.end is not None
        if self.over or not self.program.alive:
            self.end.abort()
            return
        self.over = True
        self.program.opened(self.end, self.id)

    def fail(self, reason: str) -> None:
        if not self.over and self.program.alive:
            self.over = True
            self.program.open_failed(self.id, reason)

    def time_out(self) -> None:
        self.fail("no answer")


@dataclass(eq=False)
class End:
    """One end of a connection, as a program holds it."""

    lan: Lan
    program: Program
    far: Host
    open: bool = True
    opened_at: float = 0.0
    disturbed: bool = False  # something on its way had to wait
    out: Stream = field(init=False)
    peer: End = field(init=False)

    def send(self, line: bytes) -> None:
        if self.open:
            self.out.push(("data", line))

    def close(self) -> None:
        """Close it; the other side reads what was sent, then the end."""
        if self.open:
            self.open = False
            self.out.push(("fin", "its connection was closed"))

    def abort(self) -> None:
        """Close it at once, as for a process that died."""
        if self.open:
            self.open = False
            self.out.push(("fin", "its connection was reset"))

    def vanish(self) -> None:
        """The power is gone: nobody says anything any more."""
        self.open = False
        self.out.queue.clear()


def connection(lan: Lan, one: Program, other: Program) -> tuple[End, End]:
    """Return the two ends of a fresh connection."""
    ours, theirs = End(lan, one, other.host), End(lan, other, one.host)
    ours.peer, theirs.peer = theirs, ours
    ours.out, theirs.out = Stream(lan, ours, theirs), Stream(lan, theirs, ours)
    ours.opened_at = theirs.opened_at = lan.now
    return ours, theirs


@dataclass(eq=False)
class Stream:
    """One direction of a connection: in order, late, or stuck."""

    lan: Lan
    source: End
    target: End
    queue: deque[tuple[float, tuple[str, Any]]] = field(default_factory=deque)
    last: float = 0.0
    stalled_since: float = 0.0

    def push(self, packet: tuple[str, Any]) -> None:
        self.last = max(self.last, self.lan.now + self.lan.delay())
        self.queue.append((self.last, packet))
        self.lan.after(self.last - self.lan.now, self.pump)

    def pump(self) -> None:
        while self.queue and self.queue[0][0] <= self.lan.now:
            if not self.lan.path(self.source.program.host, self.target.program.host):
                if self not in self.lan.stalled:
                    self.stalled_since = self.lan.now
                    self.lan.stalled.append(self)
                self.source.disturbed = self.target.disturbed = True
                return
            self.arrive(*self.queue.popleft()[1])

    def arrive(self, kind: str, content: Any) -> None:
        target = self.target
        if kind == "open":
            content.succeed()
        elif not target.open or not target.program.alive:
            if kind == "data":  # nobody has that connection any more
                target.out.push(("fin", "its connection was reset"))
        elif kind == "data":
            target.program.received(target, content)
        else:
            target.open = False
            target.program.lost(target, content)


class Multicast:
    """mDNS: who has heard of whom. A pair is (who browses, whose record)."""

    def __init__(self, lan: Lan) -> None:
        self.lan = lan
        self.heard_at: dict[tuple[Program, Program], float] = {}
        self.browsing: list[Program] = []
        self.announced: dict[Program, None] = {}  # in order, so that a seed is one life

    def start(self, program: Program) -> None:
        """The program publishes its record, and browses."""
        self.browsing.append(program)
        for delay in (0.0, 1.0, 3.0):
            self.lan.after(PUBLISH_S + delay, self.announce, program)
        for delay in QUERIES_S:
            self.lan.after(delay, self.query, program)

    def carried(self, one: Host, other: Host) -> bool:
        """Whether this one packet arrives."""
        pair = (one.index, other.index)
        return (
            self.lan.path(one, other)
            and pair not in self.lan.deaf
            and self.lan.random.random() >= self.lan.loss
        )

    def announce(self, program: Program) -> None:
        if program.alive:
            self.announced[program] = None
            for other in self.browsing:
                if other is not program and other.alive and self.carried(program.host, other.host):
                    self.lan.after(self.lan.random.uniform(0.001, 0.02), self.hear, other, program)

    def query(self, asker: Program) -> None:
        """A question by multicast; everybody hears the answers."""
        if asker.alive:
            for program in list(self.announced):
                if program.alive and program is not asker and self.carried(asker.host, program.host):
                    self.lan.after(self.lan.random.uniform(0.02, 0.12), self.announce, program)

    def hear(self, browser: Program, program: Program) -> None:
        if not browser.alive:
            return
        pair = (browser, program)
        fresh = pair not in self.heard_at
        self.heard_at[pair] = self.lan.now
        if fresh or self.lan.random.random() < 0.05:
            browser.seen(program)
        for part in REFRESH:
            self.lan.after(
                RECORD_TTL_S * part * self.lan.random.uniform(1, 1.02), self.refresh, pair, self.lan.now
            )
        self.lan.after(RECORD_TTL_S, self.expire, pair, self.lan.now)

    def refresh(self, pair: tuple[Program, Program], heard: float) -> None:
        if self.heard_at.get(pair) == heard:
            self.query(pair[0])

    def expire(self, pair: tuple[Program, Program], heard: float) -> None:
        if self.heard_at.get(pair) == heard:
            if not pair[1].alive and self.lan.random.random() < self.lan.stale:
                return  # some cache keeps it alive for everybody
            del self.heard_at[pair]
            if pair[0].alive:
                pair[0].unseen(pair[1].id)

    def stop(self, program: Program, *, goodbye: bool) -> None:
        """The program is gone; with power and a working daemon, its record is withdrawn."""
        self.announced.pop(program, None)
        self.browsing = [p for p in self.browsing if p is not program]
        if goodbye:
            for other in self.browsing:
                pair = (other, program)
                if pair in self.heard_at and self.carried(program.host, other.host):
                    self.lan.after(1.0, self.expire, pair, self.heard_at[pair])
