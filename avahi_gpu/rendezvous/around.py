"""Asking around by unicast where the records of jobs get lost: the LAN's machines, or its addresses.

Records of jobs come and go within seconds, and get lost where multicast is poor or somebody floods it; those
of the machines themselves stand for as long as these run. Where somebody publishes thousands of records,
avahi-daemon remembers no others (cache-entries-max): then a node with a key asks every address of its subnet.
Without a key that would be idle, since whoever floods the LAN can as well answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import random
from collections.abc import Callable, Iterable, Sequence

from avahi_gpu.avahi.browse import browse
from avahi_gpu.avahi.bus import Avahi
from avahi_gpu.errors import BusError
from avahi_gpu.host.net import lan_interfaces
from avahi_gpu.model import NODE_SERVICE, Interface
from avahi_gpu.rendezvous.proof import Pass
from avahi_gpu.rendezvous.seek import Seeker, ask_host
from avahi_gpu.rendezvous.terms import CONTROL_PORTS

AFTER_S = 3.0  # nodes that start together have met by then; twice as long before each later round …
MAX_S = 30.0  # … of asking
HOSTS_MAX = 32  # in one round, chosen anew each time: anybody may say that it is a node
PREFIX_MIN = 22  # of a subnet whose every address is asked: a thousand of them
SWEEP_PORTS = CONTROL_PORTS[:2]  # of each: a host has a port more for each job that runs there already
SWEEP_AT_ONCE = 64
SWEEP_S = 0.5  # for connecting: a LAN answers in milliseconds


async def ask_around(
    us: Pass, interfaces: Callable[[], Sequence[Interface]], avahi: Avahi, seeker: Seeker
) -> None:
    """Ask for our job, now and then while this node waits for others. ``interfaces``: ours by now."""
    pause_s, told = AFTER_S, False
    while True:
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, MAX_S)
        if not seeker.waiting:
            continue
        if us.key is not None and seeker.crowded:
            if not told:
                seeker.say(
                    "somebody floods the LAN with records of jobs: asking every address of it for ours"
                )
                told = True
            await ask_addresses(us, subnet_addresses(interfaces()), seeker)
            continue
        own = {a.ip for i in interfaces() for a in i.addresses}
        with contextlib.suppress(BusError):
            hosts = {s.address for s in (await browse(avahi, NODE_SERVICE)).services if not s.own} - own
            some = random.sample(sorted(hosts), min(len(hosts), HOSTS_MAX))
            for candidates, _ in await asyncio.gather(*(ask_host(a, CONTROL_PORTS, us) for a in some)):
                for candidate in candidates:
                    seeker.found(candidate)


async def ask_addresses(us: Pass, addresses: Iterable[str], seeker: Seeker) -> None:
    """Ask each address on the first control ports."""
    gate = asyncio.Semaphore(SWEEP_AT_ONCE)

    async def ask(address: str, port: int) -> None:
        async with gate:
            for candidate in (await ask_host(address, (port,), us, SWEEP_S))[0]:
                seeker.found(candidate)

    await asyncio.gather(*(ask(address, port) for port in SWEEP_PORTS for address in addresses))


def subnet_addresses(interfaces: Iterable[Interface]) -> tuple[str, ...]:
    """Return the IPv4 addresses of the LAN's subnets but our own; none of a subnet that is too large."""
    own = {a.ip for i in interfaces for a in i.addresses}
    found: dict[str, None] = {}
    for interface in lan_interfaces(interfaces):
        for address in interface.addresses:
            if address.family == 4 and address.scope == "global" and address.prefix >= PREFIX_MIN:
                subnet = ipaddress.ip_network(f"{address.ip}/{address.prefix}", strict=False)
                found.update(dict.fromkeys(str(ip) for ip in subnet.hosts()))
    return tuple(ip for ip in found if ip not in own)
