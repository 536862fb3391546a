"""Finding candidates without multicast: asking named hosts, port by port, who runs the job there."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from avahi_gpu.avahi.browse import resolve_host
from avahi_gpu.avahi.bus import Avahi
from avahi_gpu.errors import BusError, MalformedInput
from avahi_gpu.model import DOMAIN
from avahi_gpu.rendezvous.election import Candidate
from avahi_gpu.rendezvous.messages import Here, Who
from avahi_gpu.rendezvous.proof import NotProven, Pass, describe_unproven
from avahi_gpu.rendezvous.terms import CONTROL_PORTS
from avahi_gpu.rendezvous.wire import dial

ASK_S = 1.5  # for connecting and again for the answer; a closed port refuses at once
RESOLVE_S = 6.0  # of one name, Avahi's own limit included
SEEK_EVERY_S = 2.0  # between two rounds of asking, while nobody leads us


async def find_address(name: str, avahi: Avahi | None) -> str | None:
    """Return the IPv4 address of a peer given as address, ``.local`` name or other name; None without."""
    with contextlib.suppress(ValueError):
        return str(ipaddress.ip_address(name.strip("[]")))
    bare = name.rstrip(".").removesuffix("." + DOMAIN)
    if avahi is not None and "." not in bare:
        with contextlib.suppress(BusError):
            return (await asyncio.wait_for(resolve_host(avahi, f"{bare}.{DOMAIN}"), RESOLVE_S))[0]
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError, UnicodeError, asyncio.TimeoutError):  # a name that no resolver takes
        asked = loop.getaddrinfo(name, None, family=socket.AF_INET, type=socket.SOCK_STREAM)
        return str((await asyncio.wait_for(asked, RESOLVE_S))[0][4][0])
    return None


class Seeker(Protocol):
    """Who looks for candidates."""

    @property
    def bound(self) -> bool: ...
    def found(self, candidate: Candidate) -> None: ...
    def say(self, text: str) -> None: ...


async def seek(
    us: Pass, peers: Sequence[str], own: Collection[str], avahi: Avahi | None, seeker: Seeker
) -> None:
    """Ask the ``peers`` that the user named, for as long as nobody leads us. ``own``: our addresses."""
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
            hosts = sorted({a for a in found if a is not None} - set(own))
            for candidates, complaints in await asyncio.gather(
                *(ask_host(a, CONTROL_PORTS, us) for a in hosts)
            ):
                for text in complaints:
                    say_once(text)
                for candidate in candidates:
                    seeker.found(candidate)
        await asyncio.sleep(SEEK_EVERY_S)


async def ask_host(address: str, ports: Iterable[int], us: Pass) -> tuple[list[Candidate], list[str]]:
    """Return the nodes of our job that answer on ``ports`` of ``address``, and what is wrong with others."""
    found, complaints = [], []
    for answer in await asyncio.gather(*(ask_port(address, port, us) for port in ports)):
        if isinstance(answer, str):
            complaints.append(answer)
        elif answer is not None:
            # reached by the address that the user gave: what it calls itself may be another interface's
            me, end = answer[0].me, answer[1]
            found.append(Candidate(me.id, me.host, end, me.port, me.priority, me.size))
    return found, complaints


async def ask_port(
    address: str, port: int, us: Pass, asker: str | None = None
) -> tuple[Here, str] | str | None:
    """Return the answer of the node of our job on ``port``, and its address; None where there is none.

    A sentence: it is one, but it and we do not hold the same key. ``asker``: our id, where we want to know
    whether it still counts on us.
    """
    try:
        wire = await dial(address, port, us, ASK_S)
    except NotProven as failure:
        return _complaint(failure, address)
    except (OSError, asyncio.TimeoutError):
        return None
    try:
        wire.send(Who(us.job, us.cluster, asker, us.host))
        answer = await asyncio.wait_for(wire.receive(), ASK_S)
        if isinstance(answer, Here):
            return answer, wire.remote
    except NotProven as failure:
        return _complaint(failure, address)
    except (OSError, asyncio.TimeoutError, MalformedInput):
        pass
    finally:
        wire.writer.close()
    return None


def _complaint(failure: NotProven, address: str) -> str | None:
    if failure.why in ("other-job", "no-proof"):  # whatever listens there has nothing to do with us
        return None
    return describe_unproven(failure.why, failure.host, address)
