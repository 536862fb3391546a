"""Change the machine step by step, reading it again after each: what one step brings along is seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from avahi_gpu.changes import journal
from avahi_gpu.changes.change import same
from avahi_gpu.changes.plan import Judge, next_step, plan, whole, without
from avahi_gpu.host.system import System
from avahi_gpu.model import Change, Facts, Finding, Fix

MAX_STEPS = 8  # packages, files and daemons, each again where one brought the next to light

Read = Callable[[Facts], Facts]
Approve = Callable[[Sequence[Change]], "Sequence[Change] | None"]
Say = Callable[[str], None]


def provision(
    facts: Facts,
    *,
    judge: Judge,
    read: Read,
    approve: Approve,
    system: System,
    made: list[Change],
    command: str,
    say: Say = lambda _: None,
) -> Facts:
    """Make what the findings of ``judge`` ask for until they ask for nothing new; return the last facts.

    ``read`` gets the facts before a step and returns those after it. ``approve`` is asked before each step
    with its changes, and returns those that may be made; None ends the work. What was made is added to
    ``made``, which is right also where this raises ChangeFailed. A package may write the very file that was
    to be changed next, so nothing is done from an old plan. ``command`` names the run in the journal.
    """
    run = f"{command} {datetime.now(timezone.utc).isoformat()}"  # two runs never share a microsecond
    refused: list[Change] = []
    owed: list[Finding] = []
    with journal.locked(system):
        for _ in range(MAX_STEPS):
            # what was made and is asked for again did not help: a finding will say so
            findings = [*judge(facts), *owed]
            step = next_step(whole(without(plan(findings), [*in_vain(made), *refused])))
            approved = approve(step) if step else None
            if approved is None:
                break
            refused += without(step, approved)
            owed += owing(findings, approved)
            for change in approved:
                made += journal.apply([change], system, say, run)
            if approved:
                facts = read(facts)
    return facts


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


def in_vain(made: Sequence[Change]) -> list[Change]:
    """Return what need not be made again; a restart before the last file was written is none of that."""
    last = max((n for n, change in enumerate(made) if change.kind in ("file", "command")), default=-1)
    return [change for n, change in enumerate(made) if change.kind != "daemon" or n > last]
