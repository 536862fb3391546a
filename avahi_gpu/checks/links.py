"""2xx: more interfaces than one, and ways that lead astray."""

from __future__ import annotations

import ipaddress
from itertools import combinations

from avahi_gpu.checks import fixes
from avahi_gpu.checks.network import describe_interface, usable_interfaces
from avahi_gpu.checks.outcome import Outcome, error, info, ok, skip, unread, warn
from avahi_gpu.checks.registry import check
from avahi_gpu.model import Address, Facts, Fix, Interface

KERNEL = "network.kernel"
OVERLAY = ipaddress.ip_network("100.64.0.0/10")  # RFC 6598; Tailscale and its like give these out
MTU_LEAST = 1280  # IPv6 works from here on (RFC 8200 section 5)
MEMBERSHIPS_WANTED = 256
MEMBERSHIPS = "net.ipv4.igmp_max_memberships"


@check(
    "AG208",
    slug="way-back",
    area="network",
    says="packets to the LAN leave by the interface that they came in",
    needs=("AG201",),
)
def way_back(facts: Facts) -> Outcome:
    """A VPN that claims the LAN's subnet takes the answers, and a strict kernel drops the questions."""
    kernel = facts.network.kernel
    if kernel is None:
        return unread(facts, KERNEL, "the routes to the LAN")
    owners = {a.ip: i for i in facts.interfaces for a in i.addresses}
    cards = {i.name for i in facts.interfaces if i.link in ("wired", "wireless")}
    astray = []
    for way in kernel.ways_back:
        owner = owners.get(way.source or "")
        if way.interface in cards and (owner is None or owner.name not in cards):
            astray.append((way, owner.name if owner is not None else "no interface of this machine"))
    if not astray:
        return ok(*sorted({w.interface for w in kernel.ways_back}))
    told = [f"{w.neighbour}, on the subnet of {w.interface}, is sent through {to}" for w, to in astray]
    if any(w.strict for w, _ in astray):
        told.append("net.ipv4.conf.*.rp_filter is 1: what comes in on the LAN is dropped too")
    return error(
        f"the way to the LAN of {astray[0][0].interface} leads through {astray[0][1]}",
        told,
        hint="look at `ip rule` and `ip route get ADDRESS`: a VPN has probably taken the LAN's subnet over "
        "(Tailscale: tailscale set --accept-routes=false)",
    )


@check(
    "AG210",
    slug="two-cards-in-a-subnet",
    area="network",
    says="each subnet is reached by one card",
    needs=("AG201",),
)
def two_cards(facts: Facts) -> Outcome:
    """Peers get one of the two addresses, and perhaps the slower one (avahi#331, NVIDIA/nccl#1580)."""
    cards = [i for i in usable_interfaces(facts) if i.link in ("wired", "wireless")]
    double = [(a, b) for a, b in combinations(cards, 2) if _overlap(a, b)]
    if not double:
        return ok(*(describe_interface(i) for i in cards))
    first, second = double[0]
    best = max(first, second, key=lambda i: (i.link == "wired", i.speed_mbit or 0, -i.index))
    return warn(
        f"{first.name} and {second.name} are in one subnet, and peers see either",
        [describe_interface(i) for i in dict.fromkeys(i for pair in double for i in pair)],
        hint=f"disconnect the slower one, or set allow-interfaces={best.name} in avahi-daemon.conf",
    )


@check(
    "AG211",
    slug="overlay-names",
    area="network",
    says="the host name does not lead into a VPN",
    needs=("AG201",),
)
def overlay_names(facts: Facts) -> Outcome:
    """Tunnels carry no mDNS, and their name servers may answer for the bare host name."""
    overlays = [i for i in facts.interfaces if any(_is_overlay(a) for a in i.addresses)]
    tunnels = [i for i in facts.interfaces if i.up and (i.link == "tunnel" or i in overlays)]
    inside = {a.ip for i in tunnels for a in i.addresses}
    for lookup in (facts.kernel_name, facts.own_name):
        astray = [a for a in (lookup.addresses if lookup else ()) if a in inside]
        if lookup is not None and astray:
            return warn(
                f"{lookup.name} means {', '.join(astray)}, an address inside the VPN of "
                + " and ".join(i.name for i in tunnels if any(a.ip in astray for a in i.addresses)),
                [describe_interface(i) for i in tunnels],
                hint="programs that look their own name up offer that address to nodes on the LAN; take the "
                "line out of /etc/hosts, or the VPN's name server out of resolv.conf (MagicDNS)",
            )
    if tunnels:
        return info(
            f"{' and '.join(i.name for i in tunnels)} carries no mDNS: nodes behind it are not found",
            [describe_interface(i) for i in tunnels],
            hint="name them: avahi-gpu launch --peers ADDRESS,ADDRESS …",
        )
    return ok()


