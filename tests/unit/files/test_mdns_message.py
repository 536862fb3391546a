"""mDNS messages as they pass the wire, and bytes that only look like one."""

from __future__ import annotations

import contextlib
import ipaddress
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.errors import MalformedInput
from avahi_gpu.files.mdns_message import RECORDS_MAX, parse, parse_packet


def name(text: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in text.split(".") if label) + b"\0"


def message(*, flags: int = 0, asked: tuple[bytes, ...] = (), told: tuple[bytes, ...] = ()) -> bytes:
    head = struct.pack("!6H", 0, flags, len(asked), len(told), 0, 0)
    questions = b"".join(one + struct.pack("!2H", 12, 1) for one in asked)
    records = b"".join(one + struct.pack("!2HIH", 12, 1, 120, 3) + b"\1a\0" for one in told)
    return head + questions + records


def packet(source: str, data: bytes, *, port: int = 5353, protocol: int = 17) -> bytes:
    udp = struct.pack("!4H", 5353, port, 8 + len(data), 0) + data
    own = ipaddress.ip_address(source).packed
    if len(own) == 4:
        return (
            bytes([0x45, 0]) + bytes(7) + bytes([protocol]) + bytes(2) + own + bytes([224, 0, 0, 251]) + udp
        )
    return bytes([0x60]) + bytes(5) + bytes([protocol, 255]) + own + bytes(16) + udp


def test_questions_and_records_are_told_apart() -> None:
    found = parse(message(asked=(name("2.0.77.10.in-addr.arpa"),), told=(name("Node.local"),)))

    assert (found.response, found.asked, found.told) == (False, ("2.0.77.10.in-addr.arpa",), ("node.local",))
    assert parse(message(flags=0x8400)).response


def test_a_name_that_points_back_is_followed() -> None:
    first = name("node.local")
    found = parse(message(asked=(first,), told=(b"\3own\xc0\x0c",)))

    assert found.told == ("own.node.local",)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        bytes(11),
        message(asked=(b"\xc0\x0c",)),  # points at itself
        message(asked=(b"\x40a\0",)),  # a kind of label that there is not
        message(asked=(b"\x3fab",)),
        message(told=(name("a"),))[:-2],
        struct.pack("!6H", 0, 0, RECORDS_MAX + 1, 0, 0, 0) + bytes(9000 - 12),
        bytes(9001),
    ],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedInput):
        parse(data)


@pytest.mark.parametrize("source", ["10.77.0.2", "fe80::1"])
def test_a_packet_tells_its_sender(source: str) -> None:
    assert parse_packet(packet(source, message(asked=(name("a.local"),)))).source == source


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x45",
        b"\x10" * 60,
        packet("10.77.0.2", message(), port=53),
        packet("10.77.0.2", message(), protocol=6),
        packet("fe80::1", message())[:50],
    ],
)
def test_what_is_no_mdns_packet_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedInput):
        parse_packet(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_parsed_or_refused(data: bytes) -> None:
    for reads in (parse, parse_packet):
        with contextlib.suppress(MalformedInput):
            reads(data)


@given(st.binary(max_size=120))
def test_any_bytes_behind_a_right_head_are_parsed_or_refused(data: bytes) -> None:
    with contextlib.suppress(MalformedInput):
        parse(struct.pack("!6H", 0, 0, 2, 2, 0, 0) + data)
    with contextlib.suppress(MalformedInput):
        parse_packet(packet("10.77.0.2", data))


def test_a_question_that_wants_its_answer_at_once_is_told_apart() -> None:
    head = b"\0\0\0\0\0\2\0\0\0\0\0\0"

    found = parse(head + b"\1a\0" + b"\0\x21\x80\1" + b"\1b\0" + b"\0\x21\0\1")

    assert (found.asked, found.urgent) == (("a", "b"), ("a",))
