"""Whether this machine can talk to itself: a connection to a port of its own on 127.0.0.1."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from avahi_gpu.host.aside import aside

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

# loopback loses nothing: what is not there after this long has been dropped. The kernel asks again after one
# second, and a busy machine gets its processor before that
CONNECT_S = 1.5
WITHIN_S = CONNECT_S + 0.5


async def read(ground: Ground) -> bool:
    """Return whether a connection over 127.0.0.1 comes to be. Raises OSError where none can be tried."""
    return await aside(reaches_itself)


def reaches_itself() -> bool:
    """Do what ``read`` says, blocking; nothing is sent but the connection."""
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen(1)
        client.settimeout(CONNECT_S)
        try:
            client.connect(server.getsockname())
        except (TimeoutError, ConnectionError, PermissionError):
            return False
        return True
