"""End connections that a library keeps to itself and waits on without a limit.

torch's TCPStore waits for an answer of its server as long as the connection stands, whatever its timeout: a
quarter of an hour after its cable was cut, for ever where the server is frozen. Nothing that it offers
ends the wait, but the kernel does.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import stat
from contextlib import suppress
from pathlib import Path

OWN_DESCRIPTORS = Path("/proc/self/fd")


def hang_up(address: str, port: int) -> int:
    """Shut this process's TCP connections to ``address`` and ``port``; return how many there were.

    Whoever reads from one is told that it has ended; the descriptors stay open for their owner.
    """
    wanted = ipaddress.ip_address(address)
    ended = 0
    for link in OWN_DESCRIPTORS.iterdir():
        with suppress(OSError):  # not connected, or closed meanwhile
            descriptor = int(link.name)
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                continue
            with socket.socket(fileno=os.dup(descriptor)) as connection:
                if peer_of(connection) == (wanted, port):
                    connection.shutdown(socket.SHUT_RDWR)
                    ended += 1
    return ended


def peer_of(connection: socket.socket) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int] | None:
    """Return address and port at the other end, an IPv4 one as such; None without TCP. Raises OSError."""
    if connection.family not in (socket.AF_INET, socket.AF_INET6) or connection.type != socket.SOCK_STREAM:
        return None
    host, port = connection.getpeername()[:2]
    found = ipaddress.ip_address(host.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found, port
