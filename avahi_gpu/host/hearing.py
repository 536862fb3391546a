"""Who hears whom: avahi-daemon asks the neighbours, and a tap on the card watches question and answer.

Each neighbour is asked for the name of its own address, which nobody else answers, by a question that
avahi-daemon's cache cannot answer (host/questions.py), so that the neighbour has to speak. Once
the answer has come to the card, avahi-daemon is asked whether it has it; where it had it before, that proves
nothing, and the next neighbour is asked. Without a tap (root only) nothing is
known but what avahi-daemon hears, and what it remembers it does not ask again.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from avahi_gpu.avahi.browse import Appeared, Browser
from avahi_gpu.avahi.bus import Avahi, connect
from avahi_gpu.avahi.names import (
    CLASS_IN,
    IPV4,
    IPV6,
    RESULT_CACHED,
    SERVER_RUNNING,
    TYPE_PTR,
    USE_MULTICAST,
)
from avahi_gpu.errors import AvahiGpuError, BusError
from avahi_gpu.files.mdns_message import Datagram
from avahi_gpu.host.net import interface_of, lan_interfaces, probe
from avahi_gpu.host.questions import ask_at_once, instance, of_service, open_question
from avahi_gpu.host.system import System
from avahi_gpu.host.tap import Tap
from avahi_gpu.model import DEFAULT_PORT, NODE_SERVICE, Ear, Interface, Service

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

# Avahi's first question leaves after 0.1 s, its answers come by 0.22 s; the second question leaves at 1.1 s
ANSWER_S = 0.2
LOOK_AGAIN_S = 0.02
NOBODY_S = 0.4  # without a node to ask: nodes that are heard of at all are heard of by 0.22 s
SILENCE_S = 2.0  # a node that is asked twice and has not answered by then is tried otherwise
ENOUGH = 2  # whoever was asked less often is not silent: see host/questions.py
DOUBT_S = 4.2  # nobody is blamed before the third question, which leaves at 3.1 s: two may be lost or late
RECALL_S = 0.05  # what the daemon remembers it tells at once: nodes are asked before other neighbours
TOLD_S = 1.0  # from an answer at the card to its news from avahi-daemon, on a busy machine too
ALIVE_S = 0.8
WITHIN_S = 8.0  # with time for a busy machine: what is not known in the end is said to be unknown
INTERFACES_MAX = 4
NEIGHBOURS_MAX = 6  # asked on each interface


class NotAsked(AvahiGpuError):
    """There is no daemon that could ask."""


async def read(ground: Ground) -> tuple[Ear, ...]:
    """Return what each LAN interface hears. Raises NotAsked, BusError."""
    daemon = await ground.daemon()
    if not daemon.on_bus or daemon.server_state != SERVER_RUNNING:
        raise NotAsked("avahi-daemon does not run")
    lan = [i for i in lan_interfaces(ground.interfaces) if i.multicast][:INTERFACES_MAX]
    if not lan:
        return ()
    async with contextlib.AsyncExitStack() as stack:
        trials = {i.index: Trial(i) for i in lan}
        if ground.system.is_root:
            by_name = {i.name: trials[i.index] for i in lan}
            for interface in lan:
                with contextlib.suppress(OSError):  # a container's root may not
                    stack.enter_context(Tap(interface.name, lambda n, out, d: by_name[n].see(out, d)))
                    trials[interface.index].tapped = True
        avahi = await stack.enter_async_context(connect())
        await _ask_around(avahi, trials, ground)
    return tuple(trial.ear() for trial in trials.values() if trial.states)


class Trial:
    """What is asked and seen on one interface: over IPv4, or IPv6 where it has no IPv4.

    The LAN's addresses are published over the protocol that they belong to.
    """

    def __init__(self, interface: Interface) -> None:
        self.interface = interface
        self.family = 4 if interface.ipv4 is not None else 6
        self.own = {a.ip.partition("%")[0] for a in interface.addresses}
        self.tapped = False
        self.sent = False
        self.seen: dict[str, None] = {}
        self.replied: dict[str, float] = {}  # address -> when it first did, by the monotonic clock
        self.states: dict[str, str] = {}  # address -> asked, answered, remembered
        self.nodes: dict[str, None] = {}
        self.services: dict[str, Service] = {}
        self.questions: dict[str, int] = {}  # how many to each have left the card
        self.memories: set[str] = set()  # whose answer the daemon had before
        self.alive: list[str] = []
        self.waiting: list[str] = []  # whom to ask next
        self._names: dict[str, str] = {}  # what was asked -> whom
        self._replies: dict[str, asyncio.Event] = {}

    def add(self, address: str, *, node: bool) -> None:
        """Take note of a neighbour; nodes are asked first."""
        if self.family != _family(address):
            return
        known = address in self.states or address in self.waiting
        if address in self.own or (not known and len(self.states) + len(self.waiting) >= NEIGHBOURS_MAX):
            return
        if node:
            self.nodes[address] = None
        if address not in self.states:
            others = [a for a in self.waiting if a != address]
            self.waiting = [address, *others] if node else [*others, address]

    def see(self, outgoing: bool, datagram: Datagram) -> None:
        """Take note of a packet at the card."""
        if _family(datagram.source) != self.family:
            return
        if outgoing:
            self.sent = self.sent or not datagram.message.response
            for address in filter(None, map(self._names.get, datagram.message.urgent)):
                self.questions[address] = self.questions.get(address, 0) + 1
        elif datagram.source not in self.own:
            if len(self.seen) < NEIGHBOURS_MAX or datagram.source in self.nodes:
                self.seen[datagram.source] = None
            if datagram.message.response:
                told = (self._names.get(name) for name in datagram.message.told)
                for address in filter(None, told):
                    self.replied.setdefault(address, time.monotonic())
                    self._reply_of(address).set()

    def _reply_of(self, address: str) -> asyncio.Event:
        return self._replies.setdefault(address, asyncio.Event())

    @property
    def heard(self) -> bool:
        """Whether somebody's answer has come just now, and the daemon has it too."""
        return "answered" in self.states.values()

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing left to learn."""
        doubtful = any(self.states.get(a) == "asked" for a in self.replied)
        recalled = [a for a, s in self.states.items() if s == "remembered"]
        return self.heard or (bool(recalled) and not doubtful)

    @property
    def is_ill(self) -> bool:
        """Whether it would be called deaf, mute or cut off now: what an answer that is late disproves."""
        asked = "asked" in self.states.values()
        mute = self.tapped and not self.sent and asked
        return not self.is_settled and (mute or bool(self.replied) or bool(self.alive))

    async def sort(self, avahi: Avahi) -> None:
        """Put those first whom the daemon does not remember: their answer proves that it hears."""
        known = [a for a in self.waiting if await _is_remembered(avahi, *self._question(a))]
        self.memories.update(known)
        self.waiting = [a for a in self.waiting if a not in known] + [a for a in self.waiting if a in known]

    def _question(self, address: str) -> tuple[str | int, ...]:
        protocol = IPV4 if self.family == 4 else IPV6
        name = ipaddress.ip_address(address).reverse_pointer
        return ("iisqqu", self.interface.index, protocol, name)

    async def ask(self, avahi: Avahi, address: str) -> None:
        """Have the daemon ask ``address`` for its name, and take note of all answers until cancelled."""
        self.states[address] = "asked"
        try:
            await self._ask(avahi, address, *self._question(address))
        except BusError:  # nobody was asked, so nobody was silent
            self.states.pop(address, None)

    async def _ask(self, avahi: Avahi, address: str, *question: str | int) -> None:
        async with contextlib.AsyncExitStack() as stack:
            if self.tapped:
                # alone, as the daemon would tell in the same packet which answer it knows already
                await self._ask_until_it_leaves(avahi, stack, address)
                await self._reply_of(address).wait()
            remote = await open_question(avahi, stack, *question, CLASS_IN, TYPE_PTR, USE_MULTICAST)
            while True:
                signal = await remote.next_signal()
                if signal.member == "ItemNew" and self.states[address] == "asked":
                    remembered = address in self.memories
                    if not self.tapped:
                        remembered = bool(signal.body[6] & RESULT_CACHED)
                    self.states[address] = "remembered" if remembered else "answered"

    async def _ask_until_it_leaves(
        self, avahi: Avahi, stack: contextlib.AsyncExitStack, address: str
    ) -> None:
        """Put one question after the other that this neighbour alone answers, until one has left the card."""
        pointer = ipaddress.ip_address(address).reverse_pointer
        records = [(pointer, TYPE_PTR)]
        self._names[pointer] = address
        if (node := self.services.get(address)) is not None:
            records += of_service(node.name)
            self._names[instance(node.name)] = address
        await ask_at_once(
            avahi,
            stack,
            (self.interface.index, IPV4 if self.family == 4 else IPV6),
            records,
            heard=self._reply_of(address),
            sent=lambda: self.questions.get(address, 0),
            enough=ENOUGH,
        )

    async def look_for_life(self) -> None:
        """Find out which of the silent nodes answer otherwise."""
        silent = [a for a in self.nodes if a in self.states and a not in self.replied]
        silent = [a for a in silent if self.states[a] == "asked"]
        if self.is_settled or not silent:
            return
        zone = f"%{self.interface.name}"
        answers = await asyncio.gather(
            *(probe(a + zone if a.startswith("fe80:") else a, DEFAULT_PORT, ALIVE_S) for a in silent)
        )
        self.alive = [a for a, answer in zip(silent, answers, strict=True) if answer]

    def _asked_enough(self, address: str) -> bool:
        return self.questions.get(address, 0) >= ENOUGH

    def ear(self) -> Ear:
        """Return what came of it; of whom only the last moment brought an answer nothing is known."""
        recent = time.monotonic() - TOLD_S
        doubtful = {a for a, when in self.replied.items() if when > recent and self.states.get(a) == "asked"}
        states = {a: s for a, s in self.states.items() if a not in doubtful}

        def those(state: str) -> tuple[str, ...]:
            return tuple(a for a, s in states.items() if s == state)

        alive = [a for a in self.alive if a not in doubtful]
        hardly = tuple(a for a in alive if self.tapped and self.sent and not self._asked_enough(a))
        return Ear(
            self.interface.name,
            tuple(states),
            tuple(a for a in self.nodes if a in states),
            those("answered"),
            those("remembered"),
            tuple(a for a in alive if a not in hardly),
            self.sent if self.tapped else None,
            tuple(a for a in self.replied if a not in doubtful) if self.tapped else None,
            tuple(self.seen) if self.tapped else None,
            hardly,
        )


async def _ask_around(avahi: Avahi, trials: dict[int, Trial], ground: Ground) -> None:
    loop = asyncio.get_running_loop()
    start = loop.time()
    for address in ground.wanted_peers:
        _add(address, trials, node=True)
    for address in read_neighbours(ground.system):
        _add(address, trials, node=False)
    tasks = [loop.create_task(_learn_nodes(avahi, trials))]
    tasks += [loop.create_task(_ask_in_turn(avahi, trial)) for trial in trials.values()]
    try:
        while not _is_enough(trials.values()):
            doubtful = any(t.is_ill or (t.nodes and not t.heard) for t in trials.values())
            if loop.time() > start + (SILENCE_S if doubtful else NOBODY_S):
                break
            await asyncio.sleep(LOOK_AGAIN_S)
        await asyncio.gather(*(trial.look_for_life() for trial in trials.values()))
        while any(t.is_ill for t in trials.values()) and not any(t.is_settled for t in trials.values()):
            if loop.time() > start + DOUBT_S:
                break
            await asyncio.sleep(LOOK_AGAIN_S)
    finally:
        await _end(tasks)


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel the tasks, and raise what one of them has failed with: silence must not come from that."""
    for task in tasks:
        task.cancel()
    for ended in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(ended, Exception):
            raise ended


