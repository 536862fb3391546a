"""Finding candidates without multicast: asking named hosts, port by port, who runs the job there."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import Iterable

from avahi_gpu.avahi.browse import resolve_host
from avahi_gpu.avahi.bus import Avahi
from avahi_gpu.errors import BusError, MalformedInput
from avahi_gpu.model import DOMAIN
from avahi_gpu.rendezvous.channel import far_end
from avahi_gpu.rendezvous.election import Candidate
from avahi_gpu.rendezvous.messages import LINE_MAX, Here, Who, decode, encode

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


async def ask_host(address: str, ports: Iterable[int], job: str, cluster: str) -> list[Candidate]:
    """Return the nodes of the job that answer on ``ports`` of ``address``."""
    answers = await asyncio.gather(*(ask_port(address, port, Who(job, cluster)) for port in ports))
    # reached by the address that the user gave: what it calls itself may be another interface's
    found = [(answer.me, end) for answer, end in filter(None, answers)]
    return [Candidate(me.id, me.host, end, me.port, me.priority, me.size) for me, end in found]


async def ask_port(address: str, port: int, who: Who) -> tuple[Here, str] | None:
    """Return the answer of whoever listens on ``port``, and its address; None without one."""
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(address, port, limit=LINE_MAX), ASK_S)
    except (OSError, asyncio.TimeoutError):
        return None
    try:
        writer.write(encode(who))
        answer = decode(await asyncio.wait_for(reader.readuntil(b"\n"), ASK_S), address)
        if isinstance(answer, Here):
            return answer, far_end(writer)
    except (OSError, EOFError, asyncio.TimeoutError, asyncio.LimitOverrunError, MalformedInput):
        pass
    finally:
        writer.close()
    return None
