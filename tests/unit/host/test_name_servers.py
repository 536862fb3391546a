"""Name servers are asked over real sockets of this machine's loopback."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.files.dns_message import Reply
from avahi_gpu.host import name_servers
from avahi_gpu.host.name_caches import parse
from avahi_gpu.host.name_servers import ask, word_of

LOCAL = b"\x05local\0"
Temper = Callable[[bytes], "list[bytes]"]


@contextmanager
def served(temper: Temper) -> Iterator[int]:
    """A server on a port of 127.0.0.1 that sends what ``temper`` makes of each question."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))

        def serve() -> None:
            while True:
                question, who = sock.recvfrom(4096)
                if question == b"end":
                    return
                for answer in temper(question):
                    sock.sendto(answer, who)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield sock.getsockname()[1]
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ender:
                ender.sendto(b"end", sock.getsockname())
            thread.join(10)


def reply(question: bytes, rcode: int = 0, answers: int = 0) -> bytes:
    return question[:2] + struct.pack(">5H", 0x8180 | rcode, 1, answers, 0, 0) + question[12:]


@pytest.mark.parametrize(
    ("rcode", "answers", "word"),
    [
        (0, 1, "owner"),
        (0, 0, "nodata"),
        (3, 0, "nxdomain"),
        (5, 0, "refused"),
        (2, 0, "servfail"),
        (9, 0, "odd"),
    ],
)
def test_what_a_server_says(rcode: int, answers: int, word: str) -> None:
    with served(lambda question: [reply(question, rcode, answers)]) as port:
        found = asyncio.run(ask("127.0.0.1", port=port))

    assert found.says == word and found.elapsed_s < 1.0


def test_answers_to_other_questions_are_passed_over() -> None:
    def temper(question: bytes) -> list[bytes]:
        other = bytes([question[0] ^ 1]) + question[1:]
        return [b"", b"\0" * 3, reply(other, 0, 1), question, reply(question, 3)]

    with served(temper) as port:
        assert asyncio.run(ask("127.0.0.1", port=port)).says == "nxdomain"


def test_one_lost_question_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_servers, "AGAIN_S", 0.1)
    seen: list[bytes] = []

    def temper(question: bytes) -> list[bytes]:
        seen.append(question)
        return [reply(question, 3)] if seen.count(question) == 2 else []

    with served(temper) as port:
        assert asyncio.run(ask("127.0.0.1", port=port)).says == "nxdomain"


@pytest.mark.parametrize("knows_root", [True, False])
def test_silence_has_a_deadline_and_is_told_from_deafness_to_local(
    knows_root: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_servers, "AGAIN_S", 0.1)
    monkeypatch.setattr(name_servers, "DEADLINE_S", 0.4)
    with served(lambda q: [reply(q)] if knows_root and LOCAL not in q else []) as port:
        started = time.monotonic()
        found = asyncio.run(ask("127.0.0.1", port=port))

    assert (found.says, found.answers_others) == ("silent", knows_root)
    assert time.monotonic() - started < 5.0


def test_a_port_where_nobody_listens_and_an_address_that_is_none() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]

    assert asyncio.run(ask("127.0.0.1", port=port)).says == "closed"
    assert asyncio.run(ask("not-an-address", port=port)).says == "odd"


@given(st.integers(0, 15), st.integers(0, 65535))
def test_every_answer_has_a_word(rcode: int, answers: int) -> None:
    assert (word_of(Reply(rcode, answers)) == "owner") == (rcode == 0 and answers > 0)


TABLE = """Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 20 /run/nscd/socket
0000000000000000: 00000003 00000000 00000000 0001 03 21 /run/systemd/resolve/io.systemd.Resolve
0000000000000000: 00000002 00000000 00010000 0001 01 22 /var/lib/sss/pipes/nss
0000000000000000: 00000002 00000000 00010000 0001 01 23
garbage
"""


def test_caches_are_those_that_listen() -> None:
    assert parse(TABLE) == ("nscd", "sssd")
    assert parse("") == ()
