"""``doctor --cluster``: meet the doctors of the other nodes, let all of them try each other, and tell it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from avahi_gpu.avahi.browse import RELIABLE_S
from avahi_gpu.errors import MalformedInput
from avahi_gpu.files import txt
from avahi_gpu.model import DOMAIN, Service, Silence
from avahi_gpu.rendezvous.proof import REASONS, NotProven, describe_unproven
from avahi_gpu.rendezvous.seek import find_address
from avahi_gpu.rendezvous.wire import READ_AT_ONCE, Wire, describe
from avahi_gpu.survey import messages as m
from avahi_gpu.survey.encounter import Line, dial, greet
from avahi_gpu.survey.limits import DOCTOR_PORTS
from avahi_gpu.survey.remote import Remote
from avahi_gpu.survey.station import Station

ANSWER_S = 3.0  # for what costs the other side nothing
AGAIN_S = 1.0  # before a doctor that cannot be reached is tried again: it may be starting
STRANGERS_MAX = 32  # connections to us that have not said yet who they are
NEWS_S = 0.25
QUEUE_S = 30.0  # more for a doctor that somebody else asks: that takes seconds
PASSING = ("unreached", "fault")  # what may be better in a moment
REFUSED = describe(ConnectionRefusedError())  # a doctor that has ended: its record goes by itself


A = TypeVar("A", m.Now, m.Listening, m.Probed)


@dataclass
class Met:
    """A doctor that answers. ``address``: where we reach it, without an interface."""

    line: Line
    about: m.About
    address: str
    fault: str = ""  # why it was lost later

    async def ask(self, question: m.Said, expected: type[A], within_s: float) -> A | None:
        """Return the answer, None where it was lost: ``fault`` says why."""
        if self.fault:
            return None
        try:
            self.line.say(question)
            answer = await self.line.hear(within_s)
        except (OSError, asyncio.TimeoutError, MalformedInput) as error:
            answer, self.fault = None, f"it broke off ({describe(error)})"
        if isinstance(answer, expected):
            return answer
        if isinstance(answer, m.Refused):
            self.fault = f"it refused a question: {answer.why}"
        else:
            self.fault = self.fault or ("it broke off" if answer is None else "it answered something else")
        return None


@dataclass(frozen=True)
class Missed:
    """A doctor that does not answer, and why; ``port`` 0: nobody knows of a doctor there."""

    silence: Silence
    why: str
    address: str = ""
    port: int = 0


@dataclass
class Meeting:
    """Who was met and who was missed, by the key under which they are looked for."""

    here: Station
    tell: Callable[[str], None]
    met: dict[str, Met] = field(default_factory=dict)  # by the id of the start
    missed: dict[str, Missed] = field(default_factory=dict)  # by id of the record, or address
    named: tuple[str, ...] = ()  # addresses that the user gave
    queued: set[str] = field(default_factory=set)  # addresses of doctors that somebody else asks
    _visits: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _strangers: int = 0

    async def open(self, stack: contextlib.AsyncExitStack) -> int:
        """Listen for doctors that we cannot reach; return the port."""
        server = await asyncio.start_server(self._accept, "0.0.0.0", 0, limit=READ_AT_ONCE)
        port = int(server.sockets[0].getsockname()[1])
        stack.callback(server.close)
        with contextlib.suppress(OSError):
            stack.callback((await asyncio.start_server(self._accept, "::", port, limit=READ_AT_ONCE)).close)
        stack.push_async_callback(self.close)
        return port

    async def close(self) -> None:
        """Visit nobody any more and say goodbye."""
        for task in self._visits.values():
            task.cancel()
        await asyncio.gather(*self._visits.values(), return_exceptions=True)
        for each in self.met.values():
            each.line.say(m.Bye())
        await asyncio.gather(*(each.line.close() for each in self.met.values()))

    def expects(self, service: Service) -> bool:
        """Return whether a listed node has announced a doctor, and it has not ended since."""
        ended = {id for id, one in self.missed.items() if one.why == REFUSED}
        return any(d.host == service.host and d.id not in ended for d in self.here.doctors)

    def is_hopeless(self, service: Service) -> bool:
        """Return whether the doctor of a listed node has said no, for good."""
        there = (one for one in self.missed.values() if one.address.partition("%")[0] == service.address)
        return any(one.silence not in PASSING for one in there)

    def visit(self, key: str, address: str, ports: Sequence[int]) -> None:
        """Try to meet the doctor at ``address``, unless that is under way."""
        if key not in self._visits and len(self._visits) < m.NODES_MAX:
            self._visits[key] = asyncio.ensure_future(self._visit(key, address, ports))

    async def _visit(self, key: str, address: str, ports: Sequence[int]) -> None:
        while True:
            missed = None
            for port in ports:
                missed = await self._try(address, port)
                if missed is None or missed.silence != "unreached":
                    break
            if missed is None:
                self.missed.pop(key, None)
                return
            self.missed[key] = missed
            if missed.silence not in PASSING:
                return
            await asyncio.sleep(AGAIN_S)

    async def _try(self, address: str, port: int) -> Missed | None:
        """Meet one doctor; return why not."""
        try:
            line = await dial(address, port, self.here.us)
        except NotProven as failure:
            return _unproven(failure, address, port)
        except (OSError, asyncio.TimeoutError) as error:
            return Missed("unreached", describe(error), address, port)
        kept = False
        try:
            kept, missed = await self._greet(line)
        except NotProven as failure:
            return _unproven(failure, address, port)
        except MalformedInput:
            return Missed("version", "what answers there is no doctor of this avahi-gpu", address, port)
        except asyncio.TimeoutError:
            return Missed("fault", "it does not answer in time", address, port)
        except OSError as error:
            return Missed("fault", f"it breaks off ({describe(error)})", address, port)
        finally:
            if not kept:
                line.abort()
        return missed

    async def _greet(self, line: Line) -> tuple[bool, Missed | None]:
        """Begin to ask; return whether the connection is kept, and why it is of no use."""
        us = self.here.us
        line.say(m.Hello(us.id, us.host))
        answer = await line.hear(ANSWER_S)
        if isinstance(answer, m.Busy):
            self.tell(f"{line.remote} is asked by somebody else just now")
            self.queued.add(line.remote)
            try:
                answer = await line.hear(QUEUE_S)
            finally:
                self.queued.discard(line.remote)
        if isinstance(answer, m.Refused):
            return False, Missed("version", f"it refuses: {answer.why}", line.remote)
        if not isinstance(answer, m.About):
            return False, Missed("fault", "it breaks off", line.remote)
        ours = answer.cluster == self.here.witness.about.cluster
        if answer.id == us.id or answer.id in self.met or not ours:
            line.say(m.Bye())
            await line.close()
            return False, None
        self.met[answer.id] = Met(line, answer, line.remote.partition("%")[0])
        self.tell(f"{name_of(answer)} ({line.remote}) answers")
        self.here.changed.set()
        return True, None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A doctor comes that we could not reach; everybody else is sent away."""
        line, kept = Line(Wire(reader, writer)), False
        if self._strangers >= STRANGERS_MAX:
            line.abort()
            return
        self._strangers += 1
        try:
            first = await greet(line, self.here.us)
            if isinstance(first, m.Offer) and len(self.met) < m.NODES_MAX:
                if first.version == m.PROTOCOL:
                    kept, _ = await self._greet(line)
                if kept:
                    self.missed.pop(first.id, None)
        except (NotProven, MalformedInput, OSError, asyncio.TimeoutError):
            pass
        finally:
            self._strangers -= 1
            if not kept:
                line.abort()


