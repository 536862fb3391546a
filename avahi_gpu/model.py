"""The words of the project as frozen data. No I/O, no judgement: see ARCHITECTURE.md for who makes what."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

NODE_SERVICE = "_torch._tcp"  # static, from setup: "this machine is a node"
JOB_SERVICE = "_torch-rdzv._tcp"  # dynamic, from a running job's agent
DOMAIN = "local"
DEFAULT_PORT = 29500  # torch's customary MASTER_PORT, published by setup
DEFAULT_CLUSTER = "default"
TORCH_AT_LEAST = (2, 6)  # the first that loads a rendezvous backend by entry point (torchrun.handlers)
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


# --- the machine -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FileState:
    """A file as found. ``content`` is None where it is missing or unreadable; ``error`` says which."""

    path: str
    content: bytes | None
    mode: int | None = None  # permission bits
    uid: int | None = None
    gid: int | None = None
    link_target: str | None = None  # where it is a symbolic link, fully resolved
    writable: bool = True  # the file, or the folder that would hold it, can be changed
    error: str = ""

    @property
    def exists(self) -> bool:
        return self.content is not None or self.mode is not None


@dataclass(frozen=True)
class Lookup:
    """What glibc answered for a name, in a process of its own, and how long it took."""

    name: str
    addresses: tuple[str, ...]
    elapsed_s: float
    error: str = ""  # '' where it resolved; else glibc's words, or "timeout"


@dataclass(frozen=True)
class DaemonState:
    """avahi-daemon as seen from outside it."""

    installed: bool
    bus_reachable: bool
    bus_error: str = ""
    on_bus: bool = False  # owns org.freedesktop.Avahi
    pid: int | None = None
    version: str = ""
    server_state: int | None = None  # 0 invalid, 1 registering, 2 running, 3 collision, 4 failure
    host_name: str = ""  # the name it publishes, without .local
    domain: str = ""
    config_path: str = "/etc/avahi/avahi-daemon.conf"
    enabled: bool | None = None  # systemd starts it at boot; None: no systemd, or it did not tell


@dataclass(frozen=True)
class PeerFacts:
    """One other node, asked in every way: what Avahi lists and resolves, what glibc says, who answers."""

    name: str  # instance name
    host: str  # gpu-node-2.local; '' where Avahi did not resolve it
    address: str | None
    interface: str | None
    resolve_error: str = ""
    glibc: Lookup | None = None  # None: not asked
    alive: bool | None = None
    id: str = ""
    port: int = DEFAULT_PORT
    versions: Versions = field(default_factory=Versions)


@dataclass(frozen=True)
class Facts:
    """All that a check may ask, read once by ``host.facts``. None: could not be read, never a guess."""

    hostname: str
    is_root: bool
    init: Literal["systemd", "other"]  # what PID 1 is
    distribution: str  # ID of /etc/os-release: debian, ubuntu, fedora, …
    package_manager: str | None  # apt, dnf, pacman, zypper
    packages: dict[str, bool | None]  # name -> installed; None: not known
    machine_id: str
    interfaces: tuple[Interface, ...]
    daemon: DaemonState
    nsswitch: FileState
    etc_hosts: FileState
    resolv_conf: FileState
    avahi_conf: FileState
    mdns_allow: FileState
    service_file: FileState  # /etc/avahi/services/torch.service
    wanted_service_file: bytes | None  # what setup would write now; None where it cannot be rendered
    nss_modules: dict[str, bool]  # module name on the hosts line or wanted by us -> found on disk
    own_service: tuple[Service, ...] | None  # our _torch._tcp as Avahi lists it on this host
    own_name: Lookup | None  # <published name>.local through glibc
    kernel_name: Lookup | None  # the bare host name through glibc (the 127.0.1.1 trap)
    peers: tuple[PeerFacts, ...] | None  # other nodes; None: not looked for
    gpus: tuple[Gpu, ...] | None
    versions: Versions
    gpu_error: str = ""  # why the GPUs could not be read, '' where that is normal
    wanted_peers: tuple[str, ...] = ()  # names of nodes that the user said must be there
    wanted_service_error: str = ""  # why wanted_service_file is None
    node_id: str = ""  # what we publish as our id; '' without a machine id


# --- findings and changes --------------------------------------------------------------------------------

Verdict = Literal["ok", "info", "warn", "error", "skip", "unknown"]
Area = Literal["names", "network", "host", "gpu", "service", "cluster"]
ChangeKind = Literal["package", "file", "daemon"]


@dataclass(frozen=True)
class Change:
    """One edit of the machine as data.

    ``package``: ``argv`` installs it. ``file``: ``path`` becomes ``content`` with ``mode`` (content None:
    the file is removed). ``daemon``: ``argv`` starts, restarts or enables a daemon.
    """

    kind: ChangeKind
    title: str
    path: str = ""
    content: bytes | None = None
    mode: int = 0o644
    argv: tuple[str, ...] = ()
    before: bytes | None = None  # file: what the diff is against; None where there is no file


@dataclass(frozen=True)
class Fix:
    """What would mend a finding: changes that we make, or commands that only the user should run."""

    title: str
    changes: tuple[Change, ...] = ()
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """The answer of one check."""

    id: str  # AG104
    slug: str  # mdns-before-dns
    area: Area
    verdict: Verdict
    says: str  # the sentence; what is true when all is well, or what is wrong
    evidence: tuple[str, ...] = ()
    fix: Fix | None = None
    hint: str = ""


# --- paths of ours ---------------------------------------------------------------------------------------

SERVICE_FILE = Path("/etc/avahi/services/torch.service")
CONFIG_FOLDER = Path("/etc/avahi-gpu")
STATE_FOLDER = Path("/var/lib/avahi-gpu")
