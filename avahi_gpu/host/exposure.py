"""Who but root could change a program that root is to run: each folder, link and file on the way counts."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from avahi_gpu.host.paths import MAX_LINKS
from avahi_gpu.host.system import System

# Debian's group "staff" may write there on older installations; by policy (9.1.2) it is as good as root
LOCAL = "/usr/local"


def find_exposure(system: System, path: str) -> str:
    """Return why others than root may change what lies at ``path``; '': nobody may, or nothing is there."""
    for place in walk(system.root, path):
        try:
            status = place.lstat()
        except OSError:
            return ""
        shown = "/" + str(place.relative_to(system.root)).removeprefix(".")
        if status.st_uid != 0:
            return f"{shown} belongs to user {status.st_uid}"
        if stat.S_ISLNK(status.st_mode):
            continue
        sticky = (
            stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
        )  # whose names stay their owners'
        if status.st_mode & stat.S_IWOTH and not sticky:
            return f"everybody may write {shown}"
        by_group = status.st_mode & stat.S_IWGRP and status.st_gid != 0 and not sticky
        if by_group and not PurePosixPath(shown).is_relative_to(LOCAL):
            return f"group {status.st_gid} may write {shown}"
    return ""


def walk(root: Path, path: str) -> Iterator[Path]:
    """Yield what the kernel passes on its way to ``path`` under ``root``: folders, links, and the end."""
    yield root
    ahead = [part for part in reversed(PurePosixPath(path).parts) if part != "/"]
    place = root
    links = 0
    while ahead:
        part = ahead.pop()
        if part == "..":
            place = place.parent if place != root else place
            continue
        place /= part
        yield place
        if place.is_symlink():
            links += 1
            if links > MAX_LINKS:
                return
            target = PurePosixPath(place.readlink())
            place = root if target.is_absolute() else place.parent
            ahead += [p for p in reversed(target.parts) if p != "/"]
