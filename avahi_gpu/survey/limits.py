"""What a node lets itself be made to do by whoever asks it: only what tells about the cluster. Pure.

Whoever may order connections could scan a network from our address, or reach what only we reach. So only
nodes are tried that this one sees itself, in its own subnets, on ports that jobs use, and only names that
mDNS answers for are looked up.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable

from avahi_gpu.model import DOMAIN, Interface
from avahi_gpu.rendezvous.terms import CONTROL_PORTS
from avahi_gpu.survey.messages import Target

DOCTOR_PORTS = range(29420, 29430)  # the first free one; known, so that a firewall can open them
WORKER_PORTS = range(29500, 30000)  # as rendezvous.mesh takes them
HIGH_PORTS = range(32768, 65536)  # what kernels give out (net.ipv4.ip_local_port_range), and some more
JOB_PORTS = (CONTROL_PORTS, WORKER_PORTS, HIGH_PORTS)

_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")


def is_job_port(port: int) -> bool:
    """Return whether a job may use a port."""
    return any(port in ports for ports in JOB_PORTS)


def is_mdns_name(name: str) -> bool:
    """Return whether ``name`` is one label in ``.local``: no name server far away is asked for it."""
    label, _, domain = name.rstrip(".").partition(".")
    return domain == DOMAIN and _LABEL.fullmatch(label) is not None


def without_containers(interfaces: Iterable[Interface]) -> list[Interface]:
    """Return the networks that may be the LAN: those of containers only where there is no other one.

    Every machine with Docker has the same 172.17.0.0/16, and none reaches another one by it.
    """
    lans = [i for i in interfaces if i.link not in ("loopback", "tunnel") and i.addresses]
    return [i for i in lans if i.link != "virtual"] or lans


def on_link(address: str, interfaces: Iterable[Interface]) -> bool:
    """Return whether ``address`` lies in a subnet of one of our LANs; loopback is none."""
    try:
        wanted = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if wanted.is_multicast or wanted.is_unspecified or wanted.is_loopback:
        return False
    for interface in without_containers(interfaces):
        for own in interface.addresses:
            network = ipaddress.ip_network(f"{own.ip.partition('%')[0]}/{own.prefix}", strict=False)
            if wanted in network:
                # the first and last of a subnet are everybody's
                return network.num_addresses <= 2 or wanted not in (
                    network.network_address,
                    network.broadcast_address if network.version == 4 else None,
                )
    return False


def refuse_target(target: Target, seen: Collection[str] | None, interfaces: Iterable[Interface]) -> str:
    """Say why a node is not tried, '' where it may be.

    ``seen``: addresses of nodes that we see ourselves; None where the asker has proved the cluster key, and
    may name nodes of our subnets that we do not see.
    """
    if not on_link(target.address, interfaces):
        return "its address is in none of this node's subnets"
    if target.host and not is_mdns_name(target.host):
        return "such a name is not looked up for others"
    if seen is not None and target.address not in seen:
        return "this node does not see it"
    if not all(map(is_job_port, target.ports)):
        return "no job uses such a port"
    return ""
