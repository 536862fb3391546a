"""The kernel's tables of links and addresses, by rtnetlink(7): two questions and their answers, no library.

A library for it takes longer to import than the rest of a command takes to run.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

ANSWER_S = 2.0  # the kernel answers in microseconds; longer is a machine that hangs
ANSWER_MAX = 1 << 16  # bytes of one datagram: the kernel fills 32 KiB at most (netlink_dump)
TRIES = 5  # a table that changes while it is read is read again

# include/uapi/linux/netlink.h, rtnetlink.h, if_link.h, if_addr.h
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_LINK = struct.Struct("=BxHiII")  # family, type, index, flags, change
_ADDRESS = struct.Struct("=BBBBI")  # family, prefix, flags, scope, index
_CODE = struct.Struct("=i")  # of an error, negative
_ATTRIBUTE = struct.Struct("=HH")  # length, type
_TYPE_MASK = 0x3FFF  # without NLA_F_NESTED and NLA_F_NET_BYTEORDER
_REQUEST, _DUMP, _DUMP_INTERRUPTED = 0x01, 0x300, 0x10
_ERROR, _DONE = 2, 3
_NEW_LINK, _GET_LINK, _NEW_ADDRESS, _GET_ADDRESS = 16, 18, 20, 22
_IFLA_IFNAME, _IFLA_MTU, _IFLA_MASTER, _IFLA_LINKINFO, _IFLA_INFO_KIND = 3, 4, 10, 18, 1
_IFA_ADDRESS, _IFA_LOCAL, _IFA_FLAGS = 1, 2, 8

Row = TypeVar("Row")


@dataclass(frozen=True)
class LinkRow:
    """One interface. ``kind``: '' for a real device. ``master``: the index of what it is a port of, or 0."""

    index: int
    name: str
    kind: str
    flags: int
    mtu: int
    master: int


@dataclass(frozen=True)
class AddressRow:
    """One address of an interface. ``scope``: 0 is global, 253 the link, 254 the host."""

    index: int
    ip: ipaddress.IPv4Address | ipaddress.IPv6Address
    prefix: int
    scope: int
    flags: int


def read_links() -> list[LinkRow]:
    """Return every interface of this network namespace. Raises OSError where the kernel refuses."""
    return _ask(_GET_LINK, _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0), _NEW_LINK, parse_link)


def read_addresses() -> list[AddressRow]:
    """Return every address of this network namespace. Raises OSError where the kernel refuses."""
    return _ask(_GET_ADDRESS, _ADDRESS.pack(socket.AF_UNSPEC, 0, 0, 0, 0), _NEW_ADDRESS, parse_address)


def _ask(question: int, body: bytes, answer: int, parse: Callable[[bytes], Row | None]) -> list[Row]:
    for _ in range(TRIES):
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
            sock.settimeout(ANSWER_S)
            sock.sendto(
                _HEADER.pack(_HEADER.size + len(body), question, _REQUEST | _DUMP, 1, 0) + body, (0, 0)
            )
            messages, whole = _receive(sock)
        if whole:
            rows = (parse(payload) for kind, payload in messages if kind == answer)
            return [row for row in rows if row is not None]
    raise OSError(errno.EAGAIN, "the kernel's table of interfaces keeps changing")


def _receive(sock: socket.socket) -> tuple[list[tuple[int, bytes]], bool]:
    """Return the messages of one answer, and whether the table stood still meanwhile."""
    messages: list[tuple[int, bytes]] = []
    whole = True
    while True:
        data, _, flags, _ = sock.recvmsg(ANSWER_MAX)
        if flags & socket.MSG_TRUNC:
            raise OSError(errno.EMSGSIZE, "an answer of the kernel is longer than any should be")
        for kind, marks, payload in split_messages(data):
            if kind == _ERROR:
                code = -_unpack(_CODE, payload)[0]
                raise OSError(code, os.strerror(code))
            whole = whole and not marks & _DUMP_INTERRUPTED
            if kind == _DONE:
                return messages, whole
            messages.append((kind, payload))


def split_messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield type, flags and payload of each message in a datagram. Raises OSError where it is cut off."""
    while data:
        if len(data) < _HEADER.size:
            raise OSError(errno.EBADMSG, "a netlink message is cut off")
        length, kind, flags, _, _ = _HEADER.unpack_from(data)
        if not _HEADER.size <= length <= len(data):
            raise OSError(errno.EBADMSG, "a netlink message is cut off")
        yield kind, flags, data[_HEADER.size : length]
        data = data[(length + 3) & ~3 :]


def split_attributes(data: bytes) -> dict[int, bytes]:
    """Return the attributes behind a message's own fields by type. Raises OSError where they are cut off."""
    found: dict[int, bytes] = {}
    while len(data) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(data)
        if not _ATTRIBUTE.size <= length <= len(data):
            raise OSError(errno.EBADMSG, "a netlink attribute is cut off")
        found[kind & _TYPE_MASK] = data[_ATTRIBUTE.size : length]
        data = data[(length + 3) & ~3 :]
    return found


def parse_link(payload: bytes) -> LinkRow:
    """Return the interface of a RTM_NEWLINK. Raises OSError."""
    _, _, index, flags, _ = _unpack(_LINK, payload)
    words = split_attributes(payload[_LINK.size :])
    kind = split_attributes(words.get(_IFLA_LINKINFO, b"")).get(_IFLA_INFO_KIND, b"")
    return LinkRow(
        index,
        _text(words.get(_IFLA_IFNAME, b"")),
        _text(kind),
        flags,
        _number(words.get(_IFLA_MTU)),
        _number(words.get(_IFLA_MASTER)),
    )


def parse_address(payload: bytes) -> AddressRow | None:
    """Return the address of a RTM_NEWADDR, None where it is neither IPv4 nor IPv6. Raises OSError."""
    _, prefix, flags, scope, index = _unpack(_ADDRESS, payload)
    words = split_attributes(payload[_ADDRESS.size :])
    # the own end of a point-to-point link is IFA_LOCAL; IPv6 mostly has IFA_ADDRESS alone
    raw = words.get(_IFA_LOCAL) or words.get(_IFA_ADDRESS) or b""
    if len(raw) not in (4, 16):
        return None
    return AddressRow(
        index, ipaddress.ip_address(raw), prefix, scope, _number(words.get(_IFA_FLAGS)) or flags
    )


def _unpack(fields: struct.Struct, payload: bytes) -> tuple[int, ...]:
    if len(payload) < fields.size:
        raise OSError(errno.EBADMSG, "a netlink message is cut off")
    return fields.unpack_from(payload)


def _text(raw: bytes) -> str:
    return raw.rstrip(b"\0").decode("utf-8", "replace")


def _number(raw: bytes | None) -> int:
    return int(struct.unpack("=I", raw)[0]) if raw is not None and len(raw) == 4 else 0
