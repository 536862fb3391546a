"""Where a path of a machine lies under its root, links followed within it, and what is passed on the way."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from avahi_gpu.model import CONFIG_FOLDER

MAX_LINKS = 40  # as the kernel's own limit (path_resolution(7))


def locate(root: Path, path: str) -> Path:
    """Return where ``path`` lies, every link followed as if ``root`` were ``/``; it may be missing."""
    if not path.startswith("/"):
        raise OSError(errno.EINVAL, "not an absolute path", path)
    place = root
    for step in walk(root, path):
        place = step
    return place


def walk(root: Path, path: str) -> Iterator[Path]:
    """Yield what the kernel passes on its way to ``path`` under ``root``: folders, links, and the end.

    Raises OSError at a link too many.
    """
    ahead = [part for part in reversed(PurePosixPath(path).parts) if part != "/"]
    place = root
    links = 0
    yield place
    while ahead:
        part = ahead.pop()
        if part != "..":
            place /= part
        elif place != root:
            place = place.parent
        yield place
        if place.is_symlink():
            links += 1
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            target = PurePosixPath(place.readlink())
            place = root if target.is_absolute() else place.parent
            ahead += [p for p in reversed(target.parts) if p != "/"]
            yield place


def instead_of(stand_in: Path | None, path: str | Path) -> Path | None:
    """Return what is looked at in the place of a file of /etc/avahi-gpu, None for all others."""
    if stand_in is None or not Path(path).is_relative_to(CONFIG_FOLDER):
        return None
    return stand_in / Path(path).relative_to(CONFIG_FOLDER)
