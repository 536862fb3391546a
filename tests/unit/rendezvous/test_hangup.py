"""Connections that nobody else can end."""

from __future__ import annotations

import os
import socket
import threading
import time
from datetime import timedelta

import pytest

from avahi_gpu.rendezvous.hangup import hang_up


@pytest.mark.parametrize(
    ("listens", "connects", "said"),
    [
        ("127.0.0.1", "127.0.0.1", "127.0.0.1"),
        ("::1", "::1", "::1"),
        ("::", "::ffff:127.0.0.1", "127.0.0.1"),
    ],
)
def test_a_connection_to_the_address_is_ended_for_whoever_reads_from_it(
    listens: str, connects: str, said: str
) -> None:
    family = socket.AF_INET6 if ":" in listens else socket.AF_INET
    with (
        socket.create_server((listens, 0), family=family, dualstack_ipv6=listens == "::") as server,
        socket.create_connection((connects, server.getsockname()[1]), 5) as ours,
        socket.create_connection((connects, server.getsockname()[1]), 5) as second,
    ):
        before = sorted(os.listdir("/proc/self/fd"))
        assert hang_up(said, server.getsockname()[1]) == 2
        assert (ours.recv(1), second.recv(1)) == (b"", b"")
        assert sorted(os.listdir("/proc/self/fd")) == before


def test_other_connections_and_files_are_left_alone() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_server(("127.0.0.2", server.getsockname()[1])) as other,
        socket.create_connection(other.getsockname(), 5) as ours,
        socket.socketpair()[0],
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
    ):
        datagrams.connect(server.getsockname())
        assert hang_up("127.0.0.1", server.getsockname()[1]) == 0
        theirs, _ = other.accept()
        with theirs:
            theirs.sendall(b"x")
            assert ours.recv(1) == b"x"


@pytest.mark.torch
def test_torchs_store_that_waits_for_a_silent_server_gives_up() -> None:
    torch = pytest.importorskip("torch")
    ended: list[BaseException] = []

    def connect(port: int) -> None:
        try:
            torch.distributed.TCPStore(
                "127.0.0.1", port, is_master=False, wait_for_workers=False, timeout=timedelta(seconds=1)
            )
        except Exception as error:
            ended.append(error)

    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        thread = threading.Thread(target=connect, args=(port,), daemon=True)
        thread.start()
        thread.join(3)
        assert thread.is_alive()  # its own limit of a second does nothing
        deadline = time.monotonic() + 20
        while thread.is_alive() and time.monotonic() < deadline:
            hang_up("127.0.0.1", port)
            thread.join(0.2)
    assert len(ended) == 1
    assert isinstance(ended[0], torch.distributed.DistError)
