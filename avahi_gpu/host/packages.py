"""The package manager of this machine: what is installed, and how to install."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from avahi_gpu.host import apt
from avahi_gpu.host.machine import read_families
from avahi_gpu.host.system import System

QUERY_S = apt.QUERY_S
# zypper(8): a reboot, or a restart of zypper itself, would be good
ZYPPER_DONE = (102, 103)
_ENVIRONMENT = {"ZYPP_LOCK_TIMEOUT": f"{apt.LOCK_S:.0f}"}  # dnf waits for others by itself, and says so

BUSES = ("dbus", "dbus-daemon", "dbus-broker", "dbus-broker-units", "dbus-1", "dbus-1-daemon")
# what we need, under every name that distributions give it
NAMES = (*BUSES, "avahi-daemon", "avahi", "libnss-mdns", "nss-mdns")

# manager -> the program that shows that it is the one; the first that is there is meant
_MANAGERS = {
    "apt": "apt-get",
    "dnf": "dnf",
    "zypper": "zypper",
    "pacman": "pacman",
    # those that a person has to run: checks.by_hand knows their commands
    "apk": "apk",
    "emerge": "emerge",
    "xbps": "xbps-install",
    "yum": "yum",
    "snap": "snap",
}

# ID or ID_LIKE of os-release(5) -> the manager: Fedora has a package apt, Debian one of dnf
_OF_DISTRIBUTION = {
    "debian": "apt",
    "ubuntu": "apt",
    "fedora": "dnf",
    "rhel": "dnf",
    "centos": "dnf",
    "suse": "zypper",
    "opensuse": "zypper",
    "arch": "pacman",
    "alpine": "apk",
    "gentoo": "emerge",
    "void": "xbps",
}

Say = Callable[[str], None]


def find_manager(system: System) -> str | None:
    """Return what installs packages here: a key of ``_MANAGERS``, or of a system that starts from an image.

    Those (``ostree``, ``nix``, ``transactional-update``, ``steamos``, ``image``) have one of the others on
    board too, which would fail, or whose work the next boot would forget.
    """
    if system.exists("/run/ostree-booted"):
        return "rpm-ostree" if system.find_program("rpm-ostree") else "image"
    if system.exists("/etc/NIXOS"):
        return "nix"
    names = [
        *(_OF_DISTRIBUTION[word] for word in read_families(system) if word in _OF_DISTRIBUTION),
        *_MANAGERS,
    ]
    found = next((name for name in names if system.find_program(_MANAGERS[name])), None)
    if not system.read("/usr").writable:
        if system.find_program("transactional-update"):
            return "transactional-update"
        if system.find_program("steamos-readonly"):
            return "steamos"
        return "snap" if found == "snap" else "image"
    return found


def read_installed(
    system: System, manager: str | None, names: Sequence[str] = NAMES
) -> dict[str, bool | None]:
    """Return for each package whether it is installed; None where that could not be found out."""
    if manager == "apt":
        done = system.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Abbrev}\n", *names], QUERY_S)
        # it exits with 1 where one of the names is unknown, and tells of the others all the same
        found = parse_dpkg(done.stdout) if done.returncode in (0, 1) else None
    elif manager in ("dnf", "yum", "zypper", "rpm-ostree", "transactional-update"):
        done = system.run(["rpm", "-q", "--qf", "%{NAME}\n", *names], QUERY_S)
        found = (
            set(done.stdout.split("\n")) if done.returncode is not None and done.returncode < 100 else None
        )
    elif manager in ("pacman", "steamos"):
        done = system.run(["pacman", "-Qq", *names], QUERY_S)
        found = set(done.stdout.split()) if done.returncode in (0, 1) else None
    else:
        found = None
    return {name: None if found is None else name in found for name in names}


def parse_dpkg(text: str) -> set[str]:
    """Return the names that dpkg-query(1) shows as installed: ``ii``, or ``hi`` where held."""
    words = (line.split() for line in text.splitlines())
    return {w[0] for w in words if len(w) >= 2 and w[1][1:2] == "i"}


def install(system: System, argv: Sequence[str], say: Say = lambda _: None) -> None:
    """Run an install command line without any question asked. Raises ChangeFailed."""
    if argv[0] == "apt-get":
        apt.install(system, argv, say)
        return
    done = apt.run_to_its_end(system, argv, say, _ENVIRONMENT)
    if not done.ok and not (argv[0] == "zypper" and done.returncode in ZYPPER_DONE):
        raise apt.failed(argv, done)
