"""Questions and the heads of answers: what is no answer to us is none, whatever bytes it holds."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.files.dns_message import REFUSED, TYPE_SOA, Reply, make_query, read_reply

LABELS = st.from_regex(r"[A-Za-z0-9-]{1,63}", fullmatch=True)
NAMES = st.lists(LABELS, max_size=3).map(lambda labels: ".".join(labels) + ".")


def reply_to(query: bytes, *, rcode: int = 0, answers: int = 0, tail: bytes = b"") -> bytes:
    return query[:2] + struct.pack(">5H", 0x8180 | rcode, 1, answers, 0, 0) + query[12:] + tail


def test_the_question_of_nss_mdns_byte_by_byte() -> None:
    wire = make_query(0x1234, "local.", TYPE_SOA)

    assert wire == b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x05local\x00\x00\x06\x00\x01"


@given(st.integers(0, 65535), NAMES, st.integers(0, 15), st.integers(0, 65535), st.binary(max_size=80))
def test_an_answer_is_read_whatever_follows_its_head(
    number: int, name: str, rcode: int, answers: int, tail: bytes
) -> None:
    query = make_query(number, name, TYPE_SOA)

    assert read_reply(reply_to(query, rcode=rcode, answers=answers, tail=tail), query) == Reply(
        rcode, answers
    )
    assert read_reply(query, query) is None  # a question is no answer


@given(st.binary(max_size=64))
def test_any_bytes_are_read(message: bytes) -> None:
    query = make_query(7, "local.", TYPE_SOA)
    reply = read_reply(message, query)

    assert reply is None or message[:2] == query[:2]


def test_an_answer_to_another_question_is_none() -> None:
    query = make_query(7, "local.", TYPE_SOA)

    assert read_reply(reply_to(make_query(8, "local.", TYPE_SOA)), query) is None
    assert read_reply(reply_to(make_query(7, "lokal.", TYPE_SOA)), query) is None
    assert read_reply(reply_to(query).replace(b"local", b"LOCAL"), query) == Reply(0, 0)


def test_a_refusal_may_leave_the_question_out() -> None:
    query = make_query(7, "local.", TYPE_SOA)

    assert read_reply(b"\0\7\x81\x85" + bytes(8), query) == Reply(REFUSED, 0)
    assert read_reply(b"\0\7\x81\x80" + bytes(8), query) is None


@pytest.mark.parametrize("name", ["a..b", "x" * 64, ".".join(["y" * 63] * 5)])
def test_what_is_no_domain_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="domain name"):
        make_query(1, name, TYPE_SOA)
