"""Make changes so that they can be undone: what was there goes to the disk before anything is touched.

The journal lies in ``/var/lib/avahi-gpu`` (mode 0700: it holds whole files of /etc), one JSON record a line.
"""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import msgspec

from avahi_gpu.changes import rewrites
from avahi_gpu.changes.debts import open_debts, paid_by, restarts_avahi
from avahi_gpu.changes.record import (
    Before,
    CommandRecord,
    DebtRecord,
    FileRecord,
    FolderRecord,
    Pages,
    PaymentRecord,
    Record,
    Restore,
    Reversal,
    ReversalRecord,
    Step,
    Unwinding,
    decode_pages,
    digest,
    encode_record,
    half_done,
    last_run,
    unwind,
)
from avahi_gpu.errors import AvahiGpuError, ChangeFailed
from avahi_gpu.host import daemons, packages
from avahi_gpu.host.interruption import held
from avahi_gpu.host.nft_rule import find_handle
from avahi_gpu.host.system import System
from avahi_gpu.model import HANDLE, STATE_FOLDER, Change

JOURNAL = STATE_FOLDER / "journal"
STATE_MODE = 0o700
OTHERS_WRITE = 0o022
MAX_BYTES = 64 << 20  # some thousand changes: each holds the whole file as it was
BOOT_ID = "/proc/sys/kernel/random/boot_id"
CANNOT_TELL = range(251, 255)  # firewall-cmd(1): its daemon does not run, or does not answer
COMMAND_S = 20.0  # firewall-cmd and netplan take seconds on a slow machine; none of them waits for anybody

Say = Callable[[str], None]


@dataclass(frozen=True)
class Undone:
    """What ``undo`` did. ``failed``: why a step could not be taken; ``gone``: what was no longer in force."""

    restored: tuple[Step, ...]
    kept: tuple[str, ...]
    gone: tuple[CommandRecord, ...]
    left_folders: tuple[str, ...]
    failed: tuple[AvahiGpuError, ...]


def apply(
    changes: Sequence[Change], system: System, say: Say = lambda _: None, run: str = ""
) -> list[Change]:
    """Make the changes in their order and return those made. Raises ChangeFailed at the first that fails.

    What was made before a failure stays, and is in the journal as of ``run``. Call it inside ``locked``.
    """
    made: list[Change] = []
    for change in changes:
        say(change.title)
        try:
            if change.kind == "file":
                _change_file(change, system, run)
            elif change.kind == "package":
                _record(CommandRecord(change.kind, change.title, change.argv, run=run), system)
                packages.install(system, change.argv, say)
            elif change.kind == "command":
                _run_command(change, system, run)
            else:
                _run_daemon(change, system, run)
        except AvahiGpuError as fault:
            done = f"done before it: {'; '.join(c.title for c in made)}; avahi-gpu undo --last takes it back"
            raise ChangeFailed(
                f"could not {change.title}: {fault.message}",
                ". ".join(part for part in (fault.hint, done if made else "") if part),
            ) from fault
        made.append(change)
    return made


def read_journal(system: System) -> tuple[list[Record], list[int]]:
    """Return the records and the numbers of lines that are none. Raises ChangeFailed if it is unreadable."""
    pages = read_pages(system)
    return list(pages.records), list(pages.broken)


def read_pages(system: System) -> Pages:
    """Return what the journal holds. Raises ChangeFailed if it is unreadable."""
    state = system.read(JOURNAL, MAX_BYTES)
    if state.link_target is not None:
        raise ChangeFailed(
            f"{JOURNAL} is a link to {state.link_target}", "it was not avahi-gpu that made it: move it away"
        )
    if state.content is None and state.error != os.strerror(errno.ENOENT):
        hint = "look at what is there: it should be a file that only root may read, or nothing"
        raise ChangeFailed(
            f"cannot read {JOURNAL}: {state.error}", hint if system.is_root else "run it as root"
        )
    if system.is_whole and (state.uid or (state.mode or 0) & OTHERS_WRITE):
        raise ChangeFailed(
            f"{JOURNAL} is not root's alone: whoever may write it would have root run commands",
            "look at what it holds, and who made it; then move it away",
        )
    return decode_pages(state.content or b"")


def tidy(system: System) -> list[str]:
    """Clear away what a run left behind that was killed; return the paths of files that were half written.

    Those are as they were before that run then. Call it inside ``locked``.
    """
    records = read_pages(system).records
    mended = []
    for restore in half_done(records, system.read):
        _put_back(restore, system, last_run(records) or "")
        mended.append(restore.path)
    for path in {r.path for r in records if isinstance(r, FileRecord)}:
        system.sweep(path)
    if system.is_absent(JOURNAL):
        system.remove_folder(STATE_FOLDER)  # an undo that was killed at its very end
    return mended


