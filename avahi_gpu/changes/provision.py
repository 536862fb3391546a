"""Change the machine step by step, reading it again after each: what one step brings along is seen."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timezone

from avahi_gpu.changes import journal
from avahi_gpu.changes.debts import as_findings, debts_of, not_settled, owing
from avahi_gpu.changes.lock import locked
from avahi_gpu.changes.plan import (
    AVAHI,
    RUNNING,
    Judge,
    daemon_of,
    next_step,
    plan,
    starts_avahi,
    without,
)
from avahi_gpu.changes.rollback import roll_back
from avahi_gpu.errors import ChangeFailed
from avahi_gpu.host import avahi_log
from avahi_gpu.host.interruption import held
from avahi_gpu.host.system import System
from avahi_gpu.model import Change, Facts, Finding

MAX_STEPS = 10  # packages, files and daemons, each again where one brought the next to light
# avahi-daemon claims its name in a second, and in two where that is taken; the rest is for a busy machine
UP_WITHIN_S = 15.0
ASK_AGAIN_S = 0.3
# Avahi's states of a server that claims its name (avahi-common/defs.h)
CLAIMING = (1, 3)

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

    Where avahi-daemon does not come up with a configuration that was written for it, that is taken back, and
    ChangeFailed tells so.
    """
    # two runs never share a microsecond
    run = _Run(system, read, made, f"{command} {datetime.now(timezone.utc).isoformat()}", say)
    refused: list[Change] = []

    def next_changes(facts: Facts) -> list[Change]:
        # what is owed comes first: it has its own way back
        findings = [*unsettled(system, facts, run.name), *judge(facts)]
        # what was made and is asked for again did not help: a finding will say so
        return next_step(without(plan(findings), [*in_vain(made), *refused]))

    with locked(system, say) as waited:
        if tidy(system, say) or waited:
            facts = read(facts)
        for _ in range(MAX_STEPS):
            step = next_changes(facts)
            if not step and facts.daemon.server_state in CLAIMING:
                facts = run.wait_until_up(facts)  # some questions make sense only then
                step = next_changes(facts)
            approved = approve(step) if step else None
            if approved is None:
                break
            refused += without(step, approved)
            now, boot = time.time(), journal.boot_id(system)
            findings = [*unsettled(system, facts, run.name), *judge(facts)]
            journal.owe(debts_of(owing(findings, approved), now, boot, run.name), system)
            if approved:
                facts = run.take(approved, facts)
    return facts


@dataclass(frozen=True)
class _Run:
    """One run: what it was told, and what it has made so far."""

    system: System
    read: Read
    made: list[Change]
    name: str  # in the journal
    say: Say

    def take(self, step: Sequence[Change], facts: Facts) -> Facts:
        """Make the changes of a step; return the facts after it."""
        starts = any(starts_avahi(change) for change in step)
        runs = self._untried(facts.avahi_conf.path) if starts else []
        since = time.time()
        try:
            for change in step:
                # a package manager takes minutes, and is told itself where it is to end
                with nullcontext() if change.kind == "package" else held():
                    self.made.extend(journal.apply([change], self.system, self.say, self.name))
        except ChangeFailed as fault:
            if not runs or change.kind != "daemon":
                raise
            raise self._roll_back(facts.avahi_conf.path, runs, since, fault.message) from fault
        facts = self.read(facts)
        if starts:
            facts = self.wait_until_up(facts)
        if runs and not _is_up(facts):
            reason = f"it was not ready within {UP_WITHIN_S:g} s"
            raise self._roll_back(facts.avahi_conf.path, runs, since, reason)
        return facts

    def wait_until_up(self, facts: Facts) -> Facts:
        """Read until avahi-daemon runs and has its name, or patience ends."""
        deadline = time.monotonic() + UP_WITHIN_S
        while not _is_up(facts) and facts.daemon.bus_reachable and time.monotonic() < deadline:
            time.sleep(ASK_AGAIN_S)
            facts = self.read(facts)
        return facts

    def _untried(self, conf: str) -> list[str]:
        """Return the runs that wrote a configuration which the daemon has not been started with yet."""
        owing_runs = {d.run for d in journal.read_debts(self.system) if daemon_of(d.argv) == AVAHI}
        if any(change.path == conf for change in self.made):
            owing_runs.add(self.name)
        return sorted(owing_runs, reverse=True)

    def _roll_back(self, conf: str, runs: Sequence[str], since: float, reason: str) -> ChangeFailed:
        """Put the configuration back, start the daemon with it where it ran, and return what to tell."""
        told = avahi_log.read_complaint(self.system, since) or reason
        with held():
            failed = roll_back(conf, runs, self.system, self.say)
        self.made[:] = [c for c in self.made if c.path != conf and daemon_of(c.argv) != AVAHI]
        done = "; ".join(change.title for change in self.made)
        hints = [
            *(f"{fault.message}: {fault.hint}" for fault in failed),
            *(() if failed else (f"{conf} is as it was, and avahi-daemon runs as it did before",)),
            *((f"done before it: {done}; avahi-gpu undo --last takes it back",) if done else ()),
        ]
        return ChangeFailed(
            f"avahi-daemon does not come up with the new {conf}, which was taken back: {told}",
            ". ".join(hints),
        )


def _is_up(facts: Facts) -> bool:
    return facts.daemon.on_bus and facts.daemon.server_state == RUNNING


def recover(system: System, say: Say = lambda _: None) -> None:
    """Put right what a run left behind that was killed: a half-written file must not be what is judged."""
    if system.is_root and not system.is_absent(journal.JOURNAL):
        with locked(system, say):
            tidy(system, say)


def tidy(system: System, say: Say) -> bool:
    """Do so within the lock; return whether a file was half written."""
    mended = journal.tidy(system)
    for path in mended:
        say(f"{path} was half written when an earlier run was cut off: it is as it was before that")
    return bool(mended)


def unsettled(system: System, facts: Facts, run: str = "") -> list[Finding]:
    """Return what daemons still have to be told: by this run, or by one that was cut short, as findings."""
    debts = journal.read_debts(system)
    ours = [debt for debt in debts if debt.run == run]
    return as_findings([*ours, *not_settled([d for d in debts if d not in ours], facts)])


def in_vain(made: Sequence[Change]) -> list[Change]:
    """Return what need not be made again; a restart before the last file was written is none of that."""
    last = max((n for n, change in enumerate(made) if change.kind in ("file", "command")), default=-1)
    return [change for n, change in enumerate(made) if change.kind != "daemon" or n > last]
