"""What the probers read of the host itself, of what it runs in, and of what torch would find there."""

from __future__ import annotations

from dataclasses import dataclass


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
    """A worker of torch whose agent has ended without it."""

    pid: int
    command: str
    run: str  # TORCHELASTIC_RUN_ID
    holds: tuple[str, ...] = ()  # /dev/nvidia0, port 29500


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
