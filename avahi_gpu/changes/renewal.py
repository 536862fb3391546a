"""Renew a file at every boot: undo gives back what was there first all the same, and no journal grows."""

from __future__ import annotations

import msgspec

from avahi_gpu.changes import journal
from avahi_gpu.changes.record import Before, FileRecord, Record, digest, encode_record
from avahi_gpu.errors import ChangeFailed
from avahi_gpu.host.system import System
from avahi_gpu.model import FileState


def find_records(system: System, state: FileState) -> list[FileRecord]:
    """Return the journal's records of a file, the latest last. Raises ChangeFailed where it is unreadable."""
    real = state.link_target or state.path
    return [r for r in journal.read_journal(system)[0] if isinstance(r, FileRecord) and r.path == real]


def is_ours(state: FileState, records: list[FileRecord]) -> bool:
    """Whether the file is as one of us wrote it: who has edited it since would lose that."""
    return state.content is not None and any(digest(state.content) == r.after for r in records)


def renew(system: System, state: FileState, content: bytes) -> None:
    """Give a file that ``is_ours`` another content, as part of the run that wrote it last.

    Killed at any moment, undo and the next renewal go on from there: the new record is made before the write,
    and becomes one with the earlier ones after it. Call it inside ``locked``. Raises ChangeFailed.
    """
    records = find_records(system, state)
    if not is_ours(state, records):
        raise ChangeFailed(f"{state.path} is not as we left it", "it is kept")
    before = Before(state.content, state.mode or 0, state.uid or 0, state.gid or 0)
    record = FileRecord(records[-1].path, before, digest(content), run=records[-1].run)
    journal.note(record, system)
    rewrites = msgspec.structs.replace(record, rewritten=content)
    system.write(state.path, content, before_rewrite=lambda: journal.note(rewrites, system))
    everything, broken = journal.read_journal(system)
    if not broken:  # what cannot be read is not ours to leave out
        merged = merge(everything, record.path, record.run)
        system.write(journal.JOURNAL, b"".join(map(encode_record, merged)), 0o600)


def merge(records: list[Record], path: str, run: str) -> list[Record]:
    """Return the records with those of one file in one run as one: from what it was first to what it is."""
    ours = [r for r in records if isinstance(r, FileRecord) and (r.path, r.run) == (path, run)]
    merged = msgspec.structs.replace(ours[-1], before=ours[0].before)
    return [merged if r is ours[0] else r for r in records if r is ours[0] or r not in ours]
