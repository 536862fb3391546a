"""What is to be installed, by which command: as a change where that is safe, else told."""

from __future__ import annotations

from shlex import quote

from avahi_gpu.model import Change, Facts, Fix, ImageFacts

# the package that holds each thing we need, by package manager
PACKAGES: dict[str, dict[str, str]] = {
    # on Fedora and RHEL 9 it brings dbus-broker, on RHEL 8 dbus-daemon
    "dbus": {"apt": "dbus", "dnf": "dbus", "pacman": "dbus", "zypper": "dbus-1"},
    "avahi": {"apt": "avahi-daemon", "dnf": "avahi", "pacman": "avahi", "zypper": "avahi"},
    "nss-mdns": {"apt": "libnss-mdns", "dnf": "nss-mdns", "pacman": "nss-mdns", "zypper": "nss-mdns"},
}
INSTALL: dict[str, tuple[str, ...]] = {
    "apt": ("apt-get", "install", "--yes", "--no-install-recommends"),
    "dnf": ("dnf", "install", "--assumeyes"),
    "pacman": ("pacman", "-S", "--needed", "--noconfirm"),
    "zypper": ("zypper", "--non-interactive", "install", "--no-recommends"),
}
# any of them is a system bus: Fedora and Arch have dbus-broker
BUSES = ("dbus", "dbus-daemon", "dbus-broker", "dbus-broker-units", "dbus-1", "dbus-1-daemon")
# what a person runs where it needs a reboot, a system that we have not tried, or a look first
BY_HAND: dict[str, str] = {
    "rpm-ostree": "rpm-ostree install avahi nss-mdns && systemctl reboot",
    "transactional-update": "transactional-update pkg install avahi nss-mdns && systemctl reboot",
    "steamos": "steamos-readonly disable && pacman -S --needed avahi nss-mdns && steamos-readonly enable",
    "apk": "apk add dbus avahi && rc-update add avahi-daemon && rc-service avahi-daemon start",
    "emerge": "emerge sys-apps/dbus net-dns/avahi sys-auth/nss-mdns",
    "xbps": "xbps-install -S dbus avahi nss-mdns",
    "yum": "yum install avahi nss-mdns",
    "snap": "snap install avahi",
}
TOLD: dict[str, str] = {
    "nix": "put into configuration.nix: services.avahi = { enable = true; nssmdns4 = true; publish = { "
    "enable = true; addresses = true; }; }; then run: nixos-rebuild switch",
    "image": "this system's /usr is read-only: add avahi and nss-mdns to the image that it starts from",
    "rpm-ostree": "packages are layered onto this system's image, and are there after a reboot",
    "transactional-update": "packages go into the next snapshot of this system, and are there after a reboot",
    "steamos": "SteamOS forgets packages at its next update: they have to be installed again then",
}
UNKNOWN = (
    "no package manager that avahi-gpu knows is on this machine: install by hand a D-Bus system bus, Avahi "
    "(avahi-daemon with D-Bus) and glibc's module nss-mdns, then run setup again"
)


def install(thing: str, facts: Facts) -> Fix | None:
    """Return the fix that installs ``thing`` (a key of PACKAGES), or the command that a person has to run."""
    manager = facts.package_manager or ""
    if manager in INSTALL:
        package = PACKAGES[thing][manager]
        if facts.image is not None and (manager != "apt" or facts.image.cannot_install):
            return Fix(f"install {package}", commands=(install_into(facts.image, manager, package),))
        change = Change("package", f"install {package}", argv=(*INSTALL[manager], package))
        return Fix(change.title, (change,))
    if manager in BY_HAND and facts.image is None:
        return Fix("install what is missing", commands=(BY_HAND[manager],))
    return None


def install_into(image: ImageFacts, manager: str, package: str) -> str:
    """Return the command line that installs a package into an image from outside."""
    folder, (program, *words) = quote(image.folder), (*INSTALL[manager], package)
    if manager == "apt":
        return f"chroot {folder} {' '.join((program, *words))}"
    return " ".join((program, "--installroot" if manager == "dnf" else "--root", folder, *words))


def explain(facts: Facts) -> str:
    """Return what is to be known where a person has to install it, '' where setup does."""
    manager = facts.package_manager or ""
    return "" if manager in INSTALL else TOLD.get(manager, "" if manager in BY_HAND else UNKNOWN)


def lacks_bus(facts: Facts) -> bool:
    """Whether no package of a system bus is installed, as far as the package manager tells."""
    found = [facts.packages.get(name) for name in BUSES]
    return False in found and True not in found
