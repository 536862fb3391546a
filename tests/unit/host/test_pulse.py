"""Asking addresses whether anybody is there: on loopback, which answers, and where nobody can."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.host.echoes import TOKEN_BYTES, Echoes, echo_request, read_reply
from avahi_gpu.host.net import internet_checksum
from avahi_gpu.host.pulse import ASKED_AT_MOST, Pulse, Target

NOBODY = Target("240.0.0.1", 0, 9)  # class E: the kernel has no way there


@given(st.binary(max_size=100), st.sampled_from([4, 6]), st.booleans())
def test_no_packet_is_too_strange(packet: bytes, version: int, raw: bool) -> None:
    token = read_reply(packet, version, raw=raw)

    assert token is None or len(token) == TOKEN_BYTES


@pytest.mark.parametrize(("version", "reply"), [(4, 0), (6, 129)])
def test_a_request_comes_back_as_its_reply(version: int, reply: int) -> None:
    token = os.urandom(TOKEN_BYTES)
    request = echo_request(version, token)

    assert internet_checksum(request) == 0
    assert read_reply(bytes([reply]) + request[1:], version, raw=False) == token
    assert read_reply(b"\x45" + bytes(19) + bytes([reply]) + request[1:], version, raw=True) == token
    assert read_reply(request, version, raw=False) is None  # our own question


def test_loopback_is_alive_with_a_round_trip_and_nobody_else() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = Target("127.0.0.1", 0, server.getsockname()[1])

        async def ask() -> None:
            news = asyncio.Event()
            async with Pulse(news.set) as pulse:
                pulse.follow([here, NOBODY, here])
                while (pulse.beat(here) or 0) == pulse.beat(NOBODY) or not pulse.beat(here).alive:  # type: ignore[union-attr]
                    await asyncio.wait_for(news.wait(), 20)
                    news.clear()
                beat = pulse.beat(here)
                assert beat is not None and beat.rtt_s is not None and 0 < beat.rtt_s < 5
                other = pulse.beat(NOBODY)
                assert other is not None and other.alive is not True
                pulse.follow([NOBODY])
                assert pulse.beat(here) is None

        asyncio.run(ask())


def test_only_so_many_are_asked_and_those_first_that_were() -> None:
    async def count() -> None:
        async with Pulse(lambda: None) as pulse:
            old = [Target(f"240.0.0.{number}", 0, 9) for number in range(1, ASKED_AT_MOST)]
            new = [Target(f"240.0.9.{number}", 0, 9) for number in range(1, 200)]
            pulse.follow(old)
            pulse.follow([*new, *old, Target(new[0].address, 0, 10)])
            asked = [t for t in (*old, *new) if pulse.beat(t) is not None]
            assert asked == [*old, new[0]]

    asyncio.run(count())


def test_what_cannot_be_sent_is_lost_and_closing_forgets_the_rest() -> None:
    async def send() -> None:
        echoes = Echoes()
        if not echoes.may_ask("127.0.0.1"):
            pytest.skip("this user may send no echo")
        assert await echoes.send("255.255.255.255") is None
        waiting = echoes.send("127.0.0.1")
        echoes.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(send())
