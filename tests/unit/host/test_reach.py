"""Reaching another machine, tried on this one's loopback."""

from __future__ import annotations

import asyncio
import errno
import os
import socket

import pytest

from avahi_gpu.host.reach import connect, echo, explain, target_of


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_port_is_open_or_refused(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        server = socket.create_server((address, 0), family=family)
    except OSError:
        pytest.skip("no IPv6 here")
    port = server.getsockname()[1]
    with server:
        reached = asyncio.run(connect(address, port))
    refused = asyncio.run(connect(address, port))

    assert (reached.ok, reached.words) == (True, "")
    assert (refused.ok, refused.words) == (False, "refused")


def test_a_port_that_does_not_answer_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        port = server.getsockname()[1]
        fillers = []
        for _ in range(4):  # a full backlog drops what comes (listen(2))
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
            fillers.append(filler)
        tried = asyncio.run(connect("127.0.0.1", port, within_s=0.3))
        for filler in fillers:
            filler.close()

    assert (tried.ok, tried.words) == (False, "no answer")


@pytest.mark.skipif(os.geteuid() != 0, reason="an echo needs root, or a user that is allowed to")
def test_an_echo_comes_back_small_and_as_large_as_asked() -> None:
    assert asyncio.run(echo("127.0.0.1")).ok
    assert asyncio.run(echo("127.0.0.1", size=9000)).ok
    assert asyncio.run(echo("127.0.0.1", size=70_000)).ok is False


def test_no_such_interface_is_a_failure_in_words() -> None:
    assert asyncio.run(connect("fe80::1%nowhere0", 80)).ok is False


def test_addresses_become_targets() -> None:
    assert target_of("10.0.0.1", 5) == (socket.AF_INET, ("10.0.0.1", 5))
    assert target_of("fe80::1%1", 5) == (socket.AF_INET6, ("fe80::1", 5, 0, 1))


def test_a_firewall_that_says_no_is_told() -> None:
    assert "firewall" in explain(OSError(errno.EHOSTUNREACH, "x"))
    assert explain(OSError("no number")) == "not possible"
