"""Measuring over real sockets of this machine's loopback."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from avahi_gpu.gauge import stream
from avahi_gpu.gauge.messages import Place

SECRET = "5ec2e7" + "0" * 26
HERE = "127.0.0.1"


@pytest.fixture
def receiver() -> Iterator[stream.Receiver]:
    opened = stream.Receiver(HERE)
    opened.let_in(SECRET, [HERE])
    yield opened
    opened.close()


def way(receiver: stream.Receiver, secret: str = SECRET) -> stream.Way:
    return stream.Way(HERE, Place("here", HERE, receiver.port), secret)


def test_round_trips_and_a_rate_are_measured(receiver: stream.Receiver) -> None:
    tried = stream.measure(way(receiver), 0.02, 0.1)

    assert tried.error == ""
    assert tried.bits_per_s is not None and tried.bits_per_s > 1e6
    best, middle, high = tried.round_trip_best_s, tried.round_trip_s, tried.round_trip_p99_s
    assert best is not None and middle is not None and high is not None
    assert 0 < best <= middle <= high < 5
    assert 0 <= tried.resent <= 1


def test_the_receiver_counts_what_comes_after_the_warm_up_and_no_more(receiver: stream.Receiver) -> None:
    """What is sent at once, and counts for nothing, is more than all that follows."""
    wanted = stream.Wanted(stream.SEND, 0.8, 0.2)
    with way(receiver).dial(wanted) as connection:
        burst = connection.send(bytes(1_000_000))  # within the warm-up: not counted
        sent, began = 0, time.monotonic()
        connection.settimeout(0.01)
        told = b""
        while not told:
            connection.sendall(bytes(1000))
            sent += 1000
            with suppress(TimeoutError):
                told = connection.recv(stream.TAIL.size)
        took_s = time.monotonic() - began
    counted, nanoseconds = stream.TAIL.unpack(told)

    assert 0 < counted <= sent < burst
    assert 0 < nanoseconds < (took_s + 0.1) * 1e9


def test_who_does_not_know_the_secret_is_not_answered(receiver: stream.Receiver) -> None:
    tried = stream.measure(way(receiver, "0" * 32), 0.02, 0.1)

    assert tried.bits_per_s is None and tried.error.startswith(f"{HERE} port {receiver.port}: ")


def test_others_than_the_nodes_are_not_answered_nor_anybody_before_they_are_known() -> None:
    opened = stream.Receiver(HERE)
    try:
        early = stream.measure(way(opened), 0.02, 0.1)
        opened.let_in(SECRET, ["127.0.0.2"])
        stranger = stream.measure(way(opened), 0.02, 0.1)
        place = Place("here", HERE, opened.port)
        node = stream.measure(stream.Way("127.0.0.2", place, SECRET), 0.02, 0.1)
    finally:
        opened.close()

    assert early.bits_per_s is stranger.bits_per_s is None and early.error and stranger.error
    assert node.error == ""


@pytest.mark.parametrize(
    "head",
    [
        (SECRET.encode(), b"x", 1.0, 0.0),
        (SECRET.encode(), b"s", 1e6, 0.0),
        (SECRET.encode(), b"s", 1.0, 2.0),
        (SECRET.encode(), b"s", float("nan"), float("nan")),
        (b"\xff" * 32, b"s", 1.0, 0.0),
    ],
)
def test_wishes_out_of_bounds_are_refused(head: tuple[bytes, bytes, float, float]) -> None:
    with pytest.raises(ValueError):
        stream.read_head(stream.HEAD.pack(*head), SECRET)


def test_a_port_that_nobody_listens_on_is_told() -> None:
    with socket.create_server((HERE, 0)) as taken:
        port = taken.getsockname()[1]
    tried = stream.measure(stream.Way(HERE, Place("gone", HERE, port), SECRET), 0.02, 0.1)

    assert tried.error == f"{HERE} port {port}: connection refused"


def test_the_end_of_the_measurement_ends_a_sender_at_once(receiver: stream.Receiver) -> None:
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    place = Place("here", HERE, receiver.port)
    began = time.monotonic()

    tried = stream.measure(stream.Way(HERE, place, SECRET, stop.is_set), 0.01, 20.0)

    assert tried.bits_per_s is None
    assert time.monotonic() - began < 10
