"""The lines of the journal, and what undoing them comes to. Pure.

Each record names the run of ``setup`` or ``doctor --fix`` that it is of, '' in journals from before runs had
names.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from avahi_gpu.model import Change, FileState

RECORD_VERSION = 1
# every line begins with it, and no string within one holds it: there its quotes have a backslash before them
_MARK = b'{"kind":"'
BLOCK_BYTES = 512  # what a disk writes whole, or not at all


class Before(msgspec.Struct, frozen=True):
    """A file before it was changed; ``content`` None: there was none."""

    content: bytes | None
    mode: int = 0o644
    uid: int = 0
    gid: int = 0


class FileRecord(msgspec.Struct, frozen=True, tag="file", tag_field="kind"):
    """A file was, or was about to be, changed. ``after`` is the new content's SHA-256, '' for removed.

    ``rewritten``: the new content, where the file is written in place and a power cut can leave it half done.
    """

    path: str
    before: Before
    after: str
    version: int = RECORD_VERSION
    run: str = ""
    rewritten: bytes | None = None


class FolderRecord(msgspec.Struct, frozen=True, tag="folder", tag_field="kind"):
    """A folder was made."""

    path: str
    version: int = RECORD_VERSION
    run: str = ""


class Rewritten(msgspec.Struct, frozen=True):
    """A file that a program may rewrite, as it was before. ``after`` counts once it was ``seen``."""

    path: str
    before: Before
    after: str = ""  # as in a FileRecord
    seen: bool = False


class CommandRecord(msgspec.Struct, frozen=True, tag="command", tag_field="kind"):
    """A program was, or was about to be, run: undo runs ``undo``, or leaves what it did and says so.

    Without ``undo``: packages were installed, a daemon was started. With it there are two records, before and
    after the program ran; the second one is ``done``, and its ``undo`` is the one that counts.
    """

    change: str  # the kind of the change: package, command or daemon
    title: str
    argv: tuple[str, ...]
    version: int = RECORD_VERSION
    run: str = ""
    undo: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    boot: str = ""  # the id of the boot with which it ends, '' where it lasts
    done: bool = False
    rewrites: tuple[Rewritten, ...] = ()

    @property
    def may_be_void(self) -> bool:
        """Whether a crash kept us from knowing what it did, so that there may be nothing to take back."""
        return not self.done and self.change != "daemon"


class ReversalRecord(msgspec.Struct, frozen=True, tag="reversal", tag_field="kind"):
    """What a done command did was taken back: an undo that is cut short does not do it twice."""

    argv: tuple[str, ...]  # of the command
    version: int = RECORD_VERSION
    run: str = ""


class DebtRecord(msgspec.Struct, frozen=True, tag="debt", tag_field="kind"):
    """Files are about to be changed that a daemon reads when it starts: ``argv`` is still to be run then.

    ``at``: when, by the clock that stamps files. ``boot``: a debt ends with its boot.
    """

    title: str
    argv: tuple[str, ...]
    finding: str  # the id of the finding whose fix it is a part of
    at: float
    boot: str
    version: int = RECORD_VERSION
    run: str = ""
    undo: tuple[str, ...] = ()


class PaymentRecord(msgspec.Struct, frozen=True, tag="payment", tag_field="kind"):
    """What was owed has been run."""

    argv: tuple[str, ...]
    version: int = RECORD_VERSION
    run: str = ""


Record = FileRecord | FolderRecord | CommandRecord | ReversalRecord | DebtRecord | PaymentRecord


@dataclass(frozen=True)
class Pages:
    """A journal as it is read."""

    records: tuple[Record, ...]
    broken: tuple[int, ...]  # numbers of the lines that are not wholly records of ours
    foreign: tuple[bytes, ...]  # what of them no crash of ours can have left: kept as it is
    later: bool  # whether a later version of this program wrote some of them


@dataclass(frozen=True)
class Restore:
    """One file to put back. ``before.content`` None: it is removed."""

    path: str
    before: Before
    current: bytes | None

    @property
    def change(self) -> Change:
        """The same as a change, for its diff."""
        title = f"remove {self.path}" if self.before.content is None else f"put {self.path} back"
        return Change("file", title, self.path, self.before.content, self.before.mode, before=self.current)


@dataclass(frozen=True)
class Reversal:
    """What one command did, to be taken back."""

    record: CommandRecord

    @property
    def change(self) -> Change:
        """The same as a change, for people."""
        again = self.record.change == "daemon" and self.record.argv == self.record.undo
        title = f"{self.record.title}, as it was before" if again else f"take back: {self.record.title}"
        return Change("command", title, argv=self.record.undo)


Step = Restore | Reversal


@dataclass(frozen=True)
class Unwinding:
    """What undoing a journal, or one run of it, comes to."""

    steps: tuple[Step, ...]  # the latest change first, but daemons last: they read the files when they start
    kept: tuple[str, ...]  # paths that somebody edited since: left alone
    folders: tuple[str, ...]  # made by us, innermost first
    stays: tuple[CommandRecord, ...]
    runs: frozenset[str]  # whose records these are

    @property
    def restores(self) -> tuple[Restore, ...]:
        return tuple(s for s in self.steps if isinstance(s, Restore))


def digest(content: bytes | None) -> str:
    """Return the SHA-256 of a content in hex, '' for a missing file."""
    return "" if content is None else hashlib.sha256(content).hexdigest()


def encode_record(record: Record) -> bytes:
    """Return the record as one line of JSON; bytes as base64."""
    return msgspec.json.encode(record) + b"\n"


def decode_pages(content: bytes) -> Pages:
    """Return what a journal holds.

    A line cut short by a crash was written before its change was made, so leaving it out is right; what was
    appended to it without a break between them is found all the same.
    """
    records: list[Record] = []
    broken: list[int] = []
    foreign: list[bytes] = []
    later = False
    for number, line in enumerate(content.split(b"\n"), 1):
        for part in re.split(b"(?=" + re.escape(_MARK) + b")", line):
            record = _decode(part)
            if isinstance(record, RECORDS) and record.version == RECORD_VERSION:
                records.append(record)
            elif part.strip():
                broken += [number] if number not in broken else []
                later = later or record is not None
                foreign += [] if record is None and _is_torn(part) else [part]
    return Pages(tuple(records), tuple(broken), tuple(foreign), later)


def decode_records(content: bytes) -> tuple[list[Record], list[int]]:
    """Return the records of a journal and the numbers of the lines that are not wholly records of ours."""
    pages = decode_pages(content)
    return list(pages.records), list(pages.broken)


class _Unknown(msgspec.Struct, frozen=True):
    kind: str
    version: int


RECORDS = (FileRecord, FolderRecord, CommandRecord, ReversalRecord, DebtRecord, PaymentRecord)


def _decode(part: bytes) -> Record | _Unknown | None:
    """Return the record, what a later version may have written, or None for what is none."""
    try:
        return msgspec.json.decode(part, type=Record)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError):
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return msgspec.json.decode(part, type=_Unknown)
        return None


def _is_torn(part: bytes) -> bool:
    """Whether a crash can have left it: the beginning of a record, or a block that never reached the disk."""
    begun = part.startswith(_MARK) or _MARK.startswith(part)
    return (begun and part.count(b"{") > part.count(b"}")) or b"\0" in part


def is_half_done(current: bytes, old: bytes, new: bytes) -> bool:
    """Whether a file that was rewritten in place is neither ``old`` nor ``new``, but made of parts of both.

    A file that somebody edited holds something else; blank lines at its end apart.
    """
    length = max(len(old), len(new))
    if current in (old, new) or len(current) > length:
        return False
    texts = [text.ljust(length, b"\n") for text in (current, old, new)]
    blocks = ([t[at : at + BLOCK_BYTES] for t in texts] for at in range(0, length, BLOCK_BYTES))
    return all(block in (one, other, bytes(len(block))) for block, one, other in blocks)


def half_done(records: Sequence[Record], read: Callable[[str], FileState]) -> list[Restore]:
    """Return the files that a power cut left half done, with what each was before."""
    last = {r.path: r for r in records if isinstance(r, FileRecord)}
    found = []
    for record in last.values():
        content = read(record.path).content
        old, new = record.before.content, record.rewritten
        if None not in (content, old, new) and is_half_done(content or b"", old or b"", new or b""):
            found.append(Restore(record.path, record.before, content))
    return found


def last_run(records: Sequence[Record]) -> str | None:
    """Return the run of the latest record, None in an empty journal."""
    return records[-1].run if records else None


def unwind(records: Sequence[Record], read: Callable[[str], FileState], run: str | None = None) -> Unwinding:
    """Walk the journal backwards and return what brings the machine to where it was before the first record.

    With ``run`` the records of that run alone count. A file that is neither as we left it nor as it was
    before has been edited since: it is kept. One that is missing may come back: nobody's work is lost.
    """
    records = [r for r in records if run is None or r.run == run]
    steps: list[Step] = []
    kept: list[str] = []
    files = [r for r in records if isinstance(r, FileRecord)]
    commands = iter(_open_commands(records))
    awaited = next(commands, None)
    seen: set[str] = set()
    for record in reversed(records):
        if isinstance(record, CommandRecord) and record is awaited:
            steps.append(Reversal(record))
            awaited = next(commands, None)
        if not isinstance(record, FileRecord) or record.path in seen:
            continue
        path = record.path
        seen.add(path)
        state = read(path)
        current = Before(state.content, state.mode or 0)
        target = _walk_back(current, [r for r in files if r.path == path])
        if target is None or (state.exists and state.content is None):
            kept.append(path)
        elif not _same(current, target):
            steps.append(Restore(path, target, state.content))
    folders = [r.path for r in reversed(records) if isinstance(r, FolderRecord)]
    steps = _daemons_last(steps)
    return Unwinding(
        tuple(steps),
        tuple(kept),
        tuple(dict.fromkeys(folders)),
        tuple(r for r in records if isinstance(r, CommandRecord) and not r.undo),
        frozenset(r.run for r in records),
    )


def _daemons_last(steps: Sequence[Step]) -> list[Step]:
    """Put what is done to daemons last, for they read the files as they start; several restarts are one."""
    rest: list[Step] = []
    last: dict[tuple[str, ...], Step] = {}
    for step in steps:
        if isinstance(step, Reversal) and step.record.change == "daemon":
            last.setdefault(step.record.undo, step)
        else:
            rest.append(step)
    return [*rest, *last.values()]


def _open_commands(records: Sequence[Record]) -> list[CommandRecord]:
    """Return the commands that are to be taken back, the latest first, each by its latest record."""
    opened: list[CommandRecord] = []
    told: Counter[tuple[str, ...]] = Counter()  # done records whose first one has not been met yet
    reversed_already: Counter[tuple[str, ...]] = Counter()
    for record in reversed(records):
        if isinstance(record, ReversalRecord):
            reversed_already[record.argv] += 1
        elif isinstance(record, CommandRecord) and record.undo:
            if record.done:
                told[record.argv] += 1
            elif told[record.argv]:
                told[record.argv] -= 1
                continue
            if reversed_already[record.argv]:
                reversed_already[record.argv] -= 1
            else:
                opened.append(record)
    return opened


def _walk_back(current: Before, records: Sequence[FileRecord]) -> Before | None:
    """Return what the file was before the records, None where it has been edited since the last of them.

    Where somebody edited it between two of them, that edit is what comes back.
    """
    came_from: Before | None = None
    for record in reversed(records):
        here = came_from or current
        # the first of the two: the change never came to be, or is undone already
        if _same(here, record.before) or here.content is None or digest(here.content) == record.after:
            came_from = record.before
        elif came_from is not None:
            break
        # else: an undo that was cut short may have gone further back than this record
    return came_from


def _same(one: Before, other: Before) -> bool:
    return one.content == other.content and (one.content is None or one.mode == other.mode)
