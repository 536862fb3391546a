"""Settings and routes of the kernel that decide over multicast. Reading only; nothing is sent."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from avahi_gpu.host.aside import aside
from avahi_gpu.host.links import read_mdns_members
from avahi_gpu.host.net import lan_interfaces, route_source
from avahi_gpu.host.system import System
from avahi_gpu.model import Interface, KernelNet, WayBack

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

CONF = "/proc/sys/net/ipv4/conf"
MEMBERSHIPS = "/proc/sys/net/ipv4/igmp_max_memberships"
STRICT = 1  # of rp_filter: ip-sysctl.rst of the kernel; 2 is loose


async def read(ground: Ground) -> KernelNet:
    """Return the settings and routes."""
    return await aside(read_kernel, ground.system, ground.interfaces)


def read_kernel(system: System, interfaces: Sequence[Interface]) -> KernelNet:
    """Do what ``read`` says, blocking."""
    overall = _number(system, f"{CONF}/all/rp_filter") or 0
    ways = []
    for interface in lan_interfaces(interfaces):
        own = _number(system, f"{CONF}/{interface.name}/rp_filter") or 0
        strict = max(overall, own) == STRICT  # the larger of both counts
        ways += [
            WayBack(interface.name, neighbour, route_source(neighbour), strict)
            for neighbour in neighbours_of(interface)
        ]
    igmp = system.read("/proc/net/igmp").content
    members = None if igmp is None else read_mdns_members(igmp.decode("ascii", "replace"))
    in_group = None if members is None else frozenset(i.name for i in interfaces if i.index in members)
    return KernelNet(tuple(ways), _number(system, MEMBERSHIPS), in_group)


def neighbours_of(interface: Interface) -> Iterator[str]:
    """Yield two addresses that neighbours may have: the ends of the IPv4 subnet, but not our own."""
    for own in interface.addresses:
        if own.family != 4 or own.scope != "global" or own.prefix > 30:
            continue
        network = ipaddress.ip_network(f"{own.ip}/{own.prefix}", strict=False)
        for offset, step in ((1, 1), (-2, -1)):
            first = network[offset]
            yield str(first if str(first) != own.ip else network[offset + step])
        return


def _number(system: System, path: str) -> int | None:
    text = (system.read(path).content or b"").strip()
    return int(text) if text.isdigit() else None
