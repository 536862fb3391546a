"""Reaching the socket of the D-Bus system bus, and the words for where that fails."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Mapping

from avahi_gpu.avahi.names import BUS_HINT
from avahi_gpu.errors import BusUnavailable


def open_socket(options: Mapping[str, str]) -> socket.socket:
    """Return a connected, non-blocking socket for the options of a D-Bus address ``unix:path=…``.

    Raises OSError; BlockingIOError where the queue of connections is full: a bus that hangs takes none from
    it, and to wait for it would be to wait for ever.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.connect(options["path"] if "path" in options else f"\0{options['abstract']}")
    except BlockingIOError:
        sock.close()
        raise BlockingIOError(errno.EAGAIN, "it hangs, or is overloaded: it accepts no connection") from None
    except BaseException:
        sock.close()
        raise
    return sock


def bus_unavailable(fault: Exception, within_s: float, *, refused: bool) -> BusUnavailable:
    """Return what a failed attempt to connect means. ``refused``: the bus did not accept who we are."""
    if refused or isinstance(fault, (EOFError, BrokenPipeError, ConnectionResetError)):
        user = os.geteuid()
        return BusUnavailable(
            f"the D-Bus system bus closed the connection of user id {user}",
            f"it refuses users who have no name on its machine: see whether `getent passwd {user}` finds one "
            "there; if so, look at `systemctl status dbus`",
        )
    if isinstance(fault, asyncio.TimeoutError):
        reason = f"no answer within {within_s:g} s"
    elif isinstance(fault, OSError):
        reason = fault.strerror or str(fault)
    else:
        reason = str(fault) or type(fault).__name__
    return BusUnavailable(f"the D-Bus system bus cannot be reached: {reason}", BUS_HINT)
