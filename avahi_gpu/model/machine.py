"""The machine as read: what every check may ask."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from avahi_gpu.model.areas import NameFacts, NetworkFacts
from avahi_gpu.model.boot import ImageFacts
from avahi_gpu.model.daemon import DaemonFacts
from avahi_gpu.model.host import HostFacts
from avahi_gpu.model.machine_file import FileState
from avahi_gpu.model.naming import Lookup
from avahi_gpu.model.view import ClusterView
from avahi_gpu.model.words import DEFAULT_CLUSTER, DEFAULT_PORT, Gpu, Interface, Service, Versions


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
    cluster: str = DEFAULT_CLUSTER
    gpus: int = 0
    calls_itself: str = ""  # its kernel's host name when it was set up; '' where it does not tell
    # which network cards answer for the address, by ARP or neighbour discovery; None: could not be asked
    cards: tuple[str, ...] | None = None
    gateway: str = ""  # the router that packets to it would take; '' where it is on the link
    elsewhere: str = ""  # another address of the same host that answers, where ``address`` does not
    speaks: bool | None = None  # its avahi-daemon answered just now; None: this could not be told
    glibc_alive: bool | None = None  # whether glibc's answer answers, where it is another address
    also: tuple[str, ...] = ()  # all that Avahi knows of its host, where glibc's answer is another address
    # of a service without an address: whether the host of that name has one, and the service all but its TXT
    host_address: str = ""
    txt_missing: bool = False


Source = Literal["mdns", "glibc", "memory", "given"]


@dataclass(frozen=True)
class AbsentPeer:
    """A node that is not listed and should be: one that the user named, or one that was there before.

    ``address`` '' where nobody knows one; ``source`` tells who does: Avahi by the host's name, glibc, our own
    memory, or the user. ``seen_ago_s``: seconds since it was listed and answered, None where it never was.
    """

    name: str
    address: str = ""
    source: Source | None = None
    alive: bool | None = None
    cards: tuple[str, ...] | None = None  # see PeerFacts
    seen_ago_s: float | None = None


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
    cuda_driver: str = ""  # the newest CUDA that the driver runs: 12.4
    gpu_error: str = ""  # why the GPUs could not be read, '' where that is normal
    absent: tuple[AbsentPeer, ...] = ()  # who is not among ``peers`` and should be
    wanted_peers: tuple[str, ...] = ()  # names of nodes that the user said must be there
    wanted_service_error: str = ""  # why wanted_service_file is None
    glibc: bool = True  # False: another C library, which reads no nsswitch.conf
    node_id: str = ""  # what we publish as our id; '' without a machine id
    names: NameFacts = field(default_factory=NameFacts)
    network: NetworkFacts = field(default_factory=NetworkFacts)
    avahi: DaemonFacts = field(default_factory=DaemonFacts)
    host: HostFacts = field(default_factory=HostFacts)
    unread: dict[str, str] = field(default_factory=dict)  # "network.mdns_sockets" -> why it could not be read
    image: ImageFacts | None = None  # these are the facts of an image, and nothing but files could be asked
    cards: tuple[str, ...] = ()  # ``interfaces`` of the settings: those that count; none: all
    cards_source: str = ""  # who says so: a variable, or the line of config.toml
    opens_firewall: bool = False  # the user wants it opened for the LAN: setup --firewall
    view: ClusterView | None = None  # of all nodes; None: they were not asked, doctor --cluster does
