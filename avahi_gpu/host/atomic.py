"""Replace a file's content all or nothing. Used by ``host.system`` alone."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# where a rename over the file, or a new file beside it, is not possible although the file may be rewritten
_NO_RENAME = frozenset({errno.EBUSY, errno.EXDEV})
_NO_NEW_FILE = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


@dataclass(frozen=True)
class Wanted:
    """What a file is to be. ``mtime_ns`` None: the time of writing."""

    content: bytes
    mode: int
    uid: int
    gid: int
    mtime_ns: int | None


def renewed(old: os.stat_result) -> int:
    """Return now in nanoseconds, or the next whole second where the file is of this one already."""
    return max(time.time_ns(), (int(old.st_mtime) + 1) * 10**9)


def replace(
    real: Path, wanted: Wanted, *, exists: bool, before_rewrite: Callable[[], None] = lambda: None
) -> None:
    """Put ``wanted`` in the place of ``real`` by a rename, else in place. Raises OSError.

    ``before_rewrite`` is called before a file is written in place, which a power cut may leave half done.
    """
    temporary = temporary_of(real)
    try:
        temporary.unlink(missing_ok=True)  # left by a crash
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as fault:
        if exists and fault.errno in _NO_NEW_FILE:
            return _rewrite(real, wanted, before_rewrite)
        raise
    try:
        try:
            if exists:
                _copy_attributes(real, handle)
            _fill(handle, wanted, wanted.content)
        finally:
            os.close(handle)
        try:
            temporary.rename(real)
        except OSError as fault:
            if not exists or fault.errno not in _NO_RENAME:
                raise
            temporary.unlink()
            _rewrite(real, wanted, before_rewrite)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(real.parent)
    return None


def create(real: Path, content: bytes, mode: int) -> None:
    """Make a file that is not there, all or nothing. Raises FileExistsError or another OSError."""
    temporary = real.parent / f".{real.name}.{os.getpid()}.avahi-gpu-new"  # two may try at the same time
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        try:
            os.fchmod(handle, mode)  # whatever the umask
            write_all(handle, content)
            os.fsync(handle)
        finally:
            os.close(handle)
        os.link(temporary, real)  # a rename would replace what is there
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(real.parent)


def temporary_of(real: Path) -> Path:
    """Return the name under which the new content is made ready, always the same: so it can be cleared.

    A dot first and no ``.service`` last: avahi-daemon must not load what is half written.
    """
    return real.parent / f".{real.name}.avahi-gpu-new"


def _rewrite(real: Path, wanted: Wanted, before_rewrite: Callable[[], None]) -> None:
    """Write in place: a file that is a mount of its own (containers) cannot be renamed over.

    Between any two of our system calls the file holds the old content or the new one, with blank lines behind
    it at most: it first grows by blank lines, which tells whether the disk has room, is then overwritten by
    one call, and cut to its length last.
    """
    handle = os.open(real, os.O_WRONLY | os.O_CLOEXEC)
    try:
        before_rewrite()
        size = os.fstat(handle).st_size
        try:
            write_all(handle, b"\n" * (len(wanted.content) - size), at=size)
        except OSError:
            os.ftruncate(handle, size)
            raise
        _fill(handle, wanted, wanted.content + b"\n" * (size - len(wanted.content)))
    finally:
        os.close(handle)


def _fill(handle: int, wanted: Wanted, content: bytes) -> None:
    status = os.fstat(handle)
    # first, so that a secret which goes into an open file is never seen by those who may not read it later
    os.fchmod(handle, stat.S_IMODE(status.st_mode) & wanted.mode)
    write_all(handle, content, at=0)
    os.ftruncate(handle, len(wanted.content))
    if (status.st_uid, status.st_gid) != (wanted.uid, wanted.gid):
        os.fchown(handle, wanted.uid, wanted.gid)
    os.fchmod(handle, wanted.mode)
    if wanted.mtime_ns is not None:
        os.utime(handle, ns=(wanted.mtime_ns, wanted.mtime_ns))
    os.fsync(handle)


def read_all(handle: int, limit: int) -> bytes:
    """Read to the end, at most ``limit`` bytes."""
    parts = []
    while limit > 0 and (part := os.read(handle, min(limit, 1 << 16))):
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)


def write_all(handle: int, content: bytes, at: int | None = None) -> None:
    """Write every byte, from the place ``at`` on; None: where the file's own mark stands."""
    view = memoryview(content)
    while view:
        written = os.write(handle, view) if at is None else os.pwrite(handle, view, at)
        view = view[written:]
        at = None if at is None else at + written


def append_line(handle: int, line: bytes) -> None:
    """Add a line to a file opened for appending, or nothing of it where the disk is full. Raises OSError."""
    size = os.fstat(handle).st_size
    try:
        write_all(handle, line)
        os.fsync(handle)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(handle, size)
        raise


def _copy_attributes(real: Path, handle: int) -> None:
    """Keep the security label and access list of the file that is replaced, where there are any."""
    with contextlib.suppress(OSError):
        for name in os.listxattr(real):
            with contextlib.suppress(OSError):
                os.setxattr(handle, name, os.getxattr(real, name))


def sync_folder(folder: Path) -> None:
    """Wait until the folder's entries are on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
