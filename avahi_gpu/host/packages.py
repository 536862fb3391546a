"""The package manager of this machine: what is installed, and how to install."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from avahi_gpu.errors import ChangeFailed
from avahi_gpu.host.system import Completed, System

QUERY_S = 20.0  # a cold package database on a slow disk
# downloads over a slow line, and another package manager that holds the lock (unattended-upgrades at boot)
INSTALL_S = 1800.0
LOCK_S = 300

# what we need, under every name that distributions give it
NAMES = ("dbus", "dbus-daemon", "dbus-1", "avahi-daemon", "avahi", "libnss-mdns", "nss-mdns")

# manager -> the program that shows that it is the one; the first that is there is meant
_MANAGERS = {"apt": "apt-get", "dnf": "dnf", "zypper": "zypper", "pacman": "pacman"}
_APT_OPTIONS = (
    f"--option=DPkg::Lock::Timeout={LOCK_S}",
    # a file of a package's configuration that somebody edited stays, instead of a question nobody answers
    "--option=Dpkg::Options::=--force-confdef",
    "--option=Dpkg::Options::=--force-confold",
)
_APT_ENVIRONMENT = {"DEBIAN_FRONTEND": "noninteractive", "APT_LISTCHANGES_FRONTEND": "none"}

Say = Callable[[str], None]


def find_manager(system: System) -> str | None:
    """Return ``apt``, ``dnf``, ``zypper`` or ``pacman``; None where none of them is there."""
    return next((name for name, program in _MANAGERS.items() if system.find_program(program)), None)


def read_installed(
    system: System, manager: str | None, names: Sequence[str] = NAMES
) -> dict[str, bool | None]:
    """Return for each package whether it is installed; None where that could not be found out."""
    if manager == "apt":
        done = system.run(["dpkg-query", "-W", "-f", "${Package} ${db:Status-Abbrev}\n", *names], QUERY_S)
        # it exits with 1 where one of the names is unknown, and tells of the others all the same
        found = parse_dpkg(done.stdout) if done.returncode in (0, 1) else None
    elif manager in ("dnf", "zypper"):
        done = system.run(["rpm", "-q", "--qf", "%{NAME}\n", *names], QUERY_S)
        found = (
            set(done.stdout.split("\n")) if done.returncode is not None and done.returncode < 100 else None
        )
    elif manager == "pacman":
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
    """Run an install command line without any question asked. Raises ChangeFailed.

    With apt the lists are fetched first where a package is unknown, or once more where a download failed.
    """
    if argv[0] != "apt-get":
        _demand(system.run(argv, INSTALL_S), argv)
        return
    packages = [word for word in argv[2:] if not word.startswith("-")]
    command = [argv[0], *_APT_OPTIONS, *argv[1:]]
    fresh = _update_unless_known(system, packages, say)
    done = system.run(command, INSTALL_S, _APT_ENVIRONMENT)
    if not done.ok and not fresh and "Failed to fetch" in done.stderr:
        _update(system, say)
        done = system.run(command, INSTALL_S, _APT_ENVIRONMENT)
    _demand(done, argv)


def _update_unless_known(system: System, packages: Iterable[str], say: Say) -> bool:
    for package in packages:
        policy = system.run(["apt-cache", "policy", package], QUERY_S)
        if "Candidate:" not in policy.stdout or "Candidate: (none)" in policy.stdout:
            _update(system, say)
            return True
    return False


def _update(system: System, say: Say) -> None:
    say("apt-get update")
    done = system.run(["apt-get", *_APT_OPTIONS, "update"], INSTALL_S, _APT_ENVIRONMENT)
    if not done.ok:
        raise ChangeFailed(
            f"apt-get update failed: {done.reason}", "see that this machine reaches its package archive"
        )


def _demand(done: Completed, argv: Sequence[str]) -> None:
    if not done.ok:
        complaints = [line for line in done.stderr.splitlines() if line.startswith(("E:", "Error"))]
        raise ChangeFailed(
            f"{' '.join(argv)} failed: {complaints[0] if complaints else done.reason}",
            "run it by hand to see all it says, then run setup again",
        )