def read_debts(system: System) -> list[DebtRecord]:
    """Return what daemons still have to be told of what was written; nothing where nobody may read it."""
    try:
        return open_debts(read_pages(system).records, boot_id(system))
    except ChangeFailed:
        return []


def owe(debts: Sequence[DebtRecord], system: System) -> None:
    """Remember what is to be run after the changes that are made next."""
    known = read_debts(system)
    for debt in debts:
        if not any((d.argv, d.run) == (debt.argv, debt.run) for d in known):
            _record(debt, system)


def plan_undo(system: System, *, last: bool = False) -> Unwinding:
    """Return what undoing would come to now; with ``last`` that of the last run alone.

    Raises ChangeFailed where a later version of this program made changes.
    """
    pages = read_pages(system)
    if pages.later:
        raise ChangeFailed(
            f"{JOURNAL} holds changes that a later version of avahi-gpu made",
            "undo them with that version; nothing was changed now",
        )
    return unwind(pages.records, system.read, last_run(pages.records) if last else None)


def undo(unwinding: Unwinding, system: System, say: Say = lambda _: None) -> Undone:
    """Put back what ``plan_undo`` told, going on where one step fails. Call it inside ``locked``."""
    failed: list[AvahiGpuError] = []
    restored: list[Step] = []
    stuck: list[CommandRecord] = []
    kept = list(unwinding.kept)
    gone: list[CommandRecord] = []
    for step in unwinding.steps:
        if isinstance(step, Restore) and system.read(step.path).content != step.current:
            kept.append(step.path)  # edited while we were asking
            continue
        if isinstance(step, Reversal) and not in_force(step.record, system):
            gone.append(step.record)
            continue
        if isinstance(step, Reversal) and restarts_avahi(step.record) and not daemons.would_start(system):
            continue  # it runs, and would not with the file that is back
        say(step.change.title)
        try:
            with held():
                take_step(step, max(unwinding.runs, default=""), system)
        except ChangeFailed as fault:
            if isinstance(step, Reversal) and step.record.may_be_void:
                gone.append(step.record)
                continue
            failed.append(fault)
            if isinstance(step, Reversal):
                stuck.append(step.record)
        else:
            restored.append(step)
    for record in read_journal(system)[0]:
        if isinstance(record, FileRecord):
            system.sweep(record.path)
    left_folders = [path for path in unwinding.folders if not system.remove_folder(path)]
    paths = {s.path for s in restored if isinstance(s, Restore)}
    with held():
        _close_journal(system, unwinding.runs, paths, left_folders, stuck)
    return Undone(tuple(restored), tuple(kept), tuple(gone), tuple(left_folders), tuple(failed))


def take_step(step: Step, run: str, system: System) -> None:
    """Put one file back, or take back what one command did. Raises ChangeFailed."""
    if isinstance(step, Restore):
        _put_back(step, system, run)
    elif in_force(step.record, system):
        _take_back(step.record, system)
    else:
        _record(ReversalRecord(step.record.argv, run=step.record.run), system)


def pay(debts: Sequence[DebtRecord], system: System) -> None:
    """Remember that nothing of this is owed any more."""
    for debt in debts:
        _record(PaymentRecord(debt.argv, run=debt.run), system)


def _change_file(change: Change, system: System, run: str) -> None:
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
        _make_folder(PurePosixPath(state.link_target or change.path).parent, system, run)
    # the file behind a link, not the link: undo must not take the user's link for a file of ours
    real = state.link_target or change.path
    record = FileRecord(real, before, digest(change.content), run=run)
    _record(record, system)
    if change.content is None:
        system.remove(change.path)
    else:
        again = msgspec.structs.replace(record, rewritten=change.content)
        system.write(change.path, change.content, change.mode, before_rewrite=lambda: _record(again, system))


def _make_folder(folder: PurePosixPath, system: System, run: str) -> None:
    missing: list[PurePosixPath] = []
    while not system.is_folder(folder):
        missing.append(folder)
        folder = folder.parent
    for one in reversed(missing):
        _record(FolderRecord(str(one), run=run), system)
        system.make_folder(one)


def _run_command(change: Change, system: System, run: str) -> None:
    boot = boot_id(system) if change.until_boot else ""
    record = CommandRecord(
        change.kind,
        change.title,
        change.argv,
        run=run,
        undo=change.undo,
        verify=change.verify,
        boot=boot,
        rewrites=rewrites.look_before(change.rewrites, system),
    )
    _record(record, system)
    done = system.run(change.argv, COMMAND_S)
    if not done.ok:
        raise ChangeFailed(f"{shlex.join(change.argv)}: {done.reason}")
    record = msgspec.structs.replace(record, done=True, rewrites=rewrites.look_after(record.rewrites, system))
    if change.undo:
        _record(record, system)
    if change.verify and not (seen := system.run(change.verify, COMMAND_S)).ok:
        if change.undo:
            _take_back(record, system)
        raise ChangeFailed(
            f"{shlex.join(change.argv)} ended well, and changed nothing: "
            f"{shlex.join(change.verify)} says {seen.reason}"
        )


