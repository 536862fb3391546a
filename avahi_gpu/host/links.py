"""What kind of network link the kernel's words describe, and which mDNS groups it has joined. Pure."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping

from avahi_gpu.model import Link

# include/uapi/linux/if.h
IFF_UP = 0x1
IFF_LOOPBACK = 0x8
IFF_POINTOPOINT = 0x10
IFF_RUNNING = 0x40
IFF_MULTICAST = 0x1000

TUNNEL_KINDS = frozenset({"wireguard", "ipip", "sit", "gre", "ip6tnl", "ip6gre", "vti", "xfrm", "ppp", "tun"})
# made by software, and no part of the LAN by themselves
VIRTUAL_KINDS = frozenset(
    {"bridge", "dummy", "geneve", "gretap", "ifb", "ipvlan", "macvlan", "macvtap", "nlmon", "veth", "vxlan"}
)
# made by software upon a real link: bond, team, vlan, ipoib, … count as wired
CONTAINER_NAMES = re.compile(
    r"(docker|br-|virbr|veth|lxc|lxd|incus|cni|flannel|cali|cilium|kube|podman|vnet|vmnet|vboxnet|tap|ifb|dummy)"
)
TUNNEL_NAMES = re.compile(r"(tailscale|wg|tun|zt|ppp|utun|nebula|ipsec)")
WIRELESS_NAMES = re.compile(r"(wl|wlan|ath)[0-9psx]")
WIRED_NAMES = re.compile(r"(eth|en|em|ib|bond|team)[0-9psox]")
MDNS_GROUP = bytes([224, 0, 0, 251])  # RFC 6762 section 3
MDNS_GROUP_6 = "ff0200000000000000000000000000fb"  # ff02::fb, the same over IPv6


def classify(name: str, kind: str, flags: int, *, wireless: bool, has_wired_port: bool = False) -> Link:
    """Return what a link is, from its name, IFLA_INFO_KIND ('' for a real device) and IFF flags.

    ``has_wired_port``: a bridge with a real card in it, as hosts of virtual machines have, is the LAN itself.
    A container's own ``eth0`` is its LAN, whatever the kernel made it from.
    """
    if flags & IFF_LOOPBACK:
        return "loopback"
    if wireless or WIRELESS_NAMES.match(name):
        return "wireless"
    if CONTAINER_NAMES.match(name):
        return "virtual"
    if kind in TUNNEL_KINDS or flags & IFF_POINTOPOINT or TUNNEL_NAMES.match(name):
        return "tunnel"
    if WIRED_NAMES.match(name) or (kind == "bridge" and has_wired_port):
        return "wired"
    return "virtual" if kind in VIRTUAL_KINDS else "wired"


def read_mdns_members(igmp: str, igmp6: str = "", *, byteorder: str = sys.byteorder) -> frozenset[int]:
    """Return the indexes of the interfaces that are in 224.0.0.251 or ff02::fb.

    In the text of /proc/net/igmp a line of an interface starts with its index; the groups follow, indented,
    as eight hexadecimal digits of the address as the machine's own integer. A line of /proc/net/igmp6 has
    index, name and group, the address in its order.
    """
    raw = MDNS_GROUP if byteorder == "big" else MDNS_GROUP[::-1]
    wanted = raw.hex().upper()
    members: set[int] = set()
    index = 0
    for line in igmp.splitlines():
        words = line.split()
        if not words:
            continue
        if not line[0].isspace():
            index = int(words[0]) if words[0].isdigit() else 0
        elif words[0].upper() == wanted and index:
            members.add(index)
    for line in igmp6.splitlines():
        words = line.split()
        if len(words) > 2 and words[0].isdigit() and words[2].lower() == MDNS_GROUP_6:
            members.add(int(words[0]))
    return frozenset(members)


def bridges_of_cards(links: Mapping[int, tuple[str, str, int, bool]], masters: Mapping[int, int]) -> set[int]:
    """Return the indexes of the bridges with a wired card in them.

    ``links``: index -> (name, kind, flags, wireless); ``masters``: index -> index of what it is a port of.
    """
    found = set()
    for index, master in masters.items():
        name, kind, flags, wireless = links[index]
        if kind != "veth" and classify(name, kind, flags, wireless=wireless) == "wired":
            found.add(master)
    return found
