"""What this machine is now, and what its service file is to say of it, read without asking the LAN."""

from __future__ import annotations

import os
import platform
import sys
import time
from dataclasses import dataclass, replace

from avahi_gpu.files.settings import read_published, settle
from avahi_gpu.host import gpu, node
from avahi_gpu.host.configuration import read_said
from avahi_gpu.host.surroundings import read_devices
from avahi_gpu.host.system import System
from avahi_gpu.model import FileState, Gpu, NodeFacts

# a driver that is built anew for a new kernel is loaded half a minute after the boot, or later
DRIVER_S = 60.0
DRIVER_AGAIN_S = 2.0
WSL_DEVICE = "/dev/dxg"  # where there are cards that no PCI bus shows


@dataclass(frozen=True)
class Cards:
    """The GPUs. ``error``: why they cannot be told, '' where they can or there are none."""

    gpus: tuple[Gpu, ...] = ()
    driver: str = ""
    error: str = ""


def want_service_file(system: System, present: FileState, wait_s: float = DRIVER_S) -> bytes:
    """Return what the service file is to hold now.

    Where NVIDIA's GPUs are there and their driver is not ready it is waited for. Raises OSError where a fact
    cannot be read, and AvahiGpuError where the configuration or the template is wrong.
    """
    settings = settle(*read_said(system, os.environ), read_published(present.content))
    python = settings.config.python or sys.executable
    cards = wait_for_cards(system, wait_s)
    if cards.error:
        raise OSError(cards.error)
    versions = gpu.ask_versions(system, python)
    if not versions.python:
        raise OSError(f"{python} did not tell its versions")
    machine_id, hostname = node.read_machine_id(system), platform.node()
    read = NodeFacts(
        node.make_node_id(machine_id, hostname),
        cluster="",
        gpus=cards.gpus,
        versions=replace(versions, driver=cards.driver),
        calls_itself=hostname,
    )
    return node.render_service_file(system, node.merge_facts(read, present, settings), settings.config.port)


def wait_for_cards(system: System, wait_s: float) -> Cards:
    """Return the GPUs once the driver tells them, or what it says in the end."""
    deadline = time.monotonic() + wait_s
    while True:
        gpus, driver, _, error = gpu.read_gpus()
        there = read_devices(system).nvidia
        if error and not there and not system.exists(WSL_DEVICE):
            return Cards()  # a driver without any card
        late = error or (there and not gpus and gpu.has_nvml())
        if not late or time.monotonic() >= deadline:
            return Cards(gpus, driver, error)
        time.sleep(DRIVER_AGAIN_S)
