"""What the nodes of a measurement say: round trips, and what is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.errors import MalformedInput
from avahi_gpu.gauge import messages as m
from avahi_gpu.model.gauge import GaugedLink, GaugedNode, Measurement, Reduction

NODES = (GaugedNode("a", "10.0.0.1", "eth0", "wired", 1000, "full"), GaugedNode("b", "10.0.0.2"))
ALL = [
    m.Enlist("0123456789abcdef", 4711, "eth0", "wired", 1000, "full", 1, "gloo", "2.13.0", ""),
    m.Begin("00" * 16, (m.Place("a", "10.0.0.1", 4711),)),
    m.Begun(),
    m.Try(1, 1.0, 0.2),
    m.Tried(9.4e8, 1e-4, 2e-4, 3e-4, 0.01),
    m.Reduce(1, 3, "10.0.0.1", 29500, (8, 32), 4.0, 0.5),
    m.Reduced((Reduction(8, 0.001, 200),)),
    m.Stop(),
    m.Step("TCP"),
    m.Done(Measurement(NODES, (GaugedLink(0, 1, 9.4e8),), (Reduction(8, 0.1),), "gloo", 2, "2.13.0")),
]


@pytest.mark.parametrize("message", ALL)
def test_what_is_said_is_understood(message: m.Message) -> None:
    line = m.encode(message)

    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert m.decode(line, "10.0.0.1") == message


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"[]\n",
        b'{"type":"nonsense"}',
        b'{"type":"try","target":-1,"send_s":1,"echo_s":1}',
        b'{"type":"try","target":1,"send_s":1e9,"echo_s":1}',
        b'{"type":"begin","secret":"xyz","places":[]}',
        b'{"type":"enlist","id":"0123456789abcdef","port":0}',
        b'{"type":"reduce","first":0,"ranks":2,"address":"10.0.0.1","port":1,"sizes":[3],"limit_s":1,"budget_s":1}',
        b"\xff\xfe",
    ],
)
def test_what_is_of_another_form_is_refused(line: bytes) -> None:
    with pytest.raises(MalformedInput):
        m.decode(line, "10.0.0.1")


@pytest.mark.parametrize(
    "measured",
    [
        Measurement(NODES, (GaugedLink(0, 2, 1.0),)),
        Measurement(NODES, (GaugedLink(-1, 0, 1.0),)),
        Measurement(NODES, (), (Reduction(8, 0.0),)),
        Measurement(NODES, (), (Reduction(0, 1.0),)),
    ],
)
def test_a_result_that_contradicts_itself_is_refused(measured: Measurement) -> None:
    with pytest.raises(MalformedInput):
        m.decode(m.encode(m.Done(measured)), "10.0.0.1")


@given(st.one_of(st.binary(max_size=200), st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.dictionaries(
        st.sampled_from(["type", "measured", "nodes", "links", "source", "target", "sizes"]), inner
    ) | st.lists(inner),
    max_leaves=8,
).map(lambda value: json.dumps(value).encode())))  # fmt: skip
def test_nothing_but_messages_and_refusals_comes_of_any_line(line: bytes) -> None:
    try:
        message = m.decode(line, "10.0.0.1")
    except MalformedInput:
        return
    assert isinstance(message, m.Message)
