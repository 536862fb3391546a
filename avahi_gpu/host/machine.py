"""What a few files tell of the machine: its distribution, its id, the modules that glibc has."""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass, field, replace
from typing import Literal

from avahi_gpu.files import nsswitch
from avahi_gpu.host import daemons, node
from avahi_gpu.host.image import Image
from avahi_gpu.host.system import System
from avahi_gpu.model import FileState

# modules that answer for .local, beside those that the hosts line names
MDNS_MODULES = ("mdns4_minimal", "mdns_minimal", "mdns4", "mdns", "mdns6_minimal", "mdns6")
GLIBC = "libc.so.6"
BUILT_IN = ("files", "dns")  # part of glibc itself since 2.34

_MODULE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")
# the multiarch folder of a machine whose name is not the one that Debian gives the architecture
_TRIPLES = {"ppc64le": "powerpc64le", "i686": "i386", "armv7l": "arm"}


@dataclass(frozen=True)
class Machine:
    """What files tell of the machine; see the fields of ``model.Facts``."""

    init: Literal["systemd", "other"] = "other"
    distribution: str = ""
    id: str = ""
    modules: dict[str, bool] = field(default_factory=dict)
    glibc: bool = True


def read_machine(system: System, hosts_line: FileState) -> Machine:
    """Return what takes a few files of the system to know."""
    return Machine(
        daemons.read_init(system),
        read_distribution(system),
        node.read_machine_id(system),
        find_modules(system, hosts_line),
        has_glibc(system),
    )


def has_glibc(system: System) -> bool:
    """Whether programs here use glibc. False only where musl is there and glibc is not."""
    if any(system.exists(f"{folder}/{GLIBC}") for folder in _library_folders_of(system)):
        return True
    return not any(name.startswith("ld-musl-") for name in system.list_folder("/lib"))


def read_hosts_line(system: System) -> FileState:
    """Return the nsswitch.conf that glibc reads: where /etc has none, the vendor's, if this glibc knows it.

    openSUSE's does (glibc-nsswitch-usr.diff). Others have a file there too (ostree's first copy of /etc) that
    nothing reads, so what counts is whether the path stands in the library itself.
    """
    state = system.read(nsswitch.PATH, nsswitch.SIZE_MAX)
    if state.exists or state.link_target is not None:
        return state
    vendor = system.read(nsswitch.VENDOR_PATH, nsswitch.SIZE_MAX)
    if vendor.content is None or not _knows_vendor(system):
        return state
    return replace(vendor, writable=state.writable, link_target=None, immutable=False)


def _knows_vendor(system: System) -> bool:
    for folder in _library_folders_of(system):
        library = system.read(f"{folder}/{GLIBC}").content
        if library is not None:
            return nsswitch.VENDOR_PATH.encode() + b"\0" in library
    return False


def read_distribution(system: System) -> str:
    """Return ID of os-release(5), '' where there is none."""
    return _read_os_release(system).get("ID", "")


def read_families(system: System) -> tuple[str, ...]:
    """Return ID and ID_LIKE of os-release(5): what the distribution is, and what it is like."""
    found = _read_os_release(system)
    return tuple(f"{found.get('ID', '')} {found.get('ID_LIKE', '')}".split())


def _read_os_release(system: System) -> dict[str, str]:
    for path in _OS_RELEASE:
        content = system.read(path).content
        if content is not None:
            return parse_os_release(content.decode("utf-8", "replace"))
    return {}


def parse_os_release(text: str) -> dict[str, str]:
    """Return the assignments of os-release(5), without their quotes."""
    found = (re.fullmatch(r"\s*([A-Z0-9_]+)=(\"?)([^\"]*)\2\s*", line) for line in text.splitlines())
    return {m[1]: m[3].strip("'") for m in found if m is not None}


def find_modules(system: System, state: FileState) -> dict[str, bool]:
    """Return for each module on the hosts line, and each that answers for .local, whether glibc finds it."""
    named = nsswitch.modules(nsswitch.decode(state.content or b""))
    folders = _library_folders_of(system)
    return {
        name: name in BUILT_IN or any(system.exists(f"{f}/libnss_{name}.so.2") for f in folders)
        for name in dict.fromkeys((*named, *MDNS_MODULES))
        if _MODULE_NAME.fullmatch(name)
    }


def _library_folders_of(system: System) -> tuple[str, ...]:
    return library_folders(system.read_architecture() if isinstance(system, Image) else platform.machine())


def library_folders(machine: str) -> tuple[str, ...]:
    """Return where glibc looks for modules, on Debian and on others."""
    triple = f"{_TRIPLES.get(machine, machine)}-linux-gnu{'eabihf' if machine == 'armv7l' else ''}"
    return tuple(f"{top}/{name}" for name in (f"lib/{triple}", "lib64", "lib") for top in ("/usr", ""))
