"""ICMP echoes to many addresses over one socket a family, each with the time that its answer took."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from dataclasses import dataclass

from avahi_gpu.host.net import internet_checksum

DRAIN_MAX = 256  # packets taken at once: what is left makes the socket readable again
PACKET_MAX = 2048
TOKEN_BYTES = 16  # nobody guesses one: only who got our packet can answer it

_REQUEST = {4: 8, 6: 128}  # RFC 792, RFC 4443
_REPLY = {4: 0, 6: 129}
_SOL_RAW, _ICMP_FILTER = 255, 1  # linux/icmp.h
_ICMP6_FILTER = 1  # linux/icmpv6.h


@dataclass
class _Door:
    """A socket of one family; ``raw``: the IP header comes with what it reads."""

    sock: socket.socket
    version: int
    raw: bool


class Echoes:
    """Sends echoes for as long as it is open, in a running event loop; to be closed."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._doors: dict[int, _Door | None] = {}
        self._awaited: dict[bytes, tuple[asyncio.Future[float | None], float]] = {}

    def close(self) -> None:
        """Close the sockets; what was not answered is not any more."""
        for door in self._doors.values():
            if door is not None:
                self._loop.remove_reader(door.sock)
                door.sock.close()
        self._doors.clear()
        for answer, _ in self._awaited.values():
            answer.cancel()
        self._awaited.clear()

    def may_ask(self, address: str) -> bool:
        """Return whether this process may send echoes to an address of that kind."""
        return self._door(6 if ":" in address else 4) is not None

    def send(self, address: str, scope: int = 0) -> asyncio.Future[float | None]:
        """Send one echo; the future is the seconds until its answer, and None where it could not be sent.

        It may never end: whoever gives up cancels it. ``scope``: the index of the interface of a link-local
        IPv6 address.
        """
        answer: asyncio.Future[float | None] = self._loop.create_future()
        version = 6 if ":" in address else 4
        door = self._door(version)
        token = os.urandom(TOKEN_BYTES)
        target = (address, 0, 0, scope) if version == 6 else (address, 0)
        began = self._loop.time()
        try:
            if door is None:
                raise PermissionError
            door.sock.sendto(echo_request(version, token), target)
        except OSError:  # no route, or the queue is full: as good as lost
            answer.set_result(None)
            return answer
        self._awaited[token] = (answer, began)
        answer.add_done_callback(lambda _: self._awaited.pop(token, None))
        return answer

    def _door(self, version: int) -> _Door | None:
        if version not in self._doors:
            door = _open(version)
            self._doors[version] = door
            if door is not None:
                self._loop.add_reader(door.sock, self._read, door)
        return self._doors[version]

    def _read(self, door: _Door) -> None:
        for _ in range(DRAIN_MAX):
            try:
                packet = door.sock.recv(PACKET_MAX)
            except OSError:  # EAGAIN: that was all; anything else is of one packet
                return
            token = read_reply(packet, door.version, raw=door.raw)
            answer, began = self._awaited.get(token or b"", (None, 0.0))
            if answer is not None and not answer.done():
                answer.set_result(self._loop.time() - began)


def _open(version: int) -> _Door | None:
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    protocol = socket.IPPROTO_ICMP if version == 4 else socket.IPPROTO_ICMPV6
    # an ordinary user's socket where net.ipv4.ping_group_range allows it, root's raw one else
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            sock = socket.socket(family, kind | socket.SOCK_NONBLOCK, protocol)
        except OSError:
            continue
        if kind == socket.SOCK_RAW:  # it reads every ICMP packet of the machine: only replies are wanted
            with contextlib.suppress(OSError):
                if version == 4:
                    sock.setsockopt(_SOL_RAW, _ICMP_FILTER, struct.pack("=I", ~(1 << _REPLY[4]) & 0xFFFFFFFF))
                else:
                    words = [0xFFFFFFFF] * 8
                    words[_REPLY[6] >> 5] &= ~(1 << (_REPLY[6] & 31)) & 0xFFFFFFFF
                    sock.setsockopt(socket.IPPROTO_ICMPV6, _ICMP6_FILTER, struct.pack("=8I", *words))
        return _Door(sock, version, raw=kind == socket.SOCK_RAW and version == 4)
    return None


def echo_request(version: int, token: bytes) -> bytes:
    """Return an echo request of IP ``version``; the kernel chooses the identifier of a user's own."""
    packet = struct.pack("!BBHHH", _REQUEST[version], 0, 0, os.getpid() & 0xFFFF, 1) + token
    return packet[:2] + struct.pack("!H", internet_checksum(packet)) + packet[4:]


def read_reply(packet: bytes, version: int, *, raw: bool) -> bytes | None:
    """Return the token of an echo reply, None for any other packet; ``raw``: it begins with its IP header."""
    if raw and packet:
        packet = packet[(packet[0] & 0x0F) * 4 :]
    if len(packet) != 8 + TOKEN_BYTES or packet[0] != _REPLY[version]:
        return None
    return packet[8:]
