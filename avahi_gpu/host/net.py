"""The network of this machine: interfaces, the one that is the LAN, and whether an address answers."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Literal

from avahi_gpu.host.aside import aside
from avahi_gpu.host.kernel import open_kernel
from avahi_gpu.host.links import (
    IFF_MULTICAST,
    IFF_RUNNING,
    IFF_UP,
    bridges_of_cards,
    classify,
    read_mdns_members,
)
from avahi_gpu.host.system import System
from avahi_gpu.model import Address, Interface, Link

PROBE_WITHIN_S = 1.0  # a LAN answers in a millisecond; a lost packet is sent again after one second only
_SCOPES: dict[int, Literal["global", "link", "host"]] = {0: "global", 200: "global", 253: "link", 254: "host"}
_NOT_USABLE = 0x08 | 0x40  # IFA_F_DADFAILED, IFA_F_TENTATIVE (include/uapi/linux/if_addr.h)
_LINK_ORDER: dict[Link, int] = {"wired": 0, "wireless": 1, "virtual": 2, "tunnel": 3, "loopback": 4}


# --- interfaces ------------------------------------------------------------------------------------------


def read_interfaces(system: System | None = None) -> tuple[Interface, ...]:
    """Return every interface of this network namespace, by index; in a few milliseconds.

    Raises OSError where the kernel refuses netlink.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        links, addresses = _ask_kernel()
    else:  # pyroute2 runs an event loop of its own, which needs a thread of its own then
        links, addresses = _in_thread(_ask_kernel)
    return _describe(links, addresses, system or System())


def _in_thread(work: Callable[[], Any]) -> Any:
    answer: Future[Any] = Future()

    def run() -> None:
        try:
            answer.set_result(work())
        except BaseException as fault:  # handed to the caller
            answer.set_exception(fault)

    threading.Thread(target=run, daemon=True).start()
    return answer.result()


def _ask_kernel() -> tuple[list[Any], list[Any]]:
    with open_kernel() as kernel:
        return list(kernel.get_links()), list(kernel.get_addr())


def _describe(links: list[Any], addresses: list[Any], system: System) -> tuple[Interface, ...]:
    words: dict[int, tuple[str, str, int, bool]] = {}
    masters: dict[int, int] = {}
    for link in links:
        name = str(link.get_attr("IFLA_IFNAME"))
        information = link.get_attr("IFLA_LINKINFO")
        kind = str(information.get_attr("IFLA_INFO_KIND") or "") if information else ""
        wireless = system.exists(f"/sys/class/net/{name}/wireless")
        words[link["index"]] = (name, kind, link["flags"], wireless)
        master = link.get_attr("IFLA_MASTER")
        if master:
            masters[link["index"]] = master
    bridges = bridges_of_cards(words, masters)
    members = _read_members(system)
    of_link: dict[int, list[Any]] = {}
    for message in addresses:
        of_link.setdefault(int(message["index"]), []).append(message)
    found = []
    for link in links:
        index = int(link["index"])
        name, kind, flags, wireless = words[index]
        found.append(
            Interface(
                name=name,
                index=index,
                link=classify(name, kind, flags, wireless=wireless, has_wired_port=index in bridges),
                up=bool(flags & IFF_UP),
                running=bool(flags & IFF_UP and flags & IFF_RUNNING),
                multicast=bool(flags & IFF_MULTICAST),
                mtu=int(link.get_attr("IFLA_MTU") or 0),
                speed_mbit=_speed(name, system) if flags & IFF_RUNNING else None,
                addresses=tuple(_addresses(of_link.get(index, ()))),
                in_mdns_group=None if members is None else index in members,
            )
        )
    return tuple(sorted(found, key=lambda i: i.index))


def read_groups(system: System, interfaces: tuple[Interface, ...]) -> tuple[Interface, ...]:
    """Return the interfaces with ``in_mdns_group`` as it is now."""
    members = _read_members(system)
    return tuple(
        replace(i, in_mdns_group=None if members is None else i.index in members) for i in interfaces
    )


