"""Nodes, peers, interfaces, services: the words of the project as frozen data."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

NODE_SERVICE = "_torch._tcp"  # static, from setup: "this machine is a node"
JOB_SERVICE = "_torch-rdzv._tcp"  # dynamic, from a running job's agent
DOCTOR_SERVICE = "_torch-doctor._tcp"  # dynamic, from a doctor that answers or asks the others
DOMAIN = "local"
DEFAULT_PORT = 29500  # torch's customary MASTER_PORT, published by setup
DEFAULT_CLUSTER = "default"
TORCH_AT_LEAST = (2, 6)  # the first that loads a rendezvous backend by entry point (torchrun.handlers)
AVAHI_SOCKET = "/run/avahi-daemon/socket"  # where nss-mdns asks avahi-daemon, built into it
SERVICE_FILE = Path("/etc/avahi/services/torch.service")
BOOT_UNIT = "avahi-gpu-facts.service"  # renders the service file anew at every boot
CONFIG_FOLDER = Path("/etc/avahi-gpu")
STATE_FOLDER = Path("/var/lib/avahi-gpu")
LOOPBACK_INDEX = 1  # Linux gives the loopback interface this index in every network namespace


@lru_cache(maxsize=256)  # the same few names are compared at every event of a job that runs for days
def natural_order(name: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key under which ``gpu-node-2`` comes before ``gpu-node-10``."""
    parts = re.split(r"(\d{1,18})", name.lower())
    return tuple((int(p), "") if p.isdigit() and p.isascii() else (-1, p) for p in parts if p)


Link = Literal["wired", "wireless", "virtual", "tunnel", "loopback"]


@dataclass(frozen=True)
class Address:
    """One address of an interface."""

    ip: str
    prefix: int
    family: Literal[4, 6]
    scope: Literal["global", "link", "host"]


@dataclass(frozen=True)
class Interface:
    """A network interface as the kernel tells it. ``speed_mbit`` is None where the driver does not say."""

    name: str
    index: int
    link: Link
    up: bool
    running: bool  # has a carrier
    multicast: bool
    mtu: int = 1500
    speed_mbit: int | None = None
    addresses: tuple[Address, ...] = ()
    in_mdns_group: bool | None = None  # member of 224.0.0.251 or ff02::fb; None: not read

    @property
    def ipv4(self) -> str | None:
        """The first global IPv4 address, None without one."""
        return next((a.ip for a in self.addresses if a.family == 4 and a.scope == "global"), None)

    @property
    def first(self) -> Address | None:
        """The address that gloo and NCCL bind to where they are given the interface's name, or None.

        They take the first that the kernel lists (getifaddrs(3)): IPv4 before IPv6, whatever the others are
        good for. A link-local IPv6 address alone counts as none: gloo sends its peers the scope with it, the
        number of its own interface, and "Network is unreachable" is what they find where theirs differs.
        """
        lan = [a for a in self.addresses if a.scope == "global" or (a.family == 4 and a.scope == "link")]
        return min(lan, key=lambda a: a.family, default=None)


@dataclass(frozen=True)
class Gpu:
    """One GPU. ``vram_mib`` is its memory in MiB; ``cc`` its compute capability, '' where there is none."""

    name: str
    vram_mib: int
    cc: str = ""


@dataclass(frozen=True)
class Versions:
    """Versions that decide whether nodes can work together; '' means not installed or not known."""

    python: str = ""
    torch: str = ""
    cuda: str = ""
    nccl: str = ""
    driver: str = ""


@dataclass(frozen=True)
class NodeFacts:
    """What a node publishes about itself in the TXT of ``_torch._tcp``."""

    id: str  # 12 hex digits, a hash of machine-id
    cluster: str = DEFAULT_CLUSTER
    gpus: tuple[Gpu, ...] = ()
    versions: Versions = field(default_factory=Versions)
    priority: int = 0
    calls_itself: str = ""  # its kernel's host name, which is not what Avahi publishes where that is taken


@dataclass(frozen=True)
class Service:
    """One resolved service instance on one interface and protocol, as Avahi told it."""

    name: str
    type: str
    interface: int  # index
    protocol: Literal[4, 6]
    host: str  # gpu-node-1.local
    address: str  # without scope; link-local IPv6 needs the interface beside it
    port: int
    txt: tuple[bytes, ...] = ()  # order means nothing: Avahi reverses it
    own: bool = False  # published by this host


@dataclass(frozen=True)
class Peer:
    """A node as this machine sees it. ``alive``: a probe said yes, said no, or could not tell (None)."""

    id: str
    name: str
    host: str
    address: str | None  # None: listed, but nobody resolved it
    interface: str | None
    port: int
    cluster: str
    alive: bool | None
    self: bool
    gpus: int
    gpu: str
    vram_mib: tuple[int, ...]
    versions: Versions
    models: tuple[str, ...] = ()  # of its GPUs, each once
    priority: int = 0  # the highest leads a job, before the order of names