def in_force(record: CommandRecord, system: System) -> bool:
    """Return whether what a command did is still there, as far as anybody can tell."""
    removed = record.change == "daemon" and daemons.is_removed(system, record.undo)
    if removed or (record.boot and record.boot != boot_id(system)):
        return False
    if HANDLE in record.undo:
        return find_handle(system, record.argv) is not None
    if not record.verify:
        return True
    seen = system.run(record.verify, COMMAND_S)
    # what nobody can tell is not gone: to take it back fails then too, and is tried again another time
    return seen.ok or seen.returncode in CANNOT_TELL


def _take_back(record: CommandRecord, system: System) -> None:
    handle = find_handle(system, record.argv) if HANDLE in record.undo else ""
    if handle is None:
        raise ChangeFailed(f"nobody knows the rule of: {shlex.join(record.argv)}", "take it back by hand")
    argv = [handle if word == HANDLE else word for word in record.undo]
    files = rewrites.untouched(record.rewrites, system)
    daemon = record.change == "daemon"
    done = system.start_daemon(argv) if daemon else system.run(argv, COMMAND_S)
    if not done.ok:
        raise ChangeFailed(
            f"could not take back: {record.title}: {done.reason}", f"do it by hand: {shlex.join(argv)}"
        )
    rewrites.put_back(files, system)
    _record(ReversalRecord(record.argv, run=record.run), system)


def boot_id(system: System) -> str:
    """Return the id of this boot, '' where the kernel tells none."""
    return (system.read(BOOT_ID).content or b"").decode("ascii", "replace").strip()


def _run_daemon(change: Change, system: System, run: str) -> None:
    record = CommandRecord(
        change.kind, change.title, change.argv, run=run, undo=change.undo, verify=change.verify
    )
    _record(record, system)
    done = system.start_daemon(change.argv)
    if not done.ok:
        raise ChangeFailed(
            f"{' '.join(change.argv)}: {done.reason}", "its log tells more (journalctl, or syslog)"
        )
    pay(paid_by(change, read_debts(system)), system)
    if change.undo:
        _record(msgspec.structs.replace(record, done=True), system)


def _record(record: Record, system: System) -> None:
    system.make_folder(STATE_FOLDER, STATE_MODE)
    content = system.read(JOURNAL, MAX_BYTES).content or b""
    # a crash can have cut the last line short: the next one must not hang on to it
    gap = b"" if content.endswith(b"\n") or not content else b"\n"
    system.append(JOURNAL, gap + encode_record(record))


def _put_back(restore: Restore, system: System, run: str) -> None:
    before = restore.before
    content = before.content
    if content is None:
        system.remove(restore.path)
        return

    def tell() -> None:
        state = system.read(restore.path)
        now = Before(state.content, state.mode or 0, state.uid or 0, state.gid or 0)
        _record(FileRecord(restore.path, now, digest(content), run=run, rewritten=content), system)

    system.write(restore.path, content, before.mode, before.uid, before.gid, before_rewrite=tell)


def _close_journal(
    system: System,
    runs: frozenset[str],
    restored: set[str],
    left_folders: Sequence[str],
    stuck: Sequence[CommandRecord],
) -> None:
    """Keep of these runs only what could not be undone; in a journal without any record, remove it."""
    pages = read_pages(system)
    records = pages.records
    ours = [r for r in records if r.run in runs]
    still = unwind(ours, system.read)
    open_paths = {*still.kept, *(r.path for r in still.restores)} - restored
    waits = any(isinstance(r, FileRecord) and r.path in open_paths for r in ours)
    # empty, and yet it could not be removed: the next undo tries again
    stubborn = [path for path in left_folders if not system.list_folder(path)]
    remaining = [
        r
        for r in records
        if r.run not in runs
        or (isinstance(r, FileRecord) and r.path in open_paths)
        or (isinstance(r, FolderRecord) and r.path in left_folders and (waits or r.path in stubborn))
        or r in stuck
    ]
    if remaining or pages.foreign:
        lines = [*(line.strip() + b"\n" for line in pages.foreign), *map(encode_record, remaining)]
        system.write(JOURNAL, b"".join(lines), 0o600)
    else:
        system.remove(JOURNAL)
        system.remove_folder(STATE_FOLDER)


def note(record: Record, system: System) -> None:
    """Add a record, on the disk when this returns. Call it inside ``locked``."""
    _record(record, system)
