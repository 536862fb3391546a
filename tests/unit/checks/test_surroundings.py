"""What a host runs in, and its GPUs, judged on facts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.checks.gpu import (
    cuda_for_driver,
    gpu_driver,
    gpus,
    gpus_alike,
    locked_memory,
    python_and_names,
)
from avahi_gpu.checks.host import avahi_installed, system_bus
from avahi_gpu.checks.surroundings import clock, shared_memory, surroundings
from avahi_gpu.model import Address, Clock, DaemonProcess, Facts, Gpu, GpuDevices, SharedMemory, Surroundings


def on(facts: Facts, **host: object) -> Facts:
    return replace(facts, host=replace(facts.host, **host))  # type: ignore[arg-type]


def inside(facts: Facts, **around: object) -> Facts:
    return on(facts, surroundings=Surroundings(c_library="glibc 2.36", **around))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wsl", "verdict"), [("nat", "error"), ("mirrored", "info"), ("unknown", "info"), ("", "ok")]
)
def test_wsl2_is_cut_off_by_address_translation_alone(wsl: str, verdict: str, healthy: Facts) -> None:
    assert surroundings(inside(healthy, wsl=wsl)).verdict == verdict


def test_an_address_of_wsls_own_network_tells_where_nothing_else_does(healthy: Facts) -> None:
    lan = replace(healthy.interfaces[1], addresses=(Address("172.29.80.7", 20, 4, "global"),))

    assert surroundings(inside(replace(healthy, interfaces=(lan,)), wsl="unknown")).verdict == "error"


def without_bus(facts: Facts, *, installed: bool, init: str = "other") -> Facts:
    daemon = replace(
        facts.daemon, bus_reachable=False, on_bus=False, installed=installed, bus_error="no socket"
    )
    return replace(facts, daemon=daemon, init=init)  # type: ignore[arg-type]


def test_a_container_is_told_to_borrow_the_hosts_sockets(healthy: Facts) -> None:
    facts = inside(without_bus(healthy, installed=False), container="docker", bus_socket=False)

    found = system_bus(facts)

    assert found.verdict == "error" and "container" in found.says
    assert found.fix is not None and not found.fix.changes and "-v /run/dbus" in found.fix.commands[0]
    assert avahi_installed(facts).verdict == "skip"


@pytest.mark.parametrize(
    ("installed", "init", "container"),
    [(True, "other", "docker"), (False, "systemd", "lxc"), (False, "other", "")],
)
def test_whoever_has_daemons_of_its_own_gets_them_started(
    installed: bool, init: str, container: str, healthy: Facts
) -> None:
    facts = inside(
        without_bus(healthy, installed=installed, init=init), container=container, bus_socket=False
    )

    found = system_bus(facts)

    assert found.fix is not None and found.fix.changes


def test_a_user_namespace_is_named_where_the_bus_refuses(healthy: Facts) -> None:
    found = system_bus(inside(without_bus(healthy, installed=True), mapped_user=True))

    assert found.verdict == "error" and "user namespace" in found.says


@pytest.mark.parametrize(
    ("now", "verdict"),
    [(Clock(1970, None), "error"), (Clock(2026, synchronised=False), "info"), (Clock(2026, None), "ok")],
)
def test_the_clock(now: Clock, verdict: str, healthy: Facts) -> None:
    assert clock(on(healthy, clock=now)).verdict == verdict


@pytest.mark.parametrize(
    ("memory", "verdict"),
    [
        (SharedMemory(None), "error"),
        (SharedMemory(64, 64), "warn"),
        (SharedMemory(8192, 10), "warn"),
        (SharedMemory(8192, 8000), "ok"),
    ],
)
def test_shared_memory(memory: SharedMemory, verdict: str, healthy: Facts) -> None:
    assert shared_memory(on(healthy, shared_memory=memory)).verdict == verdict


def test_a_driver_that_was_updated_under_way_is_an_error(healthy: Facts) -> None:
    found = gpus(replace(healthy, gpus=(), gpu_error="NVML: Driver/library version mismatch"))

    assert found.verdict == "error" and "restart" in found.hint


@pytest.mark.parametrize(
    ("devices", "verdict"),
    [
        (GpuDevices(nvidia=1, driver="570.1", nodes=1), "ok"),
        (GpuDevices(driver="570.1", nodes=0), "error"),
        (GpuDevices(nvidia=1), "warn"),
        (GpuDevices(others=("AMD",)), "ok"),
        (GpuDevices(), "ok"),
    ],
)
def test_the_driver(devices: GpuDevices, verdict: str, healthy: Facts) -> None:
    assert gpu_driver(on(healthy, gpu_devices=devices)).verdict == verdict


def test_gpus_of_others_are_not_guessed_at(healthy: Facts) -> None:
    found = gpu_driver(replace(on(healthy, gpu_devices=GpuDevices(others=("AMD",))), gpus=()))

    assert found.verdict == "info" and "not known" in found.says


@pytest.mark.parametrize(
    ("torch", "driver", "compat", "verdict"),
    [
        ("12.8", "12.2", False, "ok"),
        ("13.0", "12.8", False, "error"),
        ("13.0", "12.8", True, "info"),
        ("11.8", "13.0", False, "ok"),
        ("", "12.8", False, "ok"),
        ("13.0", "", False, "ok"),
    ],
)
def test_a_newer_major_version_of_cuda_does_not_run(
    torch: str, driver: str, compat: bool, verdict: str, healthy: Facts
) -> None:
    facts = on(healthy, gpu_devices=GpuDevices(nvidia=1, driver="1", nodes=1, cuda_compat=compat))
    facts = replace(facts, versions=replace(facts.versions, cuda=torch), cuda_driver=driver)

    assert cuda_for_driver(facts).verdict == verdict


def test_different_gpus_are_told(healthy: Facts) -> None:
    assert gpus_alike(replace(healthy, gpus=(Gpu("a", 1, "9.0"), Gpu("b", 1, "9.0")))).verdict == "info"
    assert gpus_alike(healthy).verdict == "ok"


@pytest.mark.parametrize(
    ("rdma", "limit", "verdict"), [((), 64, "ok"), (("mlx5_0",), 64, "warn"), (("mlx5_0",), None, "ok")]
)
def test_locked_memory(rdma: tuple[str, ...], limit: int | None, verdict: str, healthy: Facts) -> None:
    devices = GpuDevices(nvidia=1, driver="1", nodes=1, rdma=rdma, memlock_kib=limit)

    assert locked_memory(on(healthy, gpu_devices=devices)).verdict == verdict


def test_another_c_library_and_a_sandbox_are_told_of(healthy: Facts) -> None:
    assert python_and_names(on(healthy, surroundings=Surroundings())).verdict == "info"
    assert python_and_names(inside(healthy, python="snap")).verdict == "info"
    assert python_and_names(inside(healthy, python="conda")).verdict == "ok"


def test_a_container_borrows_an_avahi_unless_it_has_one(healthy: Facts) -> None:
    bare = replace(healthy, avahi=replace(healthy.avahi, processes=()), init="other")
    without = replace(bare, daemon=replace(bare.daemon, installed=False))
    own = replace(bare, avahi=replace(bare.avahi, processes=(DaemonProcess(9, "S", 104, 0.0),)))

    said = [surroundings(inside(facts, container="docker")).says for facts in (without, bare, own)]

    assert ["borrows" in s for s in said] == [True, False, False]
    assert "of its own" in said[2]
