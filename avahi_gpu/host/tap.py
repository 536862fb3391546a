"""A tap on a network card: which mDNS packets come in and go out, seen before and behind the firewall.

The kernel shows a packet socket what arrives before any rule looks at it, and what leaves after every rule
has (packet(7)). Listening only: nothing is ever sent here. Root only.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import socket
import struct
from collections.abc import Callable
from types import TracebackType

from avahi_gpu.errors import MalformedInput
from avahi_gpu.files import mdns_message
from avahi_gpu.files.mdns_message import Datagram

ETH_P_ALL = 0x0003  # include/uapi/linux/if_ether.h
SO_ATTACH_FILTER = 26  # include/uapi/asm-generic/socket.h
OUTGOING = 4  # PACKET_OUTGOING; 0 to 2 are for us, for all, for a group (include/uapi/linux/if_packet.h)
BATCH = 64  # packets taken at once, before others have their turn
# UDP to port 5353 over IPv4 (no later fragment) and IPv6, as bpf(4) has it: code, jump if true, if false, k.
# A socket of kind SOCK_DGRAM sees packets from the IP header on.
_FILTER = (
    (0x30, 0, 0, 0),  # 0 ldb [0]
    (0x54, 0, 0, 0xF0),  # 1 and #0xf0
    (0x15, 0, 7, 0x40),  # 2 jeq #0x40: IPv4, else 10
    (0x30, 0, 0, 9),  # 3 ldb [9]
    (0x15, 0, 11, 17),  # 4 jeq #17: UDP, else 16
    (0x28, 0, 0, 6),  # 5 ldh [6]
    (0x45, 9, 0, 0x1FFF),  # 6 jset #0x1fff: a later fragment, 16
    (0xB1, 0, 0, 0),  # 7 ldx 4*([0]&0xf)
    (0x48, 0, 0, 2),  # 8 ldh [x+2]
    (0x15, 5, 6, 5353),  # 9 jeq #5353: 15, else 16
    (0x15, 0, 5, 0x60),  # 10 jeq #0x60: IPv6, else 16
    (0x30, 0, 0, 6),  # 11 ldb [6]
    (0x15, 0, 3, 17),  # 12 jeq #17: UDP, else 16
    (0x28, 0, 0, 42),  # 13 ldh [42]
    (0x15, 0, 1, 5353),  # 14 jeq #5353, else 16
    (0x06, 0, 0, 0xFFFF),  # 15 take
    (0x06, 0, 0, 0),  # 16 drop
)


class Tap:
    """Packets of one interface, told to ``tell(interface, outgoing, datagram)``. Entering raises OSError."""

    def __init__(self, interface: str, tell: Callable[[str, bool, Datagram], None]) -> None:
        self._interface = interface
        self._tell = tell
        self._socket: socket.socket | None = None

    def __enter__(self) -> Tap:
        # protocol 0: nothing comes before the filter is there
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
        try:
            sock.setblocking(False)
            take_mdns_alone(sock)
            sock.bind((self._interface, ETH_P_ALL))
            asyncio.get_running_loop().add_reader(sock, self._take)
        except BaseException:
            sock.close()
            raise
        self._socket = sock
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()

    def _take(self) -> None:
        assert self._socket is not None
        for _ in range(BATCH):
            try:
                packet, address = self._socket.recvfrom(mdns_message.MESSAGE_MAX + 60)
            except OSError:  # nothing more, or the card has gone
                return
            if address[2] > OUTGOING or address[2] == OUTGOING - 1:  # for others, or looped back
                continue
            with contextlib.suppress(MalformedInput):
                self._tell(self._interface, address[2] == OUTGOING, mdns_message.parse_packet(packet))


def take_mdns_alone(sock: socket.socket) -> None:
    """Let a packet socket of kind SOCK_DGRAM see mDNS alone."""
    program = b"".join(struct.pack("=HBBI", *line) for line in _FILTER)
    buffer = ctypes.create_string_buffer(program)
    # struct sock_fprog: a count, and a pointer behind the padding that the compiler puts there
    sock.setsockopt(
        socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("@HP", len(_FILTER), ctypes.addressof(buffer))
    )
