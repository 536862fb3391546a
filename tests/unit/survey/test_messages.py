"""The lines between two doctors: whatever comes in, there is a message or one error."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.errors import MalformedInput
from avahi_gpu.survey import messages as m

REPORT = m.Report(
    *([m.Tried(False, "é" * m.WORDS_MAX, 6.123456)] * 4), ports=(m.Tried(False, "x" * 160),) * 6
)


@given(st.binary(max_size=300))
def test_any_line_is_a_message_or_malformed(line: bytes) -> None:
    with contextlib.suppress(MalformedInput):
        assert isinstance(m.decode(line, "somebody"), m.Said)


@given(st.recursive(st.none() | st.floats() | st.text(max_size=5), lambda of: st.lists(of, max_size=3)))
def test_any_value_in_any_field_is_judged(value: object) -> None:
    line = m.msgspec.json.encode({"type": "probe", "targets": [{"address": value, "ports": value}]})
    with pytest.raises(MalformedInput):
        m.decode(line, "somebody")


@pytest.mark.parametrize(
    "said",
    [
        m.Hello("0" * 16, "a"),
        m.About("0" * 16, "a", networks=(m.Network("eth0", 1500, (m.Ip4or6("10.0.0.1", 24),)),), gpus=2),
        m.Listen((29500, 0), 30.0),
        m.Probe((m.Target("fd00::1", "a.local", 1500, (29500,)),)),
        m.Probed((REPORT,)),
        m.Bye(),
    ],
)
def test_what_is_said_is_heard(said: m.Said) -> None:
    assert m.decode(m.encode(said), "somebody") == said


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"listen","ports":[1,2,3,4,5,6,7],"seconds":5}',
        b'{"type":"listen","ports":[1],"seconds":31}',
        b'{"type":"listen","ports":[70000],"seconds":3}',
        b'{"type":"probe","targets":[{"address":"example.com"}]}',
        b'{"type":"probe","targets":[{"address":"10.0.0.1%eth0"}]}',
        b'{"type":"hello","id":"0000000000000000\\n","host":"a"}',
        b'{"type":"hello","id":"0","host":"a"}',
        b'{"type":"now","wall":1e400}',
        b"[" * 60_000,
        b" " * (m.LINE_MAX + 1),
    ],
)
def test_what_is_too_much_or_of_another_form_is_refused(line: bytes) -> None:
    with pytest.raises(MalformedInput):
        m.decode(line, "somebody")


def test_the_longest_answer_fits_into_a_line() -> None:
    plain = m.Report(
        *([m.Tried(False, "x" * m.WORDS_MAX, 6.123456)] * 4),
        ports=(m.Tried(False, "no answer", 3.301234),) * 4,
    )

    assert len(m.encode(m.Probed((plain,) * (m.NODES_MAX - 1)))) < m.LINE_MAX
