"""Whether a machine is there at all: the question below TCP and ping, which no firewall of IP answers for it.

As root we ask by ARP (RFC 826) or a neighbour solicitation (RFC 4861) of our own. Others read what the kernel
found out when it tried to reach the address.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import struct
from collections.abc import Callable
from typing import Any

from avahi_gpu.host.aside import aside
from avahi_gpu.host.kernel import open_kernel
from avahi_gpu.host.net import interface_of
from avahi_gpu.host.system import System
from avahi_gpu.model import Interface

ASK_S = 0.9  # a LAN answers in a millisecond, sleepy Wi-Fi in a quarter of a second
AGAIN_S = 0.3  # and a lost packet is asked for again
SECOND_CARD_S = 0.1  # who shares an address answers as soon as the other one
CARDS_AT_MOST = 8

_ETHERNET = 1  # ARPHRD_ETHER
_ARP = 0x0806
_REQUEST, _REPLY = 1, 2
_BROADCAST = b"\xff" * 6
_SOLICIT, _ADVERTISE = 135, 136
_GONE = 0x01 | 0x20  # NUD_INCOMPLETE, NUD_FAILED (include/uapi/linux/neighbour.h)
_TICKS_PER_S = 100  # USER_HZ, in which NDA_CACHEINFO counts


async def ask_cards(
    address: str, interface: Interface, *, all_of_them: bool = False, within_s: float = ASK_S
) -> tuple[str, ...] | None:
    """Return the hardware addresses that answer for ``address`` on ``interface``; empty where none does.

    None: this cannot be told here (not Ethernet, not root, or the kernel has not tried). With ``all_of_them``
    it waits a moment for a second one after the first. ``address`` is numeric, without scope.
    """
    ip = ipaddress.ip_address(address)
    try:
        ask = _by_arp if ip.version == 4 else _by_solicitation
        return await ask(str(ip), interface, all_of_them, within_s)
    except PermissionError:
        await asyncio.sleep(within_s)  # for the kernel's own attempts, which the probe has set off
        return await aside(_read_kernel, str(ip), interface.index, within_s)
    except (OSError, ValueError):
        return None


async def _by_arp(
    address: str, interface: Interface, all_of_them: bool, within_s: float
) -> tuple[str, ...] | None:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ARP)) as sock:
        sock.setblocking(False)
        sock.bind((interface.name, _ARP))
        _, _, _, kind, own_card = sock.getsockname()
        if kind != _ETHERNET:
            return None
        own = _own_ipv4(address, interface)
        frame = arp_request(own_card, own, address)
        return await _collect(
            lambda: sock.send(frame), sock, lambda data: read_arp(data, address), all_of_them, within_s
        )


async def _by_solicitation(
    address: str, interface: Interface, all_of_them: bool, within_s: float
) -> tuple[str, ...] | None:
    target = ipaddress.IPv6Address(address).packed
    group = solicited_node(address)
    with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as sock:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)  # else it is dropped
        packet = struct.pack("!BBHI", _SOLICIT, 0, 0, 0) + target + _own_card(interface)
        return await _collect(
            lambda: sock.sendto(packet, (group, 0, 0, interface.index)),
            sock,
            lambda data: read_advertisement(data, address),
            all_of_them,
            within_s,
        )


async def _collect(
    ask: Callable[[], object],
    sock: socket.socket,
    read: Callable[[bytes], str | None],
    all_of_them: bool,
    within_s: float,
) -> tuple[str, ...]:
    loop = asyncio.get_running_loop()
    end = loop.time() + within_s
    ask_at = loop.time()
    cards: dict[str, None] = {}
    while (now := loop.time()) < end and len(cards) < CARDS_AT_MOST:
        if now >= ask_at and not cards:
            ask()
            ask_at = now + AGAIN_S
        until = end if cards else min(end, ask_at)
        try:
            data = await asyncio.wait_for(loop.sock_recv(sock, 2048), max(0.0, until - loop.time()))
        except asyncio.TimeoutError:
            continue
        card = read(data)
        if card is None:
            continue
        if not cards:
            if not all_of_them:
                return (card,)
            end = min(end, loop.time() + SECOND_CARD_S)
        cards[card] = None
    return tuple(cards)


def _own_ipv4(address: str, interface: Interface) -> str:
    """Return our address to ask with; one of another network is answered too, by most."""
    wanted = ipaddress.ip_address(address)
    own = [a for a in interface.addresses if a.family == 4]
    for one in own:
        if wanted in ipaddress.ip_network(f"{one.ip}/{one.prefix}", strict=False):
            return "0.0.0.0" if one.ip == address else one.ip  # our own: a probe (RFC 5227)
    return own[0].ip if own else "0.0.0.0"


def _own_card(interface: Interface) -> bytes:
    """Return the option that tells our hardware address, without which nobody answers."""
    text = (System().read(f"/sys/class/net/{interface.name}/address").content or b"").decode(
        "ascii", "replace"
    )
    card = bytes.fromhex(text.strip().replace(":", ""))
    return b"\x01\x01" + card if len(card) == 6 else b""


def arp_request(own_card: bytes, own: str, address: str) -> bytes:
    """Return the Ethernet frame that asks everybody who has ``address`` (RFC 826)."""
    header = _BROADCAST + own_card + struct.pack("!H", _ARP)
    body = struct.pack("!HHBBH", _ETHERNET, 0x0800, 6, 4, _REQUEST)
    body += own_card + socket.inet_aton(own) + b"\0" * 6 + socket.inet_aton(address)
    return (header + body).ljust(60, b"\0")


def read_arp(frame: bytes, address: str) -> str | None:
    """Return the hardware address that an ARP reply tells for ``address``, None for any other frame."""
    if len(frame) < 42:
        return None
    kind, protocol, hardware, length, operation = struct.unpack("!HHBBH", frame[14:22])
    if (kind, protocol, hardware, length, operation) != (_ETHERNET, 0x0800, 6, 4, _REPLY):
        return None
    return frame[22:28].hex(":") if frame[28:32] == socket.inet_aton(address) else None


def solicited_node(address: str) -> str:
    """Return the multicast group in which the owner of an IPv6 address listens (RFC 4291 section 2.7.1)."""
    return str(
        ipaddress.IPv6Address(
            bytes.fromhex("ff0200000000000000000001ff") + ipaddress.IPv6Address(address).packed[13:]
        )
    )


def read_advertisement(packet: bytes, address: str) -> str | None:
    """Return who advertises ``address`` (its hardware address, ``?`` where it is not told), else None."""
    if len(packet) < 24 or packet[0] != _ADVERTISE:
        return None
    if packet[8:24] != ipaddress.IPv6Address(address).packed:
        return None
    option = packet[24:32]
    return option[2:8].hex(":") if len(option) == 8 and option[:2] == b"\x02\x01" else "?"


# --- the kernel's own knowledge --------------------------------------------------------------------------


def _read_kernel(address: str, index: int, within_s: float) -> tuple[str, ...] | None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with open_kernel() as kernel:
        return read_neighbour(list(kernel.get_neighbours(family, ifindex=index)), address, within_s)


def read_neighbour(messages: list[Any], address: str, within_s: float) -> tuple[str, ...] | None:
    """Return what the kernel's table says of ``address`` after an attempt to reach it within ``within_s``.

    What it has not confirmed meanwhile it may still confirm: that tells nothing (None).
    """
    for message in messages:
        if message.get_attr("NDA_DST") != address:
            continue
        if message["state"] & _GONE:
            return ()
        times = message.get_attr("NDA_CACHEINFO")
        if times and times["ndm_confirmed"] <= (within_s + 1.0) * _TICKS_PER_S:
            return (str(message.get_attr("NDA_LLADDR") or "?"),)
    return None


def read_gateway(address: str) -> str:
    """Return the router that packets to ``address`` take, '' where they go straight to it or nowhere."""
    try:
        with open_kernel() as kernel:
            routes = list(kernel.route("get", dst=address))
    except Exception:  # pyroute2 has errors of its own: no route is one of them
        return ""
    return str(routes[0].get_attr("RTA_GATEWAY") or "") if routes else ""


def is_on_link(address: str, interface: Interface) -> bool:
    """Tell whether ``address`` lies in a network of ``interface``."""
    return interface_of(address, (interface,)) is not None