def _is_enough(trials: Iterable[Trial]) -> bool:
    """Tell whether every interface with neighbours has heard one."""
    asking = [t for t in trials if t.states or t.waiting]
    return bool(asking) and all(t.is_settled for t in asking)


async def _ask_in_turn(avahi: Avahi, trial: Trial) -> None:
    """Ask one neighbour; where that one is silent, all others at once."""
    await asyncio.sleep(RECALL_S)
    asking: list[asyncio.Task[None]] = []
    try:
        while not trial.heard:
            if trial.tapped:
                await trial.sort(avahi)
            first = 1 if not trial.states else NEIGHBOURS_MAX
            now, trial.waiting = trial.waiting[:first], trial.waiting[first:]
            asking += [asyncio.ensure_future(trial.ask(avahi, address)) for address in now]
            await asyncio.sleep(ANSWER_S if now else LOOK_AGAIN_S)
        await asyncio.sleep(WITHIN_S)  # until cancelled: what was asked is still listened to
    finally:
        await _end(asking)


async def _learn_nodes(avahi: Avahi, trials: dict[int, Trial]) -> None:
    """Take note of the nodes that Avahi lists, remembered ones and those that answer now."""
    async with Browser(avahi, NODE_SERVICE, prefer=list(trials)) as browser:
        async for event in browser:
            if isinstance(event, Appeared) and not event.service.own:
                trial = trials.get(event.service.interface)
                if trial is not None:
                    trial.services[event.service.address] = event.service
                    trial.add(event.service.address, node=True)


async def _is_remembered(avahi: Avahi, *question: str | int) -> bool:
    """Tell whether the daemon has an answer already; a question that is freed so soon is never sent."""
    async with contextlib.AsyncExitStack() as stack:
        remote = await open_question(avahi, stack, *question, CLASS_IN, TYPE_PTR, USE_MULTICAST)
        return (await remote.next_signal()).member == "ItemNew"


def _family(address: str) -> int:
    return 6 if ":" in address else 4


def _add(address: str, trials: dict[int, Trial], *, node: bool) -> None:
    interface = interface_of(address, [t.interface for t in trials.values()])
    if interface is not None:
        trials[interface.index].add(address, node=node)


def read_neighbours(system: System) -> list[str]:
    """Return the addresses that this machine has talked to lately."""
    return parse_arp((system.read("/proc/net/arp").content or b"").decode("ascii", "replace"))


def parse_arp(text: str) -> list[str]:
    """Return the addresses of /proc/net/arp (proc(5)) that have answered: flag 2, ATF_COM."""
    found = []
    for line in text.splitlines()[1:]:
        words = line.split()
        if len(words) > 3 and words[2].startswith("0x") and int(words[2], 16) & 2:
            found.append(words[0])
    return found
