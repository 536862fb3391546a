"""The ports of the mesh test, and the connection that watches a round's network; all on loopback."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from avahi_gpu.rendezvous import mesh
from avahi_gpu.rendezvous.mesh import MeshListener, set_keepalive, watch_seat
from avahi_gpu.rendezvous.messages import Seat

A, B = "a" * 16, "b" * 16


def seats(address: str, port: int) -> tuple[Seat, Seat]:
    return Seat(A, "node-1", address, port), Seat(B, "node-2", address, port)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_one_port_is_reached_by_both_families(address: str) -> None:
    async def reach() -> tuple[tuple[str, str], ...]:
        listener = MeshListener()
        port = await listener.open()
        try:
            return await mesh.test_mesh(seats(address, port), B, port, port)
        finally:
            await listener.close()

    assert asyncio.run(reach()) == ()


def test_who_is_not_reached_is_named_once_with_both_addresses() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))  # taken, and nobody listens
        port = sock.getsockname()[1]
        ((id, sentence),) = asyncio.run(mesh.test_mesh(seats("127.0.0.1", port), B, port, port))

    assert id == A
    assert "node-2 (127.0.0.1) cannot reach node-1 (127.0.0.1) on port" in sentence
    assert "connection refused" in sentence


def test_the_watch_holds_on_and_an_end_of_the_other_side_is_no_cut() -> None:
    """Whose process ends, ends his control connection too, which says it better."""

    async def watch() -> tuple[bool, str]:
        listener = MeshListener()
        leader, own = seats("127.0.0.1", await listener.open())
        watching = asyncio.ensure_future(watch_seat(own, leader, 5.0))
        await asyncio.sleep(0.1)
        held = not watching.done()
        await listener.close()
        return held, await asyncio.wait_for(watching, 2.0)

    assert asyncio.run(watch()) == (True, "")


def test_a_listener_that_closes_waits_for_nobody() -> None:
    async def close() -> float:
        listener = MeshListener()
        leader, own = seats("127.0.0.1", await listener.open())
        watching = [asyncio.ensure_future(watch_seat(own, leader, 5.0)) for _ in range(5)]
        await asyncio.sleep(0.1)
        began = time.monotonic()
        await listener.close()
        took = time.monotonic() - began
        await asyncio.gather(*watching)
        return took

    assert asyncio.run(close()) < 1.0


@pytest.mark.parametrize("seconds", [1.5, 2.0, 5.0, 6.0, 30.0])
def test_a_connection_is_dead_after_that_much_silence_and_never_before(seconds: float) -> None:
    async def read() -> tuple[int, int, int]:
        server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        set_keepalive(writer, seconds)
        sock = writer.get_extra_info("socket")
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        names = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        found = [sock.getsockopt(socket.IPPROTO_TCP, name) for name in names]
        writer.close()
        server.close()
        return found[0], found[1], found[2]

    idle, interval, count = asyncio.run(read())
    # an outage may begin right before the first question, so the questions alone have to last that long
    assert seconds <= interval * count < max(seconds, 2.0) + 1.0
    assert idle == 1
