"""The folder of static services, file by file, those included that avahi-daemon passes over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from avahi_gpu.files.service_loader import SIZE_LIMIT
from avahi_gpu.host.aside import aside
from avahi_gpu.host.system import System
from avahi_gpu.model import SERVICE_FILE, FileState, ServiceFile

if TYPE_CHECKING:
    from avahi_gpu.host.probers import Ground

MAX_FILES = 200  # of a folder; a large machine has ten


async def read(ground: Ground) -> tuple[ServiceFile, ...]:
    """Return every file there, in the order of names."""
    return await aside(read_folder, ground.system)


async def read_itself(ground: Ground) -> FileState:
    """Return the folder's own mode and owner."""
    return await aside(ground.system.read, SERVICE_FILE.parent)


def read_folder(system: System) -> tuple[ServiceFile, ...]:
    """Return the files as they are; a folder that is not there has none."""
    folder = SERVICE_FILE.parent
    names = [n for n in system.list_folder(folder) if not n.startswith(".")][:MAX_FILES]
    paths = [f"{folder}/{name}" for name in names]
    return tuple(ServiceFile(system.read(path, SIZE_LIMIT), system.read_label(path)) for path in paths)
