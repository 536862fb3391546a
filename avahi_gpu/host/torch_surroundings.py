"""The environment of this process as torch would find it, and whether the endpoints that it names answer."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from avahi_gpu.files import torch_environment
from avahi_gpu.files.etc_hosts import is_address, is_loopback
from avahi_gpu.host import net, nss
from avahi_gpu.host.aside import aside
from avahi_gpu.model import DEFAULT_PORT, Endpoint

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

LOOKUP_S = 4.0  # torch would wait longer; whoever waits for a name that long has a finding already
PROBE_S = 1.0
ENDPOINT_S = LOOKUP_S + PROBE_S + 0.5


async def read_environment(ground: Ground) -> dict[str, str]:
    """Return the variables that torch and its libraries read."""
    return torch_environment.choose(ground.environment)


async def read_endpoints(ground: Ground) -> tuple[Endpoint, ...]:
    """Return the endpoints that the environment names, each looked up and asked whether it is there."""
    named = torch_environment.endpoints(ground.environment)
    return tuple(await asyncio.gather(*(find(ground, endpoint) for endpoint in named)))


async def find(ground: Ground, endpoint: Endpoint) -> Endpoint:
    """Look an endpoint's host up, and ask whether anybody is there."""
    if endpoint.malformed:
        return endpoint
    addresses: tuple[str, ...] = (endpoint.host,)
    error = ""
    if not is_address(endpoint.host):
        lookup = await aside(nss.lookup, ground.system, endpoint.host, within_s=LOOKUP_S)
        addresses, error = lookup.addresses, lookup.error
    alive = None
    if addresses and not is_loopback(addresses[0]):
        alive = await net.probe(addresses[0], endpoint.port or DEFAULT_PORT, PROBE_S)
    return replace(endpoint, addresses=addresses, error=error, alive=alive)
