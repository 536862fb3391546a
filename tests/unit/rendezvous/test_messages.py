"""The border of the protocol: nothing but messages comes in, and nothing goes out that would not."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.errors import MalformedInput
from avahi_gpu.rendezvous import messages as m
from tests.unit.rendezvous.desk import hello, node, record
from tests.unit.rendezvous.strategies import anything

TOKEN = m.Token(3, node(1).id)


@given(anything())
def test_every_message_survives_the_way(message: m.Message) -> None:
    line = m.encode(message)

    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert m.decode(line, "peer") == message


@given(st.binary(max_size=300))
def test_arbitrary_bytes_raise_nothing_but_malformed_input(line: bytes) -> None:
    try:
        m.decode(line, "peer")
    except MalformedInput as error:
        assert error.where == "peer"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
TAGS = [
    "hello",
    "welcome",
    "redirect",
    "refuse",
    "beat",
    "waiting",
    "ready",
    "prepare",
    "ack",
    "nack",
    "commit",
    "abort",
]
FIELDS = [
    "me",
    "job",
    "cluster",
    "skills",
    "token",
    "seats",
    "reason",
    "known",
    "leader",
    "mesh_port",
    "version",
    "greet",
]


@given(
    st.sampled_from([*TAGS, "regroup", "bye", "who", "here"]), st.dictionaries(st.sampled_from(FIELDS), JSON)
)
def test_wrong_fields_of_right_messages_raise_nothing_but_malformed_input(
    tag: str, fields: dict[str, object]
) -> None:
    line = json.dumps({"type": tag, **fields}).encode()
    with contextlib.suppress(MalformedInput):
        m.decode(line, "peer")


@given(anything(), st.integers(0, 400), st.integers(0, 255))
def test_a_damaged_message_raises_nothing_but_malformed_input(message: m.Message, at: int, byte: int) -> None:
    line = bytearray(m.encode(message))
    line[at % len(line)] = byte
    with contextlib.suppress(MalformedInput):
        m.decode(bytes(line), "peer")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"{}",
        b"[]",
        b"null",
        b"GET / HTTP/1.1\r\n",
        b'{"type":"beat"}}',
        b'{"type":"shutdown"}',
        b"[" * 60_000,
        b'{"type":"beat","known":' + b"[" * 60_000,
        b'{"type":"refuse","reason":"' + b"x" * 501 + b'"}',
        b'{"type":"refuse","reason":"\xff"}',
        b'{"type":"ready","mesh_port":0}',
        b'{"type":"ready","mesh_port":65536}',
        b'{"type":"ready","mesh_port":"80"}',
        b'{"type":"ready","mesh_port":1,"epoch":-1}',
        b'{"type":"ready","mesh_port":1,"epoch":9007199254740993}',
        b'{"type":"bye","outcome":"exploded"}',
        b'{"type":"commit","token":{"epoch":1,"leader":"../../etc"}}',
        b'{"type":"prepare","token":{"epoch":1,"leader":"0000000000000001"},"seats":[],"store_port":1,"worker_port":1}',
    ],
)
def test_what_is_not_of_the_protocol_is_refused(line: bytes) -> None:
    with pytest.raises(MalformedInput, match="peer"):
        m.decode(line, "peer")


def test_a_line_beyond_the_limit_is_refused_unread() -> None:
    with pytest.raises(MalformedInput, match="65536"):
        m.decode(b'{"type":"beat","x":"' + b"x" * m.LINE_MAX + b'"}', "peer")


@pytest.mark.parametrize(
    "address", ["node-1.local", "10.0.0.1; rm -rf /", "", "x" * 65, "fe80::1%eth0/../..", "1.2.3.4\n"]
)
def test_an_address_is_an_address(address: str) -> None:
    line = m.encode(m.Redirect(m.Record(node(1).id, "node-1", address, 29400)))
    with pytest.raises(MalformedInput):
        m.decode(line, "peer")


def test_unknown_fields_of_a_later_version_are_ignored() -> None:
    line = b'{"type":"ready","mesh_port":7,"colour":"green","nested":{"a":[1]}}'

    assert m.decode(line, "peer") == m.Ready(7)


def test_the_largest_messages_fit_into_a_line() -> None:
    seats = tuple(
        m.Seat(f"{i:016x}", "h" * 63, "2001:db8:1111:2222:3333:4444:5555:6666", 65535) for i in range(64)
    )
    known = tuple(m.Record(s.id, s.host, s.address, 65535, -1_000_000, 64) for s in seats)
    for message in (m.Prepare(TOKEN, seats, 1, 2), hello(node(1), known=known), m.Beat(TOKEN, known)):
        line = m.encode(message)
        assert len(line) < m.LINE_MAX
        assert m.decode(line, "peer") == message


def test_long_sentences_are_cut_not_refused() -> None:
    for message in (
        m.Abort(TOKEN, "ä" * 600),
        m.Bye("failed", "x" * 9000),
        m.Waiting(("a",), 1, 2, "n" * 501),
    ):
        assert m.decode(m.encode(message), "peer") != message
    assert m.decode(m.encode(m.Refuse("r" * 500)), "peer") == m.Refuse("r" * 500)


def test_a_token_shows_itself_briefly() -> None:
    assert str(m.Token(12, "0123456789abcdef")) == "12-01234567"
    assert record(node(1)).host == "node-1"


def test_the_name_of_a_script_is_bounded() -> None:
    me = m.Record(node(1).id, "node-1", "10.77.0.1", 29400)
    for length in (m.SCRIPT_MAX, m.SCRIPT_MAX + 1):
        line = m.encode(m.Hello(me, "job", "lab", m.Skills(script="x" * length)))
        with pytest.raises(MalformedInput) if length > m.SCRIPT_MAX else contextlib.nullcontext():
            m.decode(line, "peer")
