"""Clusters as fixtures, and the check that no test leaves anything behind."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.lab.cluster import Cluster, cluster

SETTLE_S = 2.0  # a command that has been told to end may need a moment to do so


def children() -> set[int]:
    """Return the pids of all child processes of this one, dead but unburied ones included."""
    found: set[int] = set()
    for task in Path(f"/proc/{os.getpid()}/task").iterdir():
        with suppress(OSError):  # the thread may have ended meanwhile
            found.update(map(int, (task / "children").read_text().split()))
    return found


def settled(read: Callable[[], list[str]]) -> list[str]:
    """Return what ``read`` still finds after a moment's grace."""
    deadline = time.monotonic() + SETTLE_S
    while (left := read()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def describe(pid: int) -> str:
    """Return the command line of a process."""
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        line = "gone"
    return f"{pid}: {line.strip() or 'ended, but nobody waited for it'}"


@pytest.fixture(autouse=True)
def _nothing_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each test no process is left of what it started, neither here nor in a cluster that it shares.

    The namespaces and mounts of a cluster have no names and live by its processes alone.
    """
    shared: Cluster | None = None
    if "shared_cluster3" in request.fixturenames:
        shared = request.getfixturevalue("shared_cluster3")
    before = children()
    yield
    left = settled(lambda: [describe(pid) for pid in children() - before])
    if shared is not None:
        left += settled(shared.strangers)
    assert not left, "the test left processes behind:\n" + "\n".join(left)


@pytest.fixture
def make_cluster(_nothing_left: None) -> Iterator[Callable[..., Cluster]]:
    """Return ``cluster`` as a function; what it booted is taken down after the test."""
    with ExitStack() as stack:
        yield lambda n, **options: stack.enter_context(cluster(n, **options))


@pytest.fixture
def cluster3(_nothing_left: None) -> Iterator[Cluster]:
    """Three fresh hosts with avahi-daemon running."""
    with cluster(3) as lab:
        yield lab


@pytest.fixture
def bare3(_nothing_left: None) -> Iterator[Cluster]:
    """Three fresh hosts as they are before ``setup``."""
    with cluster(3, bare=True) as lab:
        yield lab


@pytest.fixture(scope="module")
def shared_cluster3() -> Iterator[Cluster]:
    """Three hosts for all tests of a module: leave files, cables and daemons as you found them."""
    with cluster(3) as lab:
        yield lab
