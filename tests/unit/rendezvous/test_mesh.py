"""The mesh test's listener ends with all that it holds; what keeps two nodes apart is told in words."""

from __future__ import annotations

import asyncio
import errno
import socket

from avahi_gpu.rendezvous.mesh import MeshListener
from avahi_gpu.rendezvous.wire import describe


def test_a_listener_leaves_no_reader_behind() -> None:
    async def scenario() -> None:
        ours = asyncio.all_tasks()
        listener = MeshListener()
        port = await listener.open()
        ends = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
        while len(asyncio.all_tasks()) < len(ours) + len(ends):
            await asyncio.sleep(0.01)

        await listener.close()

        assert asyncio.all_tasks() == ours
        for reader, writer in ends:
            assert await reader.read() == b""
            writer.close()

    asyncio.run(asyncio.wait_for(scenario(), 10))


def test_why_nobody_answers_is_told_without_the_address() -> None:
    """asyncio's own words are ``Connect call failed ('10.0.0.2', 40000)`` whatever the reason."""
    nobody = OSError(errno.EHOSTUNREACH, "Connect call failed ('10.0.0.2', 40000)")

    assert describe(nobody) == "no route to host"
    assert describe(ConnectionRefusedError(errno.ECONNREFUSED, "x")) == "connection refused"
    assert describe(asyncio.TimeoutError()) == "no answer"
    assert describe(socket.gaierror(socket.EAI_NONAME, "Name or service not known")) == (
        "name or service not known"
    )
    assert describe(OSError("something else")) == "something else"
