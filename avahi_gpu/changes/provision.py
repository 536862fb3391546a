"""Change the machine step by step, reading it again after each: what one step brings along is seen."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import datetime, timezone

from avahi_gpu.changes import journal
from avahi_gpu.changes.debts import as_findings, debts_of, not_settled, owing
from avahi_gpu.changes.lock import locked
from avahi_gpu.changes.plan import Judge, next_step, plan, whole, without
from avahi_gpu.host.interruption import held
from avahi_gpu.host.system import System
from avahi_gpu.model import Change, Facts, Finding

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
    with locked(system, say) as waited:
        mended = journal.tidy(system)
        for path in mended:
            say(f"{path} was half written when an earlier run was cut off: it is as it was before that")
        if waited or mended:
            facts = read(facts)
        for _ in range(MAX_STEPS):
            findings = [*judge(facts), *unsettled(system, facts, run)]
            # what was made and is asked for again did not help: a finding will say so
            step = next_step(whole(without(plan(findings), [*in_vain(made), *refused])))
            approved = approve(step) if step else None
            if approved is None:
                break
            refused += without(step, approved)
            now, boot = time.time(), journal.boot_id(system)
            journal.owe(debts_of(owing(findings, approved), now, boot, run), system)
            for change in approved:
                # a package manager takes minutes, and is told itself where it is to end
                with nullcontext() if change.kind == "package" else held():
                    made += journal.apply([change], system, say, run)
            if approved:
                facts = read(facts)
    return facts


def unsettled(system: System, facts: Facts, run: str = "") -> list[Finding]:
    """Return what daemons still have to be told: by this run, or by one that was cut short, as findings."""
    debts = journal.read_debts(system)
    ours = [debt for debt in debts if debt.run == run]
    return as_findings([*ours, *not_settled([d for d in debts if d not in ours], facts)])


def in_vain(made: Sequence[Change]) -> list[Change]:
    """Return what need not be made again; a restart before the last file was written is none of that."""
    last = max((n for n, change in enumerate(made) if change.kind in ("file", "command")), default=-1)
    return [change for n, change in enumerate(made) if change.kind != "daemon" or n > last]
