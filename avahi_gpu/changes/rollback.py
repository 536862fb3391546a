"""Put avahi-daemon.conf back where the daemon does not come up with what was written there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from avahi_gpu.changes import journal
from avahi_gpu.changes.plan import AVAHI, daemon_of
from avahi_gpu.changes.record import CommandRecord, FileRecord, Record, ReversalRecord, unwind
from avahi_gpu.errors import AvahiGpuError, ChangeFailed
from avahi_gpu.host.system import System


def roll_back(
    path: str, runs: Sequence[str], system: System, say: Callable[[str], None] = lambda _: None
) -> list[AvahiGpuError]:
    """Put the file back as it was before these runs, and start the daemon as it was started then.

    The rest of the runs stays. Returns why a step could not be taken. The journal stays as well: where this
    is killed, undo or the next run completes it. Call it inside ``locked``.
    """
    records = [r for r in journal.read_journal(system)[0] if r.run in runs and _belongs(r, path)]
    failed: list[AvahiGpuError] = []
    for step in unwind(records, system.read).steps:
        say(step.change.title)
        try:
            journal.take_step(step, runs[0], system)
        except ChangeFailed as fault:
            failed.append(fault)
    debts = journal.read_debts(system)
    journal.pay([d for d in debts if d.run in runs and daemon_of(d.argv) == AVAHI], system)
    return failed


def _belongs(record: Record, path: str) -> bool:
    """Whether a record is of this file, or of the daemon itself."""
    if isinstance(record, FileRecord):
        return record.path == path
    return isinstance(record, CommandRecord | ReversalRecord) and daemon_of(record.argv) == AVAHI
