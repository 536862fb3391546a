"""Finding candidates without multicast: asking named hosts, port by port, who runs the job there."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Protocol

from avahi_gpu.avahi.browse import resolve_host
from avahi_gpu.avahi.bus import Avahi
from avahi_gpu.errors import BusError, MalformedInput
from avahi_gpu.model import DOMAIN
from avahi_gpu.rendezvous.election import Candidate
from avahi_gpu.rendezvous.messages import Here, Who
from avahi_gpu.rendezvous.proof import REASONS, NotProven, Pass
from avahi_gpu.rendezvous.terms import CONTROL_PORTS
from avahi_gpu.rendezvous.wire import dial

ASK_S = 1.5  # for connecting and again for the answer; a closed port refuses at once
RESOLVE_S = 6.0  # of one name, Avahi's own limit included
IPV4_GRACE_S = 0.3  # answers for both families come in the same millisecond, if they come
SEEK_EVERY_S = 2.0  # between two rounds of asking, while nobody leads us


@contextlib.contextmanager
def excused(names: Collection[str], say: Callable[[str], None]) -> Iterator[None]:
    """Let Avahi fail in the block where the user has named peers."""
    try:
        yield
    except BusError as error:
        if not names:
            raise
        say(f"going on with --peers alone: {error.message}")


async def find_address(name: str, avahi: Avahi | None) -> str | None:
    """Return the address of a peer given as address, ``.local`` name or other name; None without.

    IPv4 where the name has both.
    """
    with contextlib.suppress(ValueError):
        return str(ipaddress.ip_address(name.strip("[]")))
    bare = name.rstrip(".").removesuffix("." + DOMAIN)
    if avahi is not None and "." not in bare:
        found = await _ask_avahi(avahi, f"{bare}.{DOMAIN}")
        if found is not None:
            return found
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError, UnicodeError, asyncio.TimeoutError):  # a name that no resolver takes
        asked = loop.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        answers = await asyncio.wait_for(asked, RESOLVE_S)
        return str(min(answers, key=lambda a: a[0] != socket.AF_INET)[4][0])
    return None


async def _ask_avahi(avahi: Avahi, name: str) -> str | None:
    """Return the address of a host as Avahi knows it: IPv6 where IPv4 does not follow at once."""
    four, six = (asyncio.ensure_future(_resolve(avahi, name, family)) for family in (4, 6))
    try:
        await asyncio.wait({four, six}, timeout=RESOLVE_S, return_when=asyncio.FIRST_COMPLETED)
        if not four.done():
            await asyncio.wait({four}, timeout=IPV4_GRACE_S if six.done() and six.result() else RESOLVE_S)
        return (four.result() if four.done() else None) or (await asyncio.wait_for(six, RESOLVE_S))
    except asyncio.TimeoutError:
        return None
    finally:
        for task in (four, six):
            task.cancel()


async def _resolve(avahi: Avahi, name: str, family: int) -> str | None:
    with contextlib.suppress(BusError):
        address, index = await resolve_host(avahi, name, family=family)
        link_local = family == 6 and ipaddress.ip_address(address).is_link_local
        with contextlib.suppress(OSError):
            return f"{address}%{socket.if_indextoname(index)}" if link_local else address
    return None


class Seeker(Protocol):
    """Who looks for candidates."""

    @property
    def bound(self) -> bool: ...
    @property
    def waiting(self) -> bool: ...
    @property
    def crowded(self) -> bool: ...
    def found(self, candidate: Candidate) -> None: ...
    def say(self, text: str) -> None: ...
    def tell_unproven(self, failure: NotProven, address: str) -> None: ...


async def seek(
    us: Pass, peers: Sequence[str], own: Callable[[], Collection[str]], avahi: Avahi | None, seeker: Seeker
) -> None:
    """Ask the ``peers`` that the user named, while nobody leads us. ``own``: our addresses by now."""
    told: set[str] = set()

    def say_once(text: str) -> None:
        if text not in told:
            told.add(text)
            seeker.say(text)

    while True:
        if not seeker.bound:
            found = await asyncio.gather(*(find_address(p, avahi) for p in peers))
            for name in sorted(p for p, address in zip(peers, found, strict=True) if address is None):
                say_once(f"--peers names {name}, which nobody knows: give its address")
            hosts = sorted({a for a in found if a is not None} - set(own()))
            answers = await asyncio.gather(*(ask_host(a, CONTROL_PORTS, us) for a in hosts))
            for host, (candidates, failures) in zip(hosts, answers, strict=True):
                for failure in failures:
                    seeker.tell_unproven(failure, host)
                for candidate in candidates:
                    seeker.found(candidate)
        await asyncio.sleep(SEEK_EVERY_S)


async def ask_host(
    address: str, ports: Iterable[int], us: Pass, within_s: float = ASK_S
) -> tuple[list[Candidate], list[NotProven]]:
    """Return the nodes of our job that answer on ``ports`` of ``address``, and what is wrong with others."""
    found, failures = [], []
    for answer in await asyncio.gather(*(ask_port(address, port, us, within_s=within_s) for port in ports)):
        if isinstance(answer, NotProven):
            failures.append(answer)
        elif answer is not None:
            # reached by the address that the user gave: what it calls itself may be another interface's
            me, end = answer[0].me, answer[1]
            found.append(Candidate(me.id, me.host, end, me.port, me.priority, me.size))
    return found, failures


async def ask_port(
    address: str, port: int, us: Pass, asker: str | None = None, within_s: float = ASK_S
) -> tuple[Here, str] | NotProven | None:
    """Return the answer of the node of our job on ``port``, and its address; None where there is none.

    NotProven: it is one, but it and we do not hold the same key. ``asker``: our id, where we want to know
    whether it still counts on us.
    """
    try:
        wire = await dial(address, port, us, within_s)
    except NotProven as failure:
        return _of_ours(failure)
    except (OSError, asyncio.TimeoutError):
        return None
    try:
        wire.send(Who(us.job, us.cluster, asker, us.host))
        answer = await asyncio.wait_for(wire.receive(), ASK_S)
        if isinstance(answer, Here):
            return answer, wire.remote
    except NotProven as failure:
        return _of_ours(failure)
    except (OSError, asyncio.TimeoutError, MalformedInput):
        pass
    finally:
        wire.writer.close()
    return None


def _of_ours(failure: NotProven) -> NotProven | None:
    """Return the failure where it is of our job; whatever else listens there has nothing to do with us."""
    return failure if failure.why in REASONS else None