def _read_members(system: System) -> frozenset[int] | None:
    groups = [system.read(f"/proc/net/{table}").content for table in ("igmp", "igmp6")]
    texts = [(content or b"").decode("ascii", "replace") for content in groups]
    return None if groups == [None, None] else read_mdns_members(*texts)


def _addresses(messages: Iterable[Any]) -> Iterable[Address]:
    for message in messages:
        flags = message.get_attr("IFA_FLAGS") or message["flags"]
        if flags & _NOT_USABLE:
            continue
        # the own end of a point-to-point link is IFA_LOCAL; IPv6 mostly has IFA_ADDRESS alone
        ip = ipaddress.ip_address(message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS"))
        scope = _SCOPES.get(message["scope"], "global")
        if ip.is_link_local:  # 169.254/16 too, which the kernel calls global where it was set by hand
            scope = "link"
        yield Address(str(ip), int(message["prefixlen"]), 4 if ip.version == 4 else 6, scope)


def _speed(name: str, system: System) -> int | None:
    content = system.read(f"/sys/class/net/{name}/speed").content
    text = (content or b"").decode("ascii", "replace").strip()
    return int(text) if text.isdigit() else None  # -1: not known


def lan_interfaces(interfaces: Iterable[Interface]) -> tuple[Interface, ...]:
    """Return the interfaces that can be the LAN, best first: running, with a global address.

    Wired before wireless before virtual; tunnels and loopback never. Among equals those with multicast and
    IPv4, then the faster.
    """
    usable = [
        i
        for i in interfaces
        if i.running
        and i.link not in ("tunnel", "loopback")
        and any(a.scope == "global" for a in i.addresses)
    ]
    return tuple(
        sorted(
            usable,
            key=lambda i: (
                _LINK_ORDER[i.link],
                not i.multicast,
                i.ipv4 is None,
                -(i.speed_mbit or 0),
                i.index,
            ),
        )
    )


def real_interfaces(interfaces: Iterable[Interface]) -> tuple[Interface, ...]:
    """Return those of ``lan_interfaces`` that are cards; all where none is, as below a bridge."""
    usable = lan_interfaces(interfaces)
    return tuple(i for i in usable if i.link != "virtual") or usable


def interface_of(address: str, interfaces: Iterable[Interface]) -> Interface | None:
    """Return the interface that has ``address`` or reaches it directly: the narrowest network, the best link.

    None where it lies behind a router, or is no IP address.
    """
    try:
        wanted = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    best: tuple[tuple[bool, int, int, int], Interface] | None = None
    for interface in interfaces:
        for own in interface.addresses:
            network = ipaddress.ip_network(f"{own.ip}/{own.prefix}", strict=False)
            if wanted not in network:
                continue
            key = (own.ip != str(wanted), -own.prefix, _LINK_ORDER[interface.link], interface.index)
            if best is None or key < best[0]:
                best = (key, interface)
    return best[1] if best else None


def route_source(address: str) -> str | None:
    """Return the source address that the kernel would use towards ``address``, None without a route.

    ``address`` is numeric; a link-local one needs its interface (``fe80::1%eth0``). Sends nothing.
    """
    try:
        ((family, _, _, _, target), *_) = socket.getaddrinfo(
            address, 9, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST
        )
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.connect(target)
            return str(sock.getsockname()[0]).partition("%")[0]
    except OSError:
        return None


# --- does it answer? -------------------------------------------------------------------------------------


async def probe(address: str, port: int, within_s: float = PROBE_WITHIN_S) -> bool | None:
    """Ask whether anybody is at ``address``: TCP to ``port`` and ICMP echo, both at once.

    True: a connection was accepted or refused, or an echo came back. False: nothing came in time, or there
    is no route. None: this process may send no echo, and TCP alone went unanswered, which a firewall does
    too. ``address`` is numeric; a link-local IPv6 one needs its interface (``fe80::1%eth0``).
    """
    address, _, zone = address.partition("%")
    try:
        scope = (int(zone) if zone.isdigit() else socket.if_nametoindex(zone)) if zone else 0
    except OSError:
        return False  # no such interface
    attempts = {
        asyncio.ensure_future(_connects(address, port, scope)),
        asyncio.ensure_future(_echoes(address, scope, within_s)),
    }
    loop = asyncio.get_running_loop()
    end = loop.time() + within_s
    verdicts: list[bool | None] = []
    waiting = set(attempts)
    try:
        while waiting and (left_s := end - loop.time()) > 0:
            done, waiting = await asyncio.wait(waiting, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            verdicts += [attempt.result() for attempt in done]
            if True in verdicts:
                return True
    finally:
        for attempt in attempts:
            attempt.cancel()
        await asyncio.gather(*attempts, return_exceptions=True)
    return None if None in verdicts else False


def may_be_asked(address: str) -> bool:
    """Return whether one machine at most answers there: a record may name any address."""
    ip = ipaddress.ip_address(address)
    return not (ip.is_multicast or ip.is_unspecified or ip.is_loopback or str(ip) == "255.255.255.255")


async def _connects(address: str, port: int, scope: int) -> bool:
    loop = asyncio.get_running_loop()
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    target = (address, port, 0, scope) if family == socket.AF_INET6 else (address, port)
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.setblocking(False)
        try:
            await loop.sock_connect(sock, target)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
        return True


async def _echoes(address: str, scope: int, within_s: float) -> bool | None:
    """Send an ICMP echo; True when it comes back. None where no way to send one is open to this process."""
    ip = ipaddress.ip_address(address)
    family, protocol = (
        (socket.AF_INET, socket.IPPROTO_ICMP) if ip.version == 4 else (socket.AF_INET6, socket.IPPROTO_ICMPV6)
    )
    # an ordinary user's socket where net.ipv4.ping_group_range allows it, root's raw one else
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            sock = socket.socket(family, kind, protocol)
        except OSError:
            continue
        with sock:
            sock.setblocking(False)
            return await _exchange_echo(sock, address, scope, raw=kind == socket.SOCK_RAW)
    return await aside(_ping, address if not scope else f"{address}%{scope}", within_s)


async def _exchange_echo(sock: socket.socket, address: str, scope: int, *, raw: bool) -> bool:
    loop = asyncio.get_running_loop()
    request, reply = (8, 0) if sock.family == socket.AF_INET else (128, 129)  # RFC 792, RFC 4443
    token = os.urandom(16)  # the kernel chooses the identifier of a user's echo; the payload is ours
    packet = struct.pack("!BBHHH", request, 0, 0, os.getpid() & 0xFFFF, 1) + token
    packet = packet[:2] + struct.pack("!H", internet_checksum(packet)) + packet[4:]
    try:
        sock.connect((address, 0, 0, scope) if sock.family == socket.AF_INET6 else (address, 0))
        await loop.sock_sendall(sock, packet)
        while True:
            data = await loop.sock_recv(sock, 2048)
            if raw and sock.family == socket.AF_INET and data:
                data = data[(data[0] & 0x0F) * 4 :]  # the IP header comes with it
            if data and data[0] == reply and data.endswith(token):
                return True
    except OSError:
        return False


def _ping(address: str, within_s: float) -> bool | None:
    done = System().run(["ping", "-n", "-c", "1", "-W", f"{max(1, round(within_s))}", address], within_s + 1)
    if done.returncode == 0:
        return True
    return False if done.returncode in (1, None) else None  # ping(8): 1 no answer, 2 an error


def internet_checksum(data: bytes) -> int:
    """Return the checksum of RFC 1071 over ``data``."""
    padded = data + b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
