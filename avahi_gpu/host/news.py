"""The kernel's word that a link or an address of this machine has changed, by rtnetlink(7)."""

from __future__ import annotations

import asyncio
import contextlib
import socket

SETTLE_S = 0.2  # a change comes in several messages: an address goes, another one comes
DRAIN_MAX = 256  # messages taken at once; what is left makes the socket readable again
MESSAGE_MAX = 1 << 16
GROUPS = 0x1 | 0x10 | 0x100  # RTMGRP_LINK, _IPV4_IFADDR, _IPV6_IFADDR (include/uapi/linux/rtnetlink.h)


class News:
    """A subscription; a context manager. Making it raises OSError where the kernel refuses netlink."""

    def __init__(self) -> None:
        self._sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0)
        try:
            self._sock.bind((0, GROUPS))
        except OSError:
            self._sock.close()
            raise

    def __enter__(self) -> News:
        return self

    def __exit__(self, *_: object) -> None:
        self._sock.close()

    async def wait(self) -> None:
        """Wait for a change, and until it has settled. What it was is to be read anew: messages get lost."""
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(self._sock, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self._sock)
        await asyncio.sleep(SETTLE_S)
        with contextlib.suppress(OSError):  # EAGAIN: that was all; ENOBUFS: there was more than it holds
            for _ in range(DRAIN_MAX):
                self._sock.recv(MESSAGE_MAX)
