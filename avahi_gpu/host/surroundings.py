"""What this system runs in: container, WSL, user namespace; its clock, shared memory and drivers."""

from __future__ import annotations

import os
import re
import resource
import sys
import time
from typing import TYPE_CHECKING

from avahi_gpu.host.aside import aside
from avahi_gpu.host.system import System
from avahi_gpu.model import AVAHI_SOCKET, Clock, GpuDevices, SharedMemory, Surroundings

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

BUS_SOCKETS = ("/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket")
NVIDIA, MAKERS = "0x10de", {"0x1002": "AMD", "0x8086": "Intel"}  # PCI vendors
DISPLAY, ACCELERATOR = "0x03", "0x12"  # PCI classes
WHOLE = ["0", "0", "4294967295"]  # /proc/self/uid_map where users are who they are
TIME_ERROR = 5  # adjtimex(2): the clock is not synchronised
TIMEX_BYTES = 256  # struct timex is 208 on 64-bit machines
WSLINFO_S = 2.0  # it starts a Windows program
MIB = 1 << 20
SHM = "/dev/shm"  # noqa: S108  it is looked at, and nothing is put there

_CGROUPS = (("kubepods", "kubernetes"), ("/docker", "docker"), ("libpod", "podman"), ("/lxc", "lxc"))
_DRIVER = re.compile(r"Kernel Module\s+(?:for \S+\s+)?([0-9]+[0-9.]*)")


async def read(ground: Ground) -> Surroundings:
    """Return what this system runs in."""
    return await aside(_read_surroundings, ground)


async def read_clock(ground: Ground) -> Clock:
    """Return the year, and whether the kernel thinks that somebody keeps its clock."""
    return await aside(_read_clock)


async def read_shared_memory(ground: Ground) -> SharedMemory:
    """Return the size of /dev/shm."""
    return await aside(_read_shared_memory)


async def read_gpu_devices(ground: Ground) -> GpuDevices:
    """Return the GPUs as the kernel sees them."""
    return await aside(read_devices, ground.system)


def find_container(system: System, environ: dict[str, str]) -> str:
    """Return what kind of container this is, '' where none is seen (systemd's container interface)."""
    told = _text(system, "/run/systemd/container").strip()
    first = dict(p.partition("=")[::2] for p in _text(system, "/proc/1/environ").split("\0"))
    told = told or first.get("container", "") or environ.get("container", "")
    if told:
        return told[:40]
    if "KUBERNETES_SERVICE_HOST" in environ:
        return "kubernetes"
    groups = _text(system, "/proc/1/cgroup")
    for mark, kind in _CGROUPS:
        if mark in groups:
            return kind
    if system.exists("/run/.containerenv"):
        return "podman"
    return "docker" if system.exists("/.dockerenv") else ""


def is_mapped(content: bytes | None) -> bool:
    """Whether /proc/self/uid_map is that of a user namespace in which numbers mean other users."""
    return content is not None and content.decode("ascii", "replace").split() != WHOLE


def parse_driver(text: str) -> str:
    """Return the version in /proc/driver/nvidia/version, '' where there is none."""
    found = _DRIVER.search(text)
    return found[1] if found else ""


def read_devices(system: System) -> GpuDevices:
    """Read /sys and /dev; nothing here wakes a GPU."""
    nvidia, others = 0, []
    for name in system.list_folder("/sys/bus/pci/devices"):
        folder = f"/sys/bus/pci/devices/{name}"
        if not _text(system, f"{folder}/class").startswith((DISPLAY, ACCELERATOR)):
            continue
        vendor = _text(system, f"{folder}/vendor").strip()
        nvidia += vendor == NVIDIA
        if vendor in MAKERS:
            others.append(MAKERS[vendor])
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return GpuDevices(
        nvidia=nvidia,
        others=tuple(sorted(set(others))),
        driver=parse_driver(_text(system, "/proc/driver/nvidia/version")),
        nodes=sum(re.fullmatch(r"nvidia\d+", name) is not None for name in system.list_folder("/dev")),
        rdma=system.list_folder("/sys/class/infiniband")[:16],
        memlock_kib=None if soft == resource.RLIM_INFINITY else soft // 1024,
        cuda_compat=any(
            name.startswith("cuda") and system.exists(f"/usr/local/{name}/compat")
            for name in system.list_folder("/usr/local")
        ),
    )


def _read_surroundings(ground: Ground) -> Surroundings:
    system, environ = ground.system, dict(ground.environment)
    return Surroundings(
        container=find_container(system, environ),
        wsl=_read_wsl(ground),
        bus_socket=any(system.exists(path) for path in BUS_SOCKETS),
        avahi_socket=system.exists(AVAHI_SOCKET),
        mapped_user=is_mapped(system.read("/proc/self/uid_map").content),
        c_library=_c_library(),
        python=_kind_of_python(system, environ),
    )


def _read_wsl(ground: Ground) -> str:
    """Return how WSL2's network is built: ``nat`` hides this system from the LAN, ``mirrored`` does not."""
    system = ground.system
    if "microsoft" not in _text(system, "/proc/sys/kernel/osrelease").lower():
        return ""
    if system.find_program("wslinfo") is not None:
        done = system.run(["wslinfo", "--networking-mode"], WSLINFO_S)
        if done.ok and done.stdout.strip():
            return done.stdout.strip().lower()[:20]
    # mirrored mode alone has this interface, for connections to Windows itself
    return "mirrored" if any(i.name == "loopback0" for i in ground.interfaces) else "unknown"


def _c_library() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):  # musl knows no such name
        return ""


def _kind_of_python(system: System, environ: dict[str, str]) -> str:
    if system.exists("/.flatpak-info"):
        return "flatpak"
    if environ.get("SNAP") and sys.prefix.startswith("/snap/"):
        return "snap"
    return "conda" if system.exists(f"{sys.prefix}/conda-meta") else ""


def _read_clock() -> Clock:
    import ctypes  # 10 ms, and of no use elsewhere

    adjtimex = getattr(ctypes.CDLL(None), "adjtimex", None)
    state = adjtimex(ctypes.create_string_buffer(TIMEX_BYTES)) if adjtimex is not None else -1
    return Clock(time.gmtime().tm_year, None if state < 0 else state != TIME_ERROR)


def _read_shared_memory() -> SharedMemory:
    try:
        found = os.statvfs(SHM)
    except OSError:
        return SharedMemory(None)
    size, free = found.f_blocks * found.f_frsize // MIB, found.f_bavail * found.f_frsize // MIB
    return SharedMemory(size, free, os.access(SHM, os.W_OK | os.X_OK))


def _text(system: System, path: str) -> str:
    return (system.read(path).content or b"").decode("utf-8", "replace")
