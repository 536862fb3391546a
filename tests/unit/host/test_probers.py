"""Facts are read side by side: what hangs or fails costs its own field and nothing else."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from avahi_gpu.host import probers
from avahi_gpu.host.aside import aside
from avahi_gpu.host.mdns_sockets import parse_table
from avahi_gpu.host.probers import Ground, Prober, read_all
from avahi_gpu.host.system import System
from avahi_gpu.model import DaemonState, FileState, MdnsSocket


async def ground() -> Ground:
    told: asyncio.Future[DaemonState] = asyncio.get_running_loop().create_future()
    missing = FileState("/missing", None)
    return Ground(System(), (), told, missing, missing, missing, missing, {}, None)


def test_a_prober_that_hangs_costs_its_deadline_and_its_field_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hangs(_: Ground) -> Any:
        await aside(time.sleep, 60.0)

    async def fails(_: Ground) -> Any:
        raise OSError("no such device")

    async def works(_: Ground) -> Any:
        return 7

    async def read() -> probers.Readings:
        return await read_all(await ground())

    table = {"network.a": Prober(hangs, 0.05), "network.b": Prober(fails, 1.0), "host.c": Prober(works, 1.0)}
    monkeypatch.setattr(probers, "PROBERS", table)

    readings = asyncio.run(read())

    assert readings.values == {"network": {"a": None, "b": None}, "host": {"c": 7}}
    assert readings.unread == {"network.a": "no answer within 0.05 s", "network.b": "OSError: no such device"}


def test_one_who_gives_up_on_the_daemon_takes_it_from_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def needs_daemon(ground: Ground) -> Any:
        return (await ground.daemon()).installed

    monkeypatch.setattr(probers, "PROBERS", {"host.c": Prober(needs_daemon, 0.01)})

    async def read() -> bool:
        lost = await ground()
        await read_all(lost)
        lost.told.set_result(DaemonState(installed=True, bus_reachable=True))
        return (await lost.daemon()).installed

    assert asyncio.run(read())


def test_sockets_on_mdns_port_are_found_in_the_kernels_table() -> None:
    text = (
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   7: 00000000:14E9 00000000:0000 07 00000000:00000000 00:00000000 00000000  108 0 20931 2\n"
        "   8: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000  0 0 20932 2\n"
        "garbage\n"
    )

    assert parse_table(text, 4) == [MdnsSocket(4, "0.0.0.0", 20931, 108)]
