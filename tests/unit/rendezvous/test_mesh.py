"""The ports of the mesh test, and the connection that watches a round's network; all on loopback."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from avahi_gpu.errors import LaunchFailed
from avahi_gpu.rendezvous import mesh
from avahi_gpu.rendezvous.mesh import MeshListener, claim, claim_job, set_keepalive, watch_seat
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


def test_strangers_who_take_all_places_do_not_end_the_watch() -> None:
    async def watch(known: bool) -> bool:
        listener = MeshListener()
        leader, own = seats("127.0.0.1", await listener.open())
        if known:
            listener.members = frozenset({own.address})
        watching = asyncio.ensure_future(watch_seat(own, leader, 5.0))
        await asyncio.sleep(0.1)
        (held,) = listener._held
        for _ in range(mesh.HELD_MAX + 20):
            with_other = asyncio.open_connection("127.0.0.1", leader.mesh_port, local_addr=("127.0.0.2", 0))
            others.append((await with_other)[1])
        await asyncio.sleep(0.1)
        assert len(listener._held) == mesh.HELD_MAX
        assert (held in listener._held) is known
        await asyncio.sleep(2 * mesh.REDIAL_S)
        here = [w for w in listener._held if w.get_extra_info("peername")[0] == own.address]
        running = not watching.done()
        watching.cancel()
        await listener.close()
        return running and len(here) == 1

    others: list[asyncio.StreamWriter] = []
    assert asyncio.run(watch(known=True))
    assert asyncio.run(watch(known=False))  # it is dialled again


def test_a_stranger_takes_no_place_of_a_member() -> None:
    async def fill() -> tuple[int, bytes]:
        listener = MeshListener()
        listener.members = frozenset({"127.0.0.1"})
        port = await listener.open()
        members = [await asyncio.open_connection("127.0.0.1", port) for _ in range(mesh.HELD_MAX)]
        await asyncio.sleep(0.1)
        reader, _ = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
        said = await asyncio.wait_for(reader.read(), 5.0)
        ended = sum(reader.at_eof() for reader, _ in members)
        await listener.close()
        return ended, said

    assert asyncio.run(fill()) == (0, b"")


def test_two_jobs_with_long_names_that_begin_alike_run_side_by_side() -> None:
    name = "x" * 120
    with claim_job(name + "1", "lab") as one, claim_job(name + "2", "lab") as two:  # type: ignore[union-attr]
        assert one is not None
        assert two is not None
        assert claim_job(name + "1", "lab") is None
    with claim_job(name + "1", "lab") as again:  # type: ignore[union-attr]
        assert again is not None


def test_what_keeps_a_name_from_being_claimed_is_told_and_is_no_claim() -> None:
    with pytest.raises(LaunchFailed, match="cannot claim"):
        claim("x" * 200)  # longer than an address of a Unix socket


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
