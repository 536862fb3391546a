"""What the probers read of the host itself, of what it runs in, and of what torch would find there."""

from __future__ import annotations

from dataclasses import dataclass

from avahi_gpu.model.boot import BootUnit


@dataclass(frozen=True)
class OwnName:
    """What Python's socket module, and so torch, is told of this machine's own name."""

    name: str  # socket.gethostname()
    fqdn: str  # socket.getfqdn(): what torchrun tells the other nodes
    found: tuple[tuple[str, str], ...]  # canonical name, address: getaddrinfo(name, AI_CANONNAME)
    error: str = ""  # why getaddrinfo failed: torchrun does not catch that

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(address for _, address in self.found))


@dataclass(frozen=True)
class PinnedName:
    """A name in .local that /etc/hosts gives an address, beside what Avahi says of it."""

    line: int
    name: str  # in small letters, without the last dot
    address: str
    told: tuple[str, ...] = ()  # an address that Avahi resolves it to; (): nobody answers for it
    holder: str = ""  # the name that mDNS has for the pinned address; '': nobody answers for it
    answers: bool | None = None  # whether something is there at the pinned address; None: not known


@dataclass(frozen=True)
class Endpoint:
    """A place that a variable, or a launcher's file, sends torch to, and what is to be found of it."""

    variable: str  # MASTER_ADDR, or the file that says it
    host: str
    port: int | None  # None: not given, or not a number
    malformed: str = ""  # what torch would complain of
    addresses: tuple[str, ...] = ()  # glibc's answer
    error: str = ""  # glibc's words where it has none; '' where nobody asked
    alive: bool | None = None  # whether anybody is at the first address; None: not known


@dataclass(frozen=True)
class Listener:
    """A TCP socket that listens. ``pid`` None: of another user's process, or in another container."""

    port: int
    address: str
    uid: int
    pid: int | None = None
    command: str = ""  # the first words of its command line
    job: bool = False  # it belongs to a run of torch


@dataclass(frozen=True)
class Leftover:
    """A process of a run of torch whose agent has ended without it."""

    pid: int
    command: str
    run: str  # TORCHELASTIC_RUN_ID
    holds: tuple[str, ...] = ()  # /dev/nvidia0, port 29500
    worker: bool = True  # as torch starts its workers; else something that a worker had started


@dataclass(frozen=True)
class ClusterKey:
    """The cluster key as launch would take it. ``path`` '': there is none; ``error``: why launch refuses."""

    path: str = ""
    error: str = ""
    hint: str = ""


@dataclass(frozen=True)
class LauncherFile:
    """A file that a launcher goes by, with the places that it names, looked up."""

    path: str
    text: str
    endpoints: tuple[Endpoint, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Surroundings:
    """What this system runs in, and what its Python is."""

    container: str = ""  # docker, podman, lxc, kubernetes, systemd-nspawn, …; '': none is seen
    wsl: str = ""  # nat, mirrored, unknown; '': not under WSL
    bus_socket: bool = True  # the system bus's socket is there
    avahi_socket: bool = True
    mapped_user: bool = False  # in a user namespace: our number here is another one outside
    c_library: str = ""  # glibc 2.36; '' where it is none
    python: str = ""  # conda, snap, flatpak; '': the distribution's or a virtual environment


@dataclass(frozen=True)
class Clock:
    """The time of day, as far as it can be judged from here."""

    year: int
    synchronised: bool | None  # by ntpd, chrony or timesyncd: the kernel's word; None: it may not be asked


@dataclass(frozen=True)
class SharedMemory:
    """The tmpfs for shared memory in MiB. ``size_mib`` None: it is not there."""

    size_mib: int | None
    free_mib: int = 0
    writable: bool = True  # for this user


@dataclass(frozen=True)
class GpuDevices:
    """GPUs as the kernel sees them, without any library."""

    nvidia: int = 0  # on the PCI bus
    others: tuple[str, ...] = ()  # AMD, Intel: compute devices of other makers
    driver: str = ""  # the NVIDIA driver that is loaded
    nodes: int = 0  # /dev/nvidia0 and so on
    rdma: tuple[str, ...] = ()  # InfiniBand and RoCE devices
    memlock_kib: int | None = None  # what may be locked in memory; None: no limit
    cuda_compat: bool = False  # a forward compatibility package is there


@dataclass(frozen=True)
class HostFacts:
    """The host: its own name, what it runs in, its clock, memory, ports, environment."""

    environment: dict[str, str] | None = None  # of this process, what torch and its libraries read of it
    endpoints: tuple[Endpoint, ...] | None = None
    listeners: tuple[Listener, ...] | None = None  # on the ports that jobs take
    leftovers: tuple[Leftover, ...] | None = None
    port_range: tuple[int, int] | None = None  # net.ipv4.ip_local_port_range
    reserved_ports: str = ""  # net.ipv4.ip_local_reserved_ports
    own_name: OwnName | None = None
    pinned_names: tuple[PinnedName, ...] | None = None
    key: ClusterKey | None = None
    hostfile: LauncherFile | None = None  # DeepSpeed's; path '': there is none
    accelerate: LauncherFile | None = None
    deepspeed_env: LauncherFile | None = None  # variables that DeepSpeed gives to all nodes
    deepspeed_config: LauncherFile | None = None  # the one that the user named; path '': none was
    surroundings: Surroundings | None = None
    clock: Clock | None = None
    shared_memory: SharedMemory | None = None
    gpu_devices: GpuDevices | None = None
    boot_unit: BootUnit | None = None  # None also without systemd
