"""Which network a round runs on: the best one that all its nodes share. Pure.

torch's transports are told an interface, not an address, and take the first address that it has
(``model.Interface.first``): so each interface counts with that one address alone.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from avahi_gpu.errors import LaunchFailed
from avahi_gpu.model import Interface, natural_order
from avahi_gpu.model.units import show_speed
from avahi_gpu.rendezvous.environment import GLOO, Demand
from avahi_gpu.rendezvous.messages import NETWORKS_MAX, Attachment

LINKS = ("wired", "wireless", "tunnel", "virtual", "loopback")  # best first
NAMED_MAX = 4  # hosts in a sentence
GIVE_A_PREFIX = (
    "give the LAN a prefix: let its router advertise one, or run `ip -6 addr add fd77::1/64 dev {0}` "
    "here, with fd77::2 on the next node and so on"
)

Net = ipaddress.IPv4Network | ipaddress.IPv6Network


# --- one node's ------------------------------------------------------------------------------------------


def attachments(interfaces: Iterable[Interface], demand: Demand) -> tuple[Attachment, ...]:
    """Return where a round may reach this node, best first, one for each interface."""
    found = []
    for interface in interfaces:
        address = interface.first
        usable = interface.running and interface.link != "loopback" and demand.allows(interface.name)
        if usable and address is not None and 1 <= len(interface.name) <= 15:
            speed = interface.speed_mbit or 0
            found.append(Attachment(interface.name, address.ip, address.prefix, interface.link, speed))
    return tuple(sorted(found, key=_order))[:NETWORKS_MAX]


def lacks(interfaces: Iterable[Interface]) -> tuple[tuple[str, str], ...]:
    """Return the addresses that are of no use for now, each with a sentence that says why."""
    return tuple(
        (address.ip, f"{i.name} of this machine {_lack(i)}")
        for i in interfaces
        if not i.running
        for address in i.addresses
    )


def _order(attachment: Attachment) -> tuple[object, ...]:
    address = attachment.address
    return (
        _is_link_local(address),  # 169.254/16: what an interface takes whose DHCP server does not answer
        _rank(attachment.link),
        -attachment.mbit,
        ":" in address,
        natural_order(attachment.interface),
    )


def choose_address(interfaces: Sequence[Interface], demand: Demand, *, alone: bool = False) -> str:
    """Return the address that this node offers before a round has one. Raises LaunchFailed.

    ``alone``: the job has one node, which loopback reaches as well.
    """
    names = ", ".join(i.name for i in interfaces if i.link != "loopback") or "none but lo"
    here = f"interfaces here: {names}"
    by_name = {i.name: i for i in interfaces}
    for name in demand.gloo:
        if name not in by_name:
            raise LaunchFailed(f"{GLOO} names {name}, which is no interface of this host", here)
        if by_name[name].first is None and by_name[name].link != "loopback":
            raise LaunchFailed(f"{GLOO} names {name}, which {_lack(by_name[name])}", here)
    if demand.interface:
        name = demand.interface
        if not demand.is_for(name):
            raise LaunchFailed(
                f"{demand.choice} contradicts {GLOO}={','.join(demand.gloo)}", "unset one of the two"
            )
        if name not in by_name:
            told = f" ({demand.said})" if demand.said else ""
            raise LaunchFailed(f"this host has no interface {name}{told}", here)
        if not alone or by_name[name].link != "loopback":
            _check_asked(by_name[name], demand.choice, here)
    found = attachments(interfaces, demand)
    if found:
        return found[0].address
    if alone:
        return "127.0.0.1"
    if demand.words:
        raise LaunchFailed(f"no interface of this host fits {demand.words} and has a LAN address", here)
    scoped = [i for i in interfaces if i.running and i.link != "loopback" and i.addresses]
    if scoped:
        raise LaunchFailed(
            f"{scoped[0].name} has a link-local IPv6 address alone, which torch cannot use between hosts",
            GIVE_A_PREFIX.format(scoped[0].name),
        )
    raise LaunchFailed(
        "no interface of this host has a LAN address", f"{here}; connect the machine, or give it an address"
    )


def _check_asked(interface: Interface, choice: str, here: str) -> None:
    if interface.link == "loopback":
        raise LaunchFailed(f"{choice} is this host's loopback, which no other node reaches", here)
    if not interface.running or not interface.addresses:
        raise LaunchFailed(f"{choice} {_lack(interface)}", here)
    if interface.first is None:
        raise LaunchFailed(
            f"{choice} has a link-local IPv6 address alone, which torch cannot use between hosts",
            GIVE_A_PREFIX.format(interface.name),
        )


def _lack(interface: Interface) -> str:
    if not interface.up:
        return "is down"
    return "has no address" if interface.running else "has no carrier: is its cable in?"


def describe(interface: Interface, address: str) -> str:
    """Return ``eth1 (10.9.0.2, wired, 10 Gbit/s)``."""
    speed = [show_speed(interface.speed_mbit)] if interface.speed_mbit else []
    return f"{interface.name} ({', '.join([address, interface.link, *speed])})"


# --- all nodes' ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """What the leader knows of where one node can be reached.

    ``seen``: its address on the control connection. ``networks``: empty where it has not told, as nodes of an
    older version.
    """

    host: str
    seen: str
    networks: tuple[Attachment, ...] = ()
    asked: str = ""


@dataclass(frozen=True)
class Way:
    """One way to seat all nodes: an address for each, in their order. ``network`` '': no common one."""

    network: str
    addresses: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True)
class _Found:
    way: Way
    link_local: bool
    link: int
    mbit: int
    interfaces: tuple[tuple[tuple[int, str], ...], ...]

    @property
    def order(self) -> tuple[object, ...]:
        network, six = self.way.network, ":" in self.way.addresses[0]
        return (self.link_local, self.link, not network, -self.mbit, six, self.interfaces, network)


def find_ways(nodes: Sequence[Standing]) -> tuple[Way, ...]:
    """Return the ways to seat ``nodes``, the best first; empty where what their users ask for excludes all.

    A network is shared where every node has an address of the same prefix, each another one: 172.17.0.1 of
    Docker is on every host. It is as good as its worst link and its slowest member. The addresses of the
    control connections, which are known to work, are a way of their own: nodes in different networks with
    a router between them have no other.
    """
    found = [f for network in _networks(nodes[0]) if (f := _share(network, nodes)) is not None]
    control = _follow_control(nodes)
    if control is not None and control.way.addresses not in [f.way.addresses for f in found]:
        found.append(control)
    found.sort(key=lambda f: f.order)
    return tuple(replace(f.way, why=_reason(nodes, f, found)) for f in found)


def describe_discord(nodes: Sequence[Standing]) -> str:
    """Say that nothing fits what the users of ``nodes`` ask for."""
    parts = [
        f"{n.host}{f' with {n.asked}' if n.asked else ''} "
        f"({', '.join(f'{a.address}/{a.prefix}' for a in n.networks[:NAMED_MAX]) or n.seen})"
        for n in nodes
        if n.asked
    ] + [f"{n.host} ({n.seen})" for n in nodes if not n.asked]
    more = f" and {len(parts) - NAMED_MAX} more" if len(parts) > NAMED_MAX else ""
    return f"no network is shared by {', '.join(parts[:NAMED_MAX])}{more}: name interfaces of one network"


def _share(network: Net, nodes: Sequence[Standing]) -> _Found | None:
    members = []
    for node in nodes:
        inside = [a for a in node.networks if _network_of(a) == network]
        if not inside:
            return None
        members.append(min(inside, key=_order))
    addresses = tuple(a.address for a in members)
    if len(set(addresses)) < len(addresses):
        return None
    return _found(Way(str(network), addresses), members)


def _follow_control(nodes: Sequence[Standing]) -> _Found | None:
    """Return the way of the control connections, by the address that torch takes of their interfaces."""
    addresses, members = [], []
    for node in nodes:
        here = [a for a in node.networks if a.address == node.seen]
        here = here or [a for a in node.networks if _contains(a, node.seen)]
        best = min(here, key=_order, default=None)
        if best is not None:
            members.append(best)
        elif node.asked and len(nodes) > 1:
            return None
        addresses.append(best.address if best is not None else node.seen)
    return _found(Way("", tuple(addresses)), members)


def _found(way: Way, members: Sequence[Attachment]) -> _Found:
    return _Found(
        way,
        any(map(_is_link_local, way.addresses)),
        max((_rank(a.link) for a in members), default=0),
        min((a.mbit for a in members), default=0),
        tuple(natural_order(a.interface) for a in members),
    )


def _reason(nodes: Sequence[Standing], chosen: _Found, found: Sequence[_Found]) -> str:
    if len(nodes) == 1:
        return f"as {nodes[0].asked} asks" if nodes[0].asked else "the best of this node"
    asking = [n for n in nodes if n.asked]
    all_nodes = "both nodes share" if len(nodes) == 2 else f"all {len(nodes)} nodes share"
    if not chosen.way.network:
        return f"no better network that {all_nodes}: it follows the control connections"
    if asking:
        who = ", ".join(f"{n.asked} on {n.host}" for n in asking[:NAMED_MAX])
        more = f" and {len(asking) - NAMED_MAX} more" if len(asking) > NAMED_MAX else ""
        return f"as {who}{more} asks" if len(asking) == 1 else f"as {who}{more} ask"
    others = [f for f in found if f is not chosen and f.way.network]
    if not others:
        return f"the only network that {all_nodes}"
    if found[0] is not chosen:
        return f"the next best network that {all_nodes}"
    link, second = LINKS[chosen.link], others[0]
    if chosen.link < second.link and not second.link_local:
        same = [f for f in found if f.way.network and f.link == chosen.link]
        return f"the {'only' if len(same) == 1 else 'first'} {link} one that {all_nodes}"
    if chosen.mbit > second.mbit:
        return f"the fastest {link} one that {all_nodes}"
    if ":" in second.way.addresses[0] and ":" not in chosen.way.addresses[0]:
        return f"{link}, and IPv4 comes before IPv6 where {all_nodes} both"
    equal = sum(f.link == chosen.link and f.mbit == chosen.mbit for f in [chosen, *others])
    return f"the first of {equal} equal {link} ones that {all_nodes}"


def _networks(node: Standing) -> list[Net]:
    return list(dict.fromkeys(n for a in node.networks if (n := _network_of(a)) is not None))


def _network_of(attachment: Attachment) -> Net | None:
    try:
        return ipaddress.ip_network(f"{attachment.address}/{attachment.prefix}", strict=False)
    except ValueError:  # told by another node
        return None


def _contains(attachment: Attachment, address: str) -> bool:
    network = _network_of(attachment)
    try:
        return network is not None and ipaddress.ip_address(address) in network
    except ValueError:
        return False


def _is_link_local(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_link_local
    except ValueError:
        return False


def _rank(link: str) -> int:
    return LINKS.index(link) if link in LINKS else len(LINKS) - 1