@check(
    "AG212",
    slug="many-interfaces",
    area="network",
    says="avahi-daemon can join mDNS's group on every interface",
    needs=("AG202",),
)
def many_interfaces(facts: Facts) -> Outcome:
    """One socket joins as many groups as the kernel allows, 20 by default: containers use them up."""
    kernel = facts.network.kernel
    if kernel is None or kernel.memberships_max is None:
        return unread(facts, KERNEL, f"the kernel's {MEMBERSHIPS}")
    candidates = [i for i in facts.interfaces if i.up and i.ipv4 and (i.multicast or i.link == "loopback")]
    if len(candidates) <= kernel.memberships_max:
        return ok(f"{len(candidates)} interfaces, {kernel.memberships_max} allowed")
    lan = [i for i in usable_interfaces(facts) if i.ipv4 and i.link != "virtual"]
    outside = [i.name for i in lan if kernel.in_group is not None and i.name not in kernel.in_group]
    told = [f"{len(candidates)} interfaces, and one socket may join {kernel.memberships_max} groups"]
    judge = error if outside else warn
    return judge(
        f"avahi-daemon could not join mDNS's group on {', '.join(outside)}"
        if outside
        else "there are more interfaces than avahi-daemon can listen on",
        [*told, *(f"{name} is left out" for name in outside)],
        fix=_allow_more(facts, kernel.memberships_max),
        hint="better still: name the LAN's cards in allow-interfaces in avahi-daemon.conf",
    )


@check(
    "AG213",
    slug="virtual-interfaces",
    area="network",
    says="avahi-daemon listens on cards alone",
    needs=("AG202", "AG304"),
)
def virtual_interfaces(facts: Facts) -> Outcome:
    """On bridges of containers names appear that nobody on the LAN can reach (truenas/middleware#8106)."""
    virtual = [i for i in facts.interfaces if i.in_mdns_group and i.link == "virtual"]
    cards = [i for i in usable_interfaces(facts) if i.link in ("wired", "wireless")]
    if not virtual or not cards:
        return ok()
    return info(
        f"avahi-daemon also listens on {', '.join(i.name for i in virtual[:6])}",
        [describe_interface(i) for i in virtual[:6]],
        hint=f"harmless for nodes on the LAN; allow-interfaces={','.join(i.name for i in cards)} in "
        "avahi-daemon.conf keeps it to the cards",
    )


@check(
    "AG214",
    slug="lan-addresses",
    area="network",
    says="the LAN's addresses and MTU are ones that nodes can work with",
    needs=("AG201",),
)
def lan_addresses(facts: Facts) -> Outcome:
    """What is odd and works all the same for now."""
    lan = usable_interfaces(facts)
    small = [i for i in lan if 0 < i.mtu < MTU_LEAST]
    if small:
        return warn(
            f"the MTU of {small[0].name} is {small[0].mtu}: IPv6 does not work below {MTU_LEAST}",
            [f"{i.name}: MTU {i.mtu}" for i in small],
            hint=f"ip link set {small[0].name} mtu 1500, on all nodes alike",
        )
    single = [i for i in lan if _is_alone(i)]
    if single and len(single) == len(lan):
        return info(
            f"{single[0].name} has an address without a subnet, so no node is its neighbour",
            [describe_interface(i) for i in single],
            hint="clouds do that, and pass no multicast on: name the nodes by --peers",
        )
    if lan and not any(i.ipv4 for i in lan):
        return info(
            "the LAN has IPv6 alone",
            [describe_interface(i) for i in lan],
            hint="names are found by glibc's module mdns_minimal; mdns4_minimal asks for IPv4 alone",
        )
    return ok() if lan else skip("there is no LAN interface")


def _overlap(one: Interface, other: Interface) -> bool:
    return any(
        ipaddress.ip_address(a.ip) in _network(b) or ipaddress.ip_address(b.ip) in _network(a)
        for a in one.addresses
        for b in other.addresses
        if a.family == b.family == 4 and a.scope == b.scope == "global"
    )


def _network(address: Address) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    return ipaddress.ip_network(f"{address.ip}/{address.prefix}", strict=False)


def _is_overlay(address: Address) -> bool:
    return address.family == 4 and ipaddress.ip_address(address.ip) in OVERLAY


def _is_alone(interface: Interface) -> bool:
    own = [a for a in interface.addresses if a.scope == "global"]
    return bool(own) and all(a.prefix == (32 if a.family == 4 else 128) for a in own)


def _allow_more(facts: Facts, now: int) -> Fix:
    title = f"allow {MEMBERSHIPS_WANTED} groups a socket"
    change = fixes.command(
        title,
        ("sysctl", "-q", "-w", f"{MEMBERSHIPS}={MEMBERSHIPS_WANTED}"),
        undo=("sysctl", "-q", "-w", f"{MEMBERSHIPS}={now}"),
        until_boot=True,
    )
    return Fix(title, (change, *fixes.restart_avahi(facts).changes))
