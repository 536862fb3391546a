"""Fixes that several checks offer, as data: nothing is run here."""

from __future__ import annotations

from avahi_gpu.model import Change, Facts, FileState, Fix

# the package that holds each thing we need, by package manager
PACKAGES: dict[str, dict[str, str]] = {
    "dbus": {"apt": "dbus", "dnf": "dbus-daemon", "pacman": "dbus", "zypper": "dbus-1"},
    "avahi": {"apt": "avahi-daemon", "dnf": "avahi", "pacman": "avahi", "zypper": "avahi"},
    "nss-mdns": {"apt": "libnss-mdns", "dnf": "nss-mdns", "pacman": "nss-mdns", "zypper": "nss-mdns"},
}
INSTALL: dict[str, tuple[str, ...]] = {
    "apt": ("apt-get", "install", "--yes", "--no-install-recommends"),
    "dnf": ("dnf", "install", "--assumeyes"),
    "pacman": ("pacman", "-S", "--needed", "--noconfirm"),
    "zypper": ("zypper", "--non-interactive", "install", "--no-recommends"),
}


def write_file(title: str, state: FileState, content: bytes | None, *, question: str = "") -> Change:
    """Return the change that gives the file this content, its mode kept; None removes it."""
    mode = 0o644 if state.mode is None else state.mode
    return Change("file", title, state.path, content, mode, before=state.content, question=question)


def command(
    title: str,
    argv: tuple[str, ...],
    *,
    undo: tuple[str, ...] = (),
    verify: tuple[str, ...] = (),
    question: str = "",
    until_boot: bool = False,
) -> Change:
    """Return the change that runs a program; ``undo`` must take exactly that back. See ``Change``.

    Only what adds, and cuts nobody off: ``--yes`` answers the question too. ``HANDLE`` in ``undo`` stands
    for the number of the rule that ``nft --echo --handle`` added.
    """
    return Change(
        "command", title, argv=argv, undo=undo, verify=verify, question=question, until_boot=until_boot
    )


def install(thing: str, facts: Facts) -> Fix | None:
    """Return the fix that installs ``thing`` (a key of PACKAGES), None where we know no package manager."""
    manager = facts.package_manager
    if manager not in INSTALL:
        return None
    package = PACKAGES[thing][manager]
    change = Change("package", f"install {package}", argv=(*INSTALL[manager], package))
    return Fix(change.title, (change,))


def start_bus(facts: Facts) -> Fix:
    """Return the fix that starts the D-Bus system bus."""
    if facts.init == "systemd":
        return _daemon("start the system bus", ("systemctl", "start", "dbus.socket"))
    return Fix(
        "start the system bus",
        (
            Change("daemon", "make the bus's folder", argv=("install", "-d", "-m", "0755", "/run/dbus")),
            # without a pid file: one left behind by a killed bus would forbid the start
            Change("daemon", "start dbus-daemon", argv=("dbus-daemon", "--system", "--fork", "--nopidfile")),
        ),
    )


def start_avahi(facts: Facts) -> Fix:
    """Return the fix that starts avahi-daemon, now and at every boot where systemd is PID 1."""
    if facts.init == "systemd":
        return _daemon(
            "enable and start avahi-daemon", ("systemctl", "enable", "--now", "avahi-daemon.service")
        )
    return _daemon("start avahi-daemon", ("avahi-daemon", "--daemonize"))


def restart_avahi(facts: Facts) -> Fix:
    """Return the fix that restarts a running avahi-daemon."""
    if facts.init == "systemd":
        return _daemon("restart avahi-daemon", ("systemctl", "restart", "avahi-daemon.service"))
    return Fix(
        "restart avahi-daemon",
        (
            Change("daemon", "stop avahi-daemon", argv=("avahi-daemon", "--kill")),
            Change("daemon", "start avahi-daemon", argv=("avahi-daemon", "--daemonize")),
        ),
    )


def _daemon(title: str, argv: tuple[str, ...]) -> Fix:
    return Fix(title, (Change("daemon", title, argv=argv),))
