"""What a host runs in, from trees of files and from this very machine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from avahi_gpu.host.surroundings import find_container, is_mapped, parse_driver, read_clock, read_devices
from avahi_gpu.host.system import System


def tree(folder: Path, files: dict[str, str]) -> System:
    for name, text in files.items():
        file = folder / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return System(folder)


@pytest.mark.parametrize(
    ("files", "environ", "kind"),
    [
        ({}, {}, ""),
        ({"/.dockerenv": ""}, {}, "docker"),
        ({"/run/.containerenv": ""}, {}, "podman"),
        ({"/run/systemd/container": "systemd-nspawn\n"}, {}, "systemd-nspawn"),
        ({"/proc/1/environ": "A=b\0container=lxc\0"}, {}, "lxc"),
        ({"/proc/1/cgroup": "12:pids:/docker/0123\n"}, {}, "docker"),
        ({"/proc/1/cgroup": "0::/kubepods.slice/x\n"}, {}, "kubernetes"),
        ({"/.dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({"/proc/1/cgroup": "0::/init.scope\n"}, {}, ""),
    ],
)
def test_containers(files: dict[str, str], environ: dict[str, str], kind: str, tmp_path: Path) -> None:
    assert find_container(tree(tmp_path, files), environ) == kind


def test_a_user_namespace_is_one_where_numbers_mean_others() -> None:
    assert is_mapped(b"         0       1000          1\n") and is_mapped(b"")
    assert not is_mapped(b"         0          0 4294967295\n")
    assert not is_mapped(None)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri May 31 2024\n", "550.90.07"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release\n", "570.86.15"),
        ("", ""),
    ],
)
def test_the_drivers_version(text: str, version: str) -> None:
    assert parse_driver(text) == version


def test_devices_are_counted_by_maker(tmp_path: Path) -> None:
    bus = "/sys/bus/pci/devices"
    files = {
        f"{bus}/0000:01:00.0/class": "0x030200\n",
        f"{bus}/0000:01:00.0/vendor": "0x10de\n",
        f"{bus}/0000:01:00.1/class": "0x040300\n",  # the sound of the same card
        f"{bus}/0000:01:00.1/vendor": "0x10de\n",
        f"{bus}/0000:00:02.0/class": "0x030000\n",
        f"{bus}/0000:00:02.0/vendor": "0x8086\n",
        "/dev/nvidia0": "",
        "/dev/nvidiactl": "",
        "/usr/local/cuda-12.4/compat/libcuda.so": "",
    }

    found = read_devices(tree(tmp_path, files))

    assert (found.nvidia, found.others, found.nodes, found.driver) == (1, ("Intel",), 1, "")
    assert found.cuda_compat


def test_this_machines_clock_is_read() -> None:
    found = asyncio.run(read_clock(None))  # type: ignore[arg-type]

    assert found.year >= 2024
