"""Make changes so that they can be undone: what was there goes to the disk before anything is touched.

The journal lies in ``/var/lib/avahi-gpu`` (mode 0700: it holds whole files of /etc), one JSON record a line.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from avahi_gpu.changes.record import (
    Before,
    CommandRecord,
    FileRecord,
    FolderRecord,
    Record,
    Restore,
    Unwinding,
    decode_records,
    digest,
    encode_record,
    unwind,
)
from avahi_gpu.errors import AvahiGpuError, ChangeFailed
from avahi_gpu.host import packages
from avahi_gpu.host.system import System
from avahi_gpu.model import STATE_FOLDER, Change

JOURNAL = STATE_FOLDER / "journal"
STATE_MODE = 0o700
# not beside the journal: undo removes that folder, and a lock must outlive what it guards
LOCK = "/run/avahi-gpu.lock"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Undone:
    """What ``undo`` did. ``failed``: why a file could not be put back."""

    restored: tuple[Restore, ...]
    kept: tuple[str, ...]
    left_folders: tuple[str, ...]
    failed: tuple[AvahiGpuError, ...]


@contextmanager
def locked(system: System) -> Iterator[None]:
    """Keep a second setup, undo or fix out while the block runs. Raises ChangeFailed if one runs."""
    handle = system.lock_handle(LOCK)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as fault:
            if fault.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise ChangeFailed(f"cannot lock {LOCK}: {fault.strerror}") from fault
            raise ChangeFailed(
                "another avahi-gpu is changing this machine right now",
                "wait until it has ended, then try again",
            ) from None
        yield
    finally:
        os.close(handle)


def apply(changes: Sequence[Change], system: System, say: Say = lambda _: None) -> list[Change]:
    """Make the changes in their order and return those made. Raises ChangeFailed at the first that fails.

    What was made before a failure stays, and is in the journal. Call it inside ``locked``.
    """
    made: list[Change] = []
    for change in changes:
        say(change.title)
        try:
            if change.kind == "file":
                _change_file(change, system)
            elif change.kind == "package":
                _record(CommandRecord(change.kind, change.title, change.argv), system)
                packages.install(system, change.argv, say)
            else:
                _run_daemon(change, system)
        except AvahiGpuError as fault:
            done = f"done before it: {'; '.join(c.title for c in made)}; avahi-gpu undo takes it back"
            raise ChangeFailed(
                f"could not {change.title}: {fault.message}",
                ". ".join(part for part in (fault.hint, done if made else "") if part),
            ) from fault
        made.append(change)
    return made


def read_journal(system: System) -> tuple[list[Record], list[int]]:
    """Return the records and the numbers of lines that are none. Raises ChangeFailed if it is unreadable."""
    state = system.read(JOURNAL)
    if state.content is None and state.error != os.strerror(errno.ENOENT):
        raise ChangeFailed(f"cannot read {JOURNAL}: {state.error}", "run it as root")
    return decode_records(state.content or b"")


def plan_undo(system: System) -> Unwinding:
    """Return what undoing would come to now."""
    return unwind(read_journal(system)[0], system.read)


def undo(unwinding: Unwinding, system: System, say: Say = lambda _: None) -> Undone:
    """Put back what ``plan_undo`` told, going on where one file fails. Call it inside ``locked``."""
    failed: list[AvahiGpuError] = []
    restored: list[Restore] = []
    kept = list(unwinding.kept)
    for restore in unwinding.restores:
        if system.read(restore.path).content != restore.current:
            kept.append(restore.path)  # edited while we were asking
            continue
        say(restore.change.title)
        try:
            _put_back(restore, system)
        except ChangeFailed as fault:
            failed.append(fault)
        else:
            restored.append(restore)
    for record in read_journal(system)[0]:
        if isinstance(record, FileRecord):
            system.sweep(record.path)
    left_folders = [path for path in unwinding.folders if not system.remove_folder(path)]
    _close_journal(system, {r.path for r in restored}, left_folders)
    return Undone(tuple(restored), tuple(kept), tuple(left_folders), tuple(failed))


def _change_file(change: Change, system: System) -> None:
    state = system.read(change.path)
    if state.exists and state.content is None:
        raise ChangeFailed(f"cannot read {change.path}: {state.error}")
    if change.content is None and state.link_target is not None:
        raise ChangeFailed(f"{change.path} is a link to {state.link_target}", "remove it by hand")
    if state.content != change.before:
        raise ChangeFailed(
            f"{change.path} was edited in the meantime", "run it again to see what is wanted now"
        )
    before = Before(state.content, state.mode or 0, state.uid or 0, state.gid or 0)
    if state.content is None:
        _make_folder(PurePosixPath(state.link_target or change.path).parent, system)
    # the file behind a link, not the link: undo must not take the user's link for a file of ours
    real = state.link_target or change.path
    _record(FileRecord(real, before, digest(change.content)), system)
    if change.content is None:
        system.remove(change.path)
    else:
        system.write(change.path, change.content, change.mode)


def _make_folder(folder: PurePosixPath, system: System) -> None:
    missing: list[PurePosixPath] = []
    while not system.is_folder(folder):
        missing.append(folder)
        folder = folder.parent
    for one in reversed(missing):
        _record(FolderRecord(str(one)), system)
        system.make_folder(one)


def _run_daemon(change: Change, system: System) -> None:
    _record(CommandRecord(change.kind, change.title, change.argv), system)
    done = system.start_daemon(change.argv)
    if not done.ok:
        raise ChangeFailed(
            f"{' '.join(change.argv)}: {done.reason}", "its log tells more (journalctl, or syslog)"
        )


def _record(record: Record, system: System) -> None:
    system.make_folder(STATE_FOLDER, STATE_MODE)
    content = system.read(JOURNAL).content or b""
    # a crash can have cut the last line short: the next one must not hang on to it
    gap = b"" if content.endswith(b"\n") or not content else b"\n"
    system.append(JOURNAL, gap + encode_record(record))


def _put_back(restore: Restore, system: System) -> None:
    before = restore.before
    if before.content is None:
        system.remove(restore.path)
    else:
        system.write(restore.path, before.content, before.mode, before.uid, before.gid)


def _close_journal(system: System, restored: set[str], left_folders: Sequence[str]) -> None:
    """Keep in the journal only what could not be undone; without any, remove it and its folder."""
    records, _ = read_journal(system)
    still = unwind(records, system.read)
    open_paths = {*still.kept, *(r.path for r in still.restores)} - restored
    remaining: list[Record] = [r for r in records if isinstance(r, FileRecord) and r.path in open_paths]
    if remaining:
        folders = [r for r in records if isinstance(r, FolderRecord) and r.path in left_folders]
        system.write(JOURNAL, b"".join(encode_record(r) for r in (*folders, *remaining)), 0o600)
    else:
        system.remove(JOURNAL)
        system.remove_folder(STATE_FOLDER)
