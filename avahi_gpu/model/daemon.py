"""avahi-daemon as seen in /proc, in its files and by its own answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from avahi_gpu.model.machine_file import FileState


@dataclass(frozen=True)
class UnitState:
    """avahi-daemon.service as systemd tells it (systemctl(1)); '' where it does not."""

    load: str = ""  # loaded, not-found, masked
    active: str = ""  # active, inactive, failed, activating
    enabled: str = ""  # enabled, disabled, masked, masked-runtime (until boot), static …
    result: str = ""  # success, exit-code, timeout, start-limit-hit …
    exit_status: int = 0
    argv: tuple[str, ...] = ()  # of ExecStart
    path: str = ""  # of the unit's file
    socket_load: str = ""  # load of avahi-daemon.socket, without which the service does not start
    socket_enabled: str = ""


@dataclass(frozen=True)
class DaemonProcess:
    """A process called avahi-daemon, other than a chroot helper."""

    pid: int
    state: str  # a letter of proc(5): S sleeping, T stopped, Z zombie …
    uid: int
    started: float  # seconds since the epoch, by the clock as it was then
    argv: tuple[str, ...] = ()  # Avahi writes its title over them: mostly ()
    age_s: float = 0.0  # since its start
    root: str | None = None  # what it sees as /; None: could not be read


@dataclass(frozen=True)
class ServiceFile:
    """One file in the folder of services; ``label`` is its SELinux context, '' without SELinux."""

    state: FileState
    label: str = ""

    @property
    def name(self) -> str:
        return self.state.path.rpartition("/")[2]


@dataclass(frozen=True)
class Announcement:
    """A service of this host as the daemon lists it on one interface and protocol."""

    interface: int
    protocol: Literal[4, 6]
    name: str
    type: str


@dataclass(frozen=True)
class OwnRecords:
    """What avahi-daemon answers about this host itself.

    ``address``: for its own name, IPv4 where it has that, as any program is told; None: nothing.
    """

    announcements: tuple[Announcement, ...]
    asked: tuple[str, ...]  # the types that were browsed
    address: str | None
    interface: int | None


@dataclass(frozen=True)
class StartGround:
    """What avahi-daemon would find if it were started. ``pid_file``: one that names another program."""

    user: bool = True  # the one that it runs as
    group: bool = True
    pid_file: FileState | None = None
    holder: int | None = None  # the process that it names
    program: str = ""  # and what that is


@dataclass(frozen=True)
class DaemonFacts:
    """avahi-daemon: its log, its service files, what it really publishes and on which interfaces."""

    unit: UnitState | None = None  # None: no systemd
    processes: tuple[DaemonProcess, ...] | None = None
    shared_user: int | None = None  # processes that run as the daemon's user, wherever they are
    service_files: tuple[ServiceFile, ...] | None = None
    services_folder: FileState | None = None  # its mode and owner; it has no content
    socket: FileState | None = None  # the one that nss-mdns asks; it has a mode and no content
    own: OwnRecords | None = None
    log: tuple[str, ...] | None = None  # the daemon's last lines; None: no log is kept here
    start: StartGround | None = None
    static_hosts: FileState | None = None  # /etc/avahi/hosts
    bus_address: str | None = None  # DBUS_SYSTEM_BUS_ADDRESS of our environment
    bus_refuses: str | None = None  # the bus's file that refuses Avahi its name; '' none does
