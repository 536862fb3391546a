"""The root file systems that machines boot from, and the package archive in each of them."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.machines.cache import key_of, made, step

MIRROR = os.environ.get("AVAHI_GPU_DEBIAN_MIRROR", "")  # without it debootstrap takes Debian's own
RELEASES = {"bookworm": "3.11", "trixie": "3.13"}  # Debian release -> its Python

# what a bare machine has beside Debian's essential packages
BASE = "systemd-sysv dbus iproute2 python3 ca-certificates"
# what may be installed later: machines have no network but their LAN, so it lies in an archive of their own
ARCHIVE = (
    "avahi-daemon avahi-utils libnss-mdns openssh-server python3-venv python3-apt sudo nftables ufw "
    "firewalld systemd-resolved libnss-resolve iputils-ping procps man-db bash-completion"
)

_DOWNLOAD = """set -eu
root=$1 release=$2 mirror=$3 base=$4 archive=$5
debootstrap --variant=minbase --include="$base" "$release" "$root" ${mirror:+"$mirror"}
chroot "$root" apt-get clean # of what it is made of itself
chroot "$root" apt-get update -qq
# shellcheck disable=SC2086
chroot "$root" apt-get install -y -qq --download-only --no-install-recommends $archive
mkdir -p "$root/srv/archive" "$root/srv/wheels"
mv "$root"/var/cache/apt/archives/*.deb "$root/srv/archive/"
"""
_FINISH = """set -eu
root=$1
rm -rf "$root"/etc/apt/sources.list.d/* "$root"/var/lib/apt/lists/* "$root/etc/hostname"
echo 'deb [trusted=yes] file:/srv/archive ./' >"$root/etc/apt/sources.list"
echo 'nameserver 127.0.0.1' >"$root/etc/resolv.conf" # nobody listens there: refused at once
chroot "$root" apt-get update -qq
"""


def root_of(release: str = "bookworm") -> Path:
    """Return the root file system of a bare machine, made by debootstrap the first time. Raises NotMade."""
    if release not in RELEASES:
        raise ValueError(f"no such release here: {release}; there are {', '.join(RELEASES)}")
    key = key_of(release, MIRROR, BASE, ARCHIVE, _DOWNLOAD, _FINISH)
    return made(release, key, lambda folder: _make(folder, release)) / "root"


def _make(folder: Path, release: str) -> None:
    root = folder / "root"
    words = [root, release, MIRROR, BASE.replace(" ", ","), ARCHIVE]
    step(["sh", "-c", _DOWNLOAD, "sh", *words], f"making a Debian {release}", apart=True)
    archive = root / "srv/archive"
    (archive / "Packages").write_text("".join(_index(archive)))
    step(["sh", "-c", _FINISH, "sh", root], f"finishing a Debian {release}", apart=True)


def _index(archive: Path) -> Iterator[str]:
    """Yield the paragraphs of an archive's Packages file (deb822)."""
    for package in sorted(archive.glob("*.deb")):
        fields = subprocess.run(
            ["dpkg-deb", "--field", str(package)], capture_output=True, text=True, timeout=60, check=True
        ).stdout
        content = package.read_bytes()
        yield f"{fields.strip()}\nFilename: ./{package.name}\nSize: {len(content)}\n"
        yield f"SHA256: {hashlib.sha256(content).hexdigest()}\n\n"
