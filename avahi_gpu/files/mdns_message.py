"""What an mDNS message says, as far as names go (RFC 1035 section 4, RFC 6762 section 18). Pure.

For looking at what passes the wire. Bytes come from anybody: every length is checked, every loop bounded.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass

from avahi_gpu.errors import MalformedInput

MESSAGE_MAX = 9000  # bytes: RFC 6762 section 17
RECORDS_MAX = 512  # of one message: none holds more
POINTERS_MAX = 128  # of one name: as many as it can have labels
_RESPONSE = 0x8000
_POINTER = 0xC0
_AT_ONCE = 0x80  # in the first byte of the class


@dataclass(frozen=True)
class Message:
    """``asked`` and ``told``: the names of the questions and of all records, in small letters.

    ``urgent``: those asked with the top bit of the class set, "answer at once" (RFC 6762 section 5.4).
    """

    response: bool
    asked: tuple[str, ...]
    told: tuple[str, ...]
    urgent: tuple[str, ...] = ()


def parse(data: bytes) -> Message:
    """Return what a message asks and tells. Raises MalformedInput."""
    if len(data) > MESSAGE_MAX:
        raise MalformedInput("mDNS message", f"longer than {MESSAGE_MAX} bytes")
    try:
        _, flags, questions, *records = struct.unpack_from("!6H", data)
        if questions + sum(records) > RECORDS_MAX:
            raise MalformedInput("mDNS message", f"more than {RECORDS_MAX} records")
        at = 12
        asked, told, urgent = [], [], []
        for _ in range(questions):
            name, at = read_name(data, at)
            asked.append(name)
            if data[at + 2] & _AT_ONCE:
                urgent.append(name)
            at += 4  # type and class
        for _ in range(sum(records)):
            name, at = read_name(data, at)
            told.append(name)
            (length,) = struct.unpack_from("!H", data, at + 8)
            at += 10 + length
            if at > len(data):
                raise MalformedInput("mDNS message", "cut off")
    except (struct.error, IndexError):
        raise MalformedInput("mDNS message", "cut off") from None
    return Message(bool(flags & _RESPONSE), tuple(asked), tuple(told), tuple(urgent))


def read_name(data: bytes, at: int) -> tuple[str, int]:
    """Return the name that begins at ``at``, and where it ends. Raises MalformedInput, IndexError."""
    labels: list[str] = []
    end = None
    for _ in range(POINTERS_MAX):
        length = data[at]
        if length == 0:
            return ".".join(labels).lower(), end if end is not None else at + 1
        if length & _POINTER == _POINTER:
            end = end if end is not None else at + 2
            at = (length & ~_POINTER) << 8 | data[at + 1]
        elif length & _POINTER:
            raise MalformedInput("mDNS message", "a label of an unknown kind")
        else:
            if at + 1 + length > len(data):
                raise MalformedInput("mDNS message", "cut off")
            labels.append(data[at + 1 : at + 1 + length].decode("utf-8", "replace"))
            at += 1 + length
    raise MalformedInput("mDNS message", "a name that leads nowhere")


@dataclass(frozen=True)
class Datagram:
    """An mDNS message with who sent it."""

    source: str
    message: Message


def parse_packet(packet: bytes) -> Datagram:
    """Return what an IP packet with UDP to port 5353 holds. Raises MalformedInput for any other."""
    try:
        version = packet[0] >> 4
        if version == 4:
            start, protocol, raw = (packet[0] & 0x0F) * 4, packet[9], packet[12:16]
        elif version == 6:
            start, protocol, raw = 40, packet[6], packet[8:24]
        else:
            raise MalformedInput("packet", "neither IPv4 nor IPv6")
        _, port, length, _ = struct.unpack_from("!4H", packet, start)
        if protocol != 17 or port != 5353 or start < 20 or length < 8:
            raise MalformedInput("packet", "not to UDP port 5353")
        source = str(ipaddress.ip_address(raw))
    except (struct.error, IndexError, ValueError):
        raise MalformedInput("packet", "cut off") from None
    return Datagram(source, parse(packet[start + 8 : start + length]))
