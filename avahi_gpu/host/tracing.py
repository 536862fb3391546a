"""Follow a name on its way through glibc's modules, and ask Avahi and the address itself beside it."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from avahi_gpu.avahi.browse import resolve_host
from avahi_gpu.avahi.bus import Avahi, connect
from avahi_gpu.errors import AvahiGpuError
from avahi_gpu.files.nss_walk import action_after, actions_text, effective_line
from avahi_gpu.files.nsswitch_grammar import Line, Service
from avahi_gpu.host import net
from avahi_gpu.host.aside import aside
from avahi_gpu.host.nss import is_host_name, lookup
from avahi_gpu.host.nss_modules import CALL_S, call
from avahi_gpu.model import DEFAULT_PORT, DOMAIN, AvahiAnswer, ModuleAnswer, Step, Trace

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

MAX_NAMES = 8  # each is some processes
MAX_SERVICES = 16  # a hosts line has three to eight
MAX_ADDRESSES = 4  # of which it is asked whether somebody is there
WALK_S = 11.0  # all modules together: a dead name server costs ten seconds, and the answer then comes
PROBE_S = 1.5  # within a LAN an answer takes a millisecond; one lost packet costs a second
OTHER_FAMILY_S = 0.2  # once one address is known; who has none of the other family is asked for 5 s
PROBER_S = WALK_S + PROBE_S + 1.0


async def read(ground: Ground) -> tuple[Trace, ...]:
    """Return the way of each name that the user asked about; addresses have none."""
    names = [name for name in dict.fromkeys(ground.wanted_peers) if can_be_traced(name)]
    if not names or not ground.with_peers:
        return ()
    return tuple(await asyncio.gather(*(trace(ground, name) for name in names[:MAX_NAMES])))


def can_be_traced(name: str) -> bool:
    """Whether it is a host name and no address."""
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return is_host_name(name)
    return False


async def trace(ground: Ground, asked: str) -> Trace:
    """Follow one name. A bare name is a node's; where no node has it, it is looked up as it stands."""
    if "." in asked.rstrip("."):
        return await _follow(ground, asked, asked)
    node, bare = await asyncio.gather(
        _follow(ground, asked, f"{asked.rstrip('.')}.{DOMAIN}"), _follow(ground, asked, asked)
    )
    known = node.glibc.addresses or node.avahi.addresses or not bare.glibc.addresses
    return replace(node if known else bare, bare=bare.glibc)


async def _follow(ground: Ground, asked: str, name: str) -> Trace:
    line, defect = effective_line(ground.nsswitch.content)
    services = line.services[:MAX_SERVICES]
    steps, told, (avahi, there) = await asyncio.gather(
        _walk(ground, line, () if defect else services, name),
        aside(lookup, ground.system, name, within_s=WALK_S),
        _ask_avahi_and_those_it_knows(ground, name),
    )
    addresses = dict.fromkeys((*told.addresses, *(_zoned(*found) for found in avahi.addresses)))
    asked_ones = list(addresses)[:MAX_ADDRESSES]
    there |= await _probe([a for a in asked_ones if a not in there])
    return Trace(
        asked,
        name,
        " ".join(line.text[line.services_start :].split()),
        line.number,
        steps,
        told,
        avahi,
        tuple((a, there[a]) for a in asked_ones),
        defect=defect,
    )


async def _walk(ground: Ground, line: Line, services: Sequence[Service], name: str) -> tuple[Step, ...]:
    """Ask one module after the other until one ends the search, as glibc does, or the time is over."""
    loop = asyncio.get_running_loop()
    end = loop.time() + WALK_S
    steps: list[Step] = []
    over = False
    for service in services:
        written = actions_text(line, service)
        left_s = end - loop.time()
        if over or left_s <= 0:
            over = True
            steps.append(Step(service.name, written))
            continue
        answer: ModuleAnswer = await aside(call, ground.system, service.name, name, min(CALL_S, left_s))
        # who does not answer keeps glibc waiting: the search goes no further in the time we have
        action = action_after(service.actions, answer.status) if answer.status else "wait"
        steps.append(Step(service.name, written, answer, action))
        over = action in ("return", "wait")
    return tuple(steps)


async def _ask_avahi_and_those_it_knows(
    ground: Ground, name: str
) -> tuple[AvahiAnswer, dict[str, bool | None]]:
    """Probe Avahi's addresses while glibc waits: behind a dead name server no time is left for it then."""
    avahi = await _ask_avahi(ground, name)
    return avahi, await _probe([_zoned(*found) for found in avahi.addresses][:MAX_ADDRESSES])


async def _probe(addresses: Sequence[str]) -> dict[str, bool | None]:
    answers = await asyncio.gather(*(net.probe(a, DEFAULT_PORT, PROBE_S) for a in addresses))
    return dict(zip(addresses, answers, strict=True))


async def _ask_avahi(ground: Ground, name: str) -> AvahiAnswer:
    if not name.lower().rstrip(".").endswith(f".{DOMAIN}"):
        return AvahiAnswer(asked=False)
    loop = asyncio.get_running_loop()
    started = loop.time()
    index = {i.index: i.name for i in ground.interfaces}
    try:
        async with connect() as avahi:
            tasks = [asyncio.ensure_future(_resolve(avahi, name, family)) for family in (4, 6)]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                if any(task.result()[0] for task in tasks if task.done()):
                    await asyncio.wait(tasks, timeout=OTHER_FAMILY_S)
                else:
                    await asyncio.wait(tasks)
                found = [task.result() for task in tasks if task.done()]
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
    except AvahiGpuError as fault:
        return AvahiAnswer(True, elapsed_s=loop.time() - started, error=fault.message)
    known = [(a, index.get(i, "")) for a, i, _ in found if a]
    error = "" if known else found[0][2]
    return AvahiAnswer(True, tuple(dict.fromkeys(known)), loop.time() - started, error)


async def _resolve(avahi: Avahi, name: str, family: int) -> tuple[str, int, str]:
    """Return address, interface index and error; one family's silence is not the other's."""
    try:
        return (*await resolve_host(avahi, name, family=family), "")
    except AvahiGpuError as fault:
        return "", 0, fault.message


def _zoned(address: str, interface: str) -> str:
    return f"{address}%{interface}" if address.startswith("fe80:") and interface else address
