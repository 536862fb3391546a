"""What daemons still have to be told once a file of theirs is written, also after a run cut short. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from avahi_gpu.changes.change import same
from avahi_gpu.changes.plan import AVAHI, daemon_of, is_start_line
from avahi_gpu.changes.record import CommandRecord, DebtRecord, PaymentRecord, Record
from avahi_gpu.model import Change, Facts, Finding, Fix

STARTED_WITHIN_S = 2.0  # when a process started is known to two seconds (host.avahi_process)


def owing(findings: Sequence[Finding], step: Sequence[Change]) -> list[Finding]:
    """Return what fixes of which this step is a part still need: a written file makes their findings well."""
    owed = []
    for finding in findings:
        changes = finding.fix.changes if finding.fix is not None else ()
        begun = any(same(change, one) for change in changes for one in step if one.kind != "daemon")
        restarts = tuple(change for change in changes if change.kind == "daemon")
        if begun and restarts:
            owed.append(replace(finding, fix=Fix(finding.fix.title if finding.fix else "", restarts)))
    return owed


def debts_of(owed: Sequence[Finding], at: float, boot: str, run: str) -> list[DebtRecord]:
    """Return the records of what is owed."""
    return [
        DebtRecord(
            change.title,
            change.argv,
            finding.id,
            at,
            boot,
            run=run,
            undo=change.undo,
        )
        for finding in owed
        for change in (finding.fix.changes if finding.fix is not None else ())
    ]


def open_debts(records: Sequence[Record], boot: str) -> list[DebtRecord]:
    """Return what is still owed in this boot: one for each command line, its latest."""
    owed: dict[tuple[str, ...], DebtRecord] = {}
    for record in records:
        if isinstance(record, DebtRecord) and record.boot == boot:
            owed[record.argv] = record
        elif isinstance(record, PaymentRecord):
            owed.pop(record.argv, None)
    return list(owed.values())


def paid_by(change: Change, debts: Sequence[DebtRecord]) -> list[DebtRecord]:
    """Return the debts that a daemon's start settles: it reads its files then, whoever asked for it."""
    if not is_start_line(change.argv):
        return []
    return [debt for debt in debts if daemon_of(debt.argv) == daemon_of(change.argv)]


def restarts_avahi(record: CommandRecord) -> bool:
    """Whether undoing a record restarts avahi-daemon, so that it reads its files as they are again."""
    return record.change == "daemon" and daemon_of(record.argv) == AVAHI and record.undo == record.argv


def not_settled(debts: Sequence[DebtRecord], facts: Facts) -> list[DebtRecord]:
    """Leave out what somebody else settled meanwhile: avahi-daemon has started since, or does not run."""
    process = next((p for p in facts.avahi.processes or () if p.pid == facts.daemon.pid), None)
    started = process.started if process is not None else None

    def is_settled(debt: DebtRecord) -> bool:
        if daemon_of(debt.argv) != AVAHI:
            return False
        if facts.daemon.pid is None:
            return True  # it reads its files when it is started
        return started is not None and started > debt.at + STARTED_WITHIN_S

    return [debt for debt in debts if not is_settled(debt)]


def as_findings(debts: Sequence[DebtRecord]) -> list[Finding]:
    """Return the debts as findings, whose fix is to settle them."""
    return [
        Finding(
            debt.finding,
            "not-in-force",
            "host",
            "error",
            f"what an earlier run wrote is not in force yet: it ended before it could {debt.title}",
            fix=Fix(debt.title, (Change("daemon", debt.title, argv=debt.argv, undo=debt.undo),)),
        )
        for debt in debts
    ]