def _unproven(failure: NotProven, address: str, port: int) -> Missed:
    if failure.why not in REASONS:
        return Missed("fault", "it does not prove the cluster key", address, port)
    return Missed("key", describe_unproven(failure.why, failure.host, address), address, port)


def name_of(about: m.About) -> str:
    """Return what people call a node."""
    return about.host.removesuffix(f".{DOMAIN}") or about.hostname or "a node without a name"


def answers_for(met: Met, service: Service) -> bool:
    """Return whether a doctor that was met is the one of a listed node."""
    if met.about.host and met.about.host == service.host:
        return True
    return service.address in {met.address, *(a.ip for n in met.about.networks for a in n.addresses)}


async def meet(
    here: Station,
    meeting: Meeting,
    peers: Sequence[str],
    wait_s: float,
    remote: Remote | None = None,
) -> None:
    """Meet all nodes that are listed or named, for ``wait_s`` at most; whoever is missed is told of.

    ``remote`` starts the doctors of listed nodes of which none is known.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    end, listed_by = began + wait_s, began + RELIABLE_S
    named = [a for p in peers if (a := await find_address(p, here.avahi)) is not None]
    meeting.named = tuple(named)
    told: tuple[str, ...] = ()
    while (now := loop.time()) < (end + QUEUE_S if meeting.queued else end):
        for doctor in here.doctors:
            if doctor.role == "answers" and doctor.id not in meeting.met:
                meeting.visit(doctor.id, doctor.address, (doctor.port,))
        if now >= listed_by:
            for address in unmet(named, here, meeting):
                meeting.visit(address, address, DOCTOR_PORTS)
            missing = missing_nodes(here, meeting)
            if remote is not None:
                remote.start([s for s in missing if not meeting.expects(s)])
                missing = [s for s in missing if s.address not in remote.faults]
            missing = [s for s in missing if not meeting.is_hopeless(s)]
            names = (*(s.name for s in missing), *unmet(named, here, meeting))
            if not names and not (peers and not meeting.met):
                return
            if names != told and now < end:
                told = names
                meeting.tell(f"waiting for {', '.join(names)}, {max(1, round(end - now))} s at most")
        await here.wait_for_news(NEWS_S)


def missing_nodes(here: Station, meeting: Meeting) -> list[Service]:
    """Return the other nodes of our cluster that are listed, and whose doctor was not met."""
    cluster = here.witness.about.cluster
    return [
        s
        for s in here.nodes
        if not s.own
        and txt.read(s.txt).cluster == cluster
        and not any(answers_for(met, s) for met in meeting.met.values())
    ]


def unmet(named: Sequence[str], here: Station, meeting: Meeting) -> list[str]:
    """Return the addresses that the user has named, and where no doctor was met."""
    own = here.own_addresses()
    known = {m_.address for m_ in meeting.met.values()}
    known |= {a.ip for m_ in meeting.met.values() for n in m_.about.networks for a in n.addresses}
    return [a for a in named if a.partition("%")[0] not in own | known]
