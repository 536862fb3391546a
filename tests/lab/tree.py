"""A picture of a folder in a virtual host, to compare byte for byte."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from tests.lab.host import Host

Picture = dict[str, tuple[int, int, int, bytes | str]]


def take_picture(host: Host, folder: str = "/etc") -> Picture:
    """Return kind and mode, owner, and content or link of everything under ``folder``."""
    top = host.path(folder)
    found: Picture = {}
    for path in sorted([top, *top.rglob("*")]):
        status = path.lstat()
        content: bytes | str = b""
        if stat.S_ISREG(status.st_mode):
            content = path.read_bytes()
        elif stat.S_ISLNK(status.st_mode):
            content = os.readlink(path)
        found[str(Path("/") / path.relative_to(top))] = (
            status.st_mode,
            status.st_uid,
            status.st_gid,
            content,
        )
    return found


def changed(before: Picture, after: Picture) -> list[str]:
    """Return the paths that differ."""
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
