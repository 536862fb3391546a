"""Who but root could change a program that root is to run: each folder, link and file on the way counts."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from avahi_gpu.host.paths import walk
from avahi_gpu.host.system import System

# Debian's group "staff" may write there on older installations; by policy (9.1.2) it is as good as root
LOCAL = "/usr/local"
NOBODY = 65534  # the user and the group that own nothing, on Debian and elsewhere
# a program of another user's is found neither by our home nor by our groups
_LOWER = """
import os, sys
uid, gid = map(int, sys.argv[1:3])
os.setgroups([])
os.setgid(gid)
os.setuid(uid)
os.environ["HOME"] = "/"
os.execv(sys.argv[3], sys.argv[3:])
"""


@dataclass(frozen=True)
class Exposure:
    """Who else may change a program: ``uid`` and ``gid`` are theirs, NOBODY where it is anybody."""

    says: str
    uid: int
    gid: int


def find_exposure(system: System, path: str) -> str:
    """Return why others than root may change what lies at ``path``; '': nobody may, or nothing is there."""
    try:
        found = look_for_exposure(system, path)
    except OSError:
        return ""
    return found.says if found is not None else ""


def look_for_exposure(system: System, path: str) -> Exposure | None:
    """Return by whom what lies at ``path`` may be changed; None: by root alone.

    Raises OSError where nothing is there and nobody else owns the way.
    """
    for place in walk(system.root, path):
        found = _judge(place.lstat(), "/" + str(place.relative_to(system.root)).removeprefix("."))
        if found is not None:
            return found
    return None


def _judge(status: os.stat_result, shown: str) -> Exposure | None:
    """Return by whom one place of the way may be changed."""
    uid, gid = status.st_uid, status.st_gid or NOBODY
    if uid != 0:
        return Exposure(f"{shown} belongs to user {uid}", uid, gid)
    if stat.S_ISLNK(status.st_mode):
        return None
    # in such a folder names stay their owners'
    sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    if status.st_mode & stat.S_IWOTH and not sticky:
        return Exposure(f"everybody may write {shown}", NOBODY, NOBODY)
    by_group = status.st_mode & stat.S_IWGRP and status.st_gid != 0 and not sticky
    if by_group and not PurePosixPath(shown).is_relative_to(LOCAL):
        return Exposure(f"group {status.st_gid} may write {shown}", NOBODY, gid)
    return None


def lower(system: System, argv: Sequence[str]) -> list[str]:
    """Return ``argv``, or where we are root and others may change that program, what runs it as one of those.

    A Python of somebody's home is asked for its versions at every boot: as root it could do anything then.
    What is not there yet is run as nobody: in /tmp anybody may put it there in the meantime.
    """
    if os.geteuid() != 0:
        return list(argv)
    try:
        found = look_for_exposure(system, argv[0])
    except OSError:
        found = Exposure("nothing is there", NOBODY, NOBODY)
    if found is None:
        return list(argv)
    return [sys.executable, "-I", "-S", "-c", _LOWER, str(found.uid), str(found.gid), *argv]
