"""Whether another machine is reached, and how: a TCP connection, an ICMP echo, one that fills a frame."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct
import time
from dataclasses import dataclass

from avahi_gpu.host.net import internet_checksum

CONNECT_WITHIN_S = 3.3  # a lost SYN is repeated after 1 and 3 s: who answers none of three is blocked
ECHO_WITHIN_S = 1.0  # of one echo; a LAN answers in a millisecond
ECHOES = 3  # one of them may be lost
HEADERS = {4: 20 + 8, 6: 40 + 8}  # bytes of IP (without options) and ICMP

IP_MTU_DISCOVER, IPV6_MTU_DISCOVER = 10, 23  # linux/in.h, linux/in6.h: not in the socket module
PMTUDISC_PROBE = 3  # forbids fragments, and asks no memory of the path's MTU


@dataclass(frozen=True)
class Attempt:
    """What came of it: True, False, or None where this process may not try. ``words`` tell what was seen."""

    ok: bool | None
    words: str = ""
    took_s: float = 0.0


def target_of(address: str, port: int) -> tuple[socket.AddressFamily, tuple[object, ...]]:
    """Return family and socket address of a numeric address, with its interface where it has one."""
    plain, _, zone = address.partition("%")
    if ":" not in plain:
        return socket.AF_INET, (plain, port)
    scope = (int(zone) if zone.isdigit() else socket.if_nametoindex(zone)) if zone else 0
    return socket.AF_INET6, (plain, port, 0, scope)


async def connect(address: str, port: int, within_s: float = CONNECT_WITHIN_S) -> Attempt:
    """Connect by TCP and close at once, without a word: a running job may listen there."""
    loop = asyncio.get_running_loop()
    began = time.monotonic()
    try:
        family, target = target_of(address, port)
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.setblocking(False)
            await asyncio.wait_for(loop.sock_connect(sock, target), within_s)
    except asyncio.TimeoutError:
        return Attempt(False, "no answer", time.monotonic() - began)
    except ConnectionRefusedError:
        return Attempt(False, "refused", time.monotonic() - began)
    except OSError as fault:
        return Attempt(False, explain(fault), time.monotonic() - began)
    return Attempt(True, "", time.monotonic() - began)


def explain(fault: OSError) -> str:
    """Return what the kernel says, in its own words without the address."""
    if fault.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        return "no route, or a firewall says so"
    known = fault.errno is not None and fault.errno in errno.errorcode
    return os.strerror(fault.errno or 0).lower() if known else "not possible"


async def echo(address: str, size: int = 0, within_s: float = ECHO_WITHIN_S, tries: int = ECHOES) -> Attempt:
    """Send an ICMP echo, again where it is lost. ``size``: bytes of the whole packet, 0 for a small one.

    One with a size may not be cut into pieces on its way. None where this process may send no echo.
    """
    began = time.monotonic()
    sock = _open(address)
    if sock is None:
        return Attempt(None, "this process may send no echo")
    words = ""
    with sock:
        for number in range(tries):
            words = await _try(sock, address, size, number, within_s)
            if not words:
                return Attempt(True, "", time.monotonic() - began)
    return Attempt(False, words, time.monotonic() - began)


async def _try(sock: socket.socket, address: str, size: int, number: int, within_s: float) -> str:
    """Send one echo; return '' where it comes back, else why it does not."""
    try:
        await asyncio.wait_for(_exchange(sock, address, size, number), within_s)
    except asyncio.TimeoutError:
        return "no answer"
    except OSError as fault:
        return f"{size} bytes do not fit" if fault.errno == errno.EMSGSIZE else explain(fault)
    return ""


def _open(address: str) -> socket.socket | None:
    family, protocol = (
        (socket.AF_INET6, socket.IPPROTO_ICMPV6) if ":" in address else (socket.AF_INET, socket.IPPROTO_ICMP)
    )
    # an ordinary user's socket where net.ipv4.ping_group_range allows it, root's raw one else
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            sock = socket.socket(family, kind, protocol)
        except OSError:
            continue
        sock.setblocking(False)
        return sock
    return None


async def _exchange(sock: socket.socket, address: str, size: int, number: int) -> None:
    loop = asyncio.get_running_loop()
    six = sock.family == socket.AF_INET6
    request, reply = (128, 129) if six else (8, 0)  # RFC 4443, RFC 792
    token = os.urandom(16)  # the kernel chooses the identifier of a user's echo; the payload is ours
    body = token
    if size:
        body = token + bytes(max(0, size - HEADERS[6 if six else 4] - len(token)))
        level, option = (
            (socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER) if six else (socket.IPPROTO_IP, IP_MTU_DISCOVER)
        )
        sock.setsockopt(level, option, PMTUDISC_PROBE)
    packet = struct.pack("!BBHHH", request, 0, 0, os.getpid() & 0xFFFF, number + 1) + body
    packet = packet[:2] + struct.pack("!H", internet_checksum(packet)) + packet[4:]
    sock.connect(target_of(address, 0)[1])
    await loop.sock_sendall(sock, packet)
    while True:
        data = await loop.sock_recv(sock, 65536)
        if sock.type == socket.SOCK_RAW and not six and data:
            data = data[(data[0] & 0x0F) * 4 :]  # the IP header comes with it
        if data and data[0] == reply and data[8:24] == token:
            return
