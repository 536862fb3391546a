"""Which of the names that a user gives have a way that can be followed."""

from __future__ import annotations

import asyncio

import pytest

from avahi_gpu.host.probers import Ground
from avahi_gpu.host.system import System
from avahi_gpu.host.tracing import can_be_traced, read
from avahi_gpu.model import DaemonState, FileState, Trace


def follow(*names: str, nsswitch: bytes = b"hosts: files\n", with_peers: bool = True) -> tuple[Trace, ...]:
    async def run() -> tuple[Trace, ...]:
        told: asyncio.Future[DaemonState] = asyncio.get_running_loop().create_future()
        missing = FileState("/missing", None)
        file = FileState("/etc/nsswitch.conf", nsswitch, mode=0o644)
        ground = Ground(
            System(), (), told, file, missing, missing, missing, {}, None, names, with_peers=with_peers
        )
        return await read(ground)

    return asyncio.run(run())


@pytest.mark.parametrize("name", ["10.77.0.2", "::1", "fe80::1%eth0", "", "--help", "a b", "\x1b[2J"])
def test_addresses_and_what_is_no_name_are_not_followed(name: str) -> None:
    assert not can_be_traced(name)
    assert follow(name) == ()


def test_a_name_is_followed_through_the_modules_that_the_line_names() -> None:
    (trace,) = follow("localhost.", nsswitch=b"hosts: absent files dns\n")

    assert [step.module for step in trace.steps] == ["absent", "files", "dns"]
    absent, files, dns = trace.steps
    assert absent.answer is not None and absent.answer.loaded is False and absent.action == "continue"
    assert files.answer is not None and files.answer.status in ("success", "notfound")
    assert (dns.answer is None) == (files.answer.status == "success")


def test_nothing_is_asked_where_glibc_drops_the_file_or_nobody_wants_to_know() -> None:
    (trace,) = follow("some.where", nsswitch=b"hosts: files [NOT FOUND=return] dns\n")

    assert trace.steps == () and trace.defect.startswith("line 1")
    assert follow("some.where", with_peers=False) == ()
