"""What ``doctor`` does: read, judge, mend where asked to, and tell."""

from __future__ import annotations

import io
import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import avahi_gpu.checks  # noqa: F401  registers them
from avahi_gpu.changes.plan import plan, plan_all, without
from avahi_gpu.checks.peers import restrict_peers
from avahi_gpu.checks.registry import all_checks, run_checks, select_checks
from avahi_gpu.checks.tracing import tell_story
from avahi_gpu.cli.consent import ask_for, demand_consent, demand_root
from avahi_gpu.cli.outcome import interruption
from avahi_gpu.cli.verdicts import FailOn, Format
from avahi_gpu.errors import AvahiGpuError, ChangeFailed, ExitCode, Misuse
from avahi_gpu.host.facts import read_facts
from avahi_gpu.host.interruption import heard
from avahi_gpu.host.limits import make_room
from avahi_gpu.host.memory import remember
from avahi_gpu.host.system import System
from avahi_gpu.model import Change, Facts, Finding, Fix, Story
from avahi_gpu.render.diff import show_changes
from avahi_gpu.render.findings import findings_data, show_findings
from avahi_gpu.render.progress import progress
from avahi_gpu.render.report import make_report
from avahi_gpu.render.text import console, printable, steady_console
from avahi_gpu.render.trace import show_stories, stories_data
from avahi_gpu.result import Result

if TYPE_CHECKING:
    from rich.console import Console

# avahi-daemon claims its host name, then its services, each in a second; twice that after a conflict
SETTLE_S = 8.0
SETTLE_AGAIN_S = 0.5
UNSETTLED = ("error", "unknown")
PEOPLE = range(1000, 60001)  # numbers of users who are people (UID_MIN and UID_MAX of login.defs(5))


@dataclass(frozen=True)
class Order:
    """What the command line asks for."""

    peers: tuple[str, ...]
    only: tuple[str, ...]
    ignore: tuple[str, ...]
    fix: bool
    yes: bool
    format: Format
    fail_on: FailOn
    python: str | None
    report: str | None
    verbose: bool = False
    deepspeed_config: str | None = None

    @property
    def out(self) -> Console:
        """Where words for people go: nowhere where a program reads."""
        return (steady_console if self.fix else console)(
            None if self.format is Format.text else io.StringIO()
        )


def diagnose(system: System, order: Order) -> Result:
    """Read, judge, mend where asked to, and tell. Raises what ends it early."""
    make_room()
    # what readers fail with is told as unread, or ends the program with a sentence; no words besides
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    doctor = Doctor(system, order)
    if order.fix:
        from avahi_gpu.changes.provision import recover  # loading it takes 20 ms

        recover(system, lambda text: order.out.print(f"… {printable(text)}"))
    facts = doctor.read(None)
    findings = doctor.judge(facts)
    show_stories(stories_of(facts), order.out)
    show_findings(findings, order.out, whole=order.verbose or bool(order.only), is_root=facts.is_root)
    errors: tuple[AvahiGpuError, ...] = ()
    if order.fix:
        facts, findings, errors = doctor.mend(facts, findings)
    return conclude(system, order, facts, findings, errors)


def conclude(
    system: System,
    order: Order,
    facts: Facts,
    findings: list[Finding],
    errors: tuple[AvahiGpuError, ...] = (),
) -> Result:
    """Write the report where one is wanted, and return what programs are told."""
    if order.report is not None:
        _write_report(system, order.report, make_report(findings, facts, _users(system), stories_of(facts)))
        order.out.print(f"report: {order.report}")
    verdicts = {"error"} if order.fail_on is FailOn.error else {"error", "warn"}
    failed = bool(errors) or any(f.verdict in verdicts for f in findings)
    code = ExitCode.FAILED if failed else ExitCode.FINE
    data = {**findings_data(findings), "trace": stories_data(stories_of(facts))}
    return Result("doctor", data, code, errors)


def stories_of(facts: Facts) -> list[Story]:
    """Return the way of each name that was asked about, in words."""
    return [tell_story(facts, trace) for trace in facts.names.traces or ()]


def load_the_rest() -> None:
    """Load what is needed once the facts are there: the wait for the LAN's answers is time enough."""
    import_module("avahi_gpu.files.service_template")
    import_module("rich.console")


@dataclass(frozen=True)
class Doctor:
    """One run of the command: what it reads and asks is settled by the order."""

    system: System
    order: Order

    def read(self, known: Facts | None) -> Facts:
        """Read all that the questions need; ``known`` spares what does not change."""
        order = self.order
        ignored = set(select_checks(order.ignore))
        asked = [c for c in select_checks(order.only) or all_checks() if c not in ignored]
        return self._read(known, with_peers=any(c.area == "cluster" for c in asked) or bool(order.peers))

    def read_this_machine(self, known: Facts | None) -> Facts:
        """Read what fixes depend on: none asks for other nodes, and listening for them takes long."""
        return self._read(known, with_peers=False)

    def _read(self, known: Facts | None, *, with_peers: bool) -> Facts:
        order = self.order
        pending: set[str] = set()
        stream = sys.stderr if order.format is Format.text else io.StringIO()
        with progress(stream, pending):
            facts = read_facts(
                self.system,
                python=order.python,
                with_peers=with_peers,
                wanted_peers=order.peers,
                deepspeed_config=str(Path(order.deepspeed_config).absolute())
                if order.deepspeed_config
                else "",
                known=known,
                meanwhile=load_the_rest,
                pending=pending,
            )
        remember(self.system, facts.peers or ())
        return restrict_peers(facts, order.peers)

    def judge(self, facts: Facts) -> list[Finding]:
        """Answer what was asked for."""
        return run_checks(facts, self.order.only, self.order.ignore)

    def mend(
        self, facts: Facts, findings: list[Finding]
    ) -> tuple[Facts, list[Finding], tuple[AvahiGpuError, ...]]:
        """Make the changes that the findings offer, ask again, and return what is true then."""
        from avahi_gpu.changes.provision import provision, unsettled  # what reads the journal loads 20 ms

        order = self.order
        unsaid = unsettled(self.system, facts) if facts.is_root else []
        wanted, _ = plan_all(facts, lambda facts: [*self.judge(facts), *unsaid])
        if not wanted:
            wrong = any(f.verdict in ("warn", "error") for f in findings)
            order.out.print(
                "There is nothing that avahi-gpu could mend by itself."
                if wrong
                else "There is nothing to mend."
            )
            return facts, findings, ()
        demand_root(facts.is_root, "doctor --fix")
        demand_consent(yes=order.yes, as_json=order.format is Format.json, command="doctor --fix")
        order.out.print("\nThese changes are offered:")
        show_changes(order.out, wanted, with_diffs=True)
        approve = ask_for(wanted, order.out, yes=order.yes, with_diffs=True)
        if approve is None:
            order.out.print("nothing was changed")
            return facts, findings, ()

        made: list[Change] = []
        errors: tuple[AvahiGpuError, ...] = ()
        try:
            with heard():
                provision(
                    facts,
                    judge=self.judge,
                    read=self.read_this_machine,
                    approve=approve,
                    system=self.system,
                    made=made,
                    command="doctor --fix",
                    say=lambda text: order.out.print(f"… {printable(text)}"),
                )
        except ChangeFailed as fault:
            errors = (fault,)
        except KeyboardInterrupt:
            raise interruption(made, "doctor --fix") from None
        tried = {f.id: f.fix for f in findings if f.fix and not without(plan([f]), made)}
        lasting = {f.id for f in findings if f.verdict in UNSETTLED and f.id not in tried}
        facts, findings = self._settled(facts, lasting, patience_s=0.0 if errors else SETTLE_S)
        order.out.print("\nAsked again:")
        show_findings(findings, order.out, brief=True)
        if made:
            order.out.print("avahi-gpu undo --last takes back what was changed now.")
        return facts, findings, (*errors, *_tell_vain(findings, tried))

    def _settled(self, facts: Facts, lasting: set[str], patience_s: float) -> tuple[Facts, list[Finding]]:
        """Read and judge until all is well but for ``lasting``, or the patience ends: daemons take time."""
        deadline = time.monotonic() + patience_s
        while True:
            facts = self.read(facts)
            findings = self.judge(facts)
            wrong = any(f.verdict in UNSETTLED and f.id not in lasting for f in findings)
            if not wrong or time.monotonic() >= deadline:
                return facts, findings
            time.sleep(SETTLE_AGAIN_S)


def _tell_vain(findings: Sequence[Finding], tried: Mapping[str, Fix]) -> list[AvahiGpuError]:
    """Return an error for each fix that was made, and after which its finding is an error as before."""
    return [
        ChangeFailed(f"{tried[f.id].title}: done, and it did not help: {f.says} ({f.id})", f.hint)
        for f in findings
        if f.verdict == "error" and f.id in tried
    ]


def findings_of(system: System, order: Order) -> list[Finding]:
    """Read the machine once and judge it."""
    doctor = Doctor(system, order)
    return doctor.judge(doctor.read(None))


def demand_sense(order: Order) -> None:
    """Raise Misuse for options that do not go together or name what is not there."""
    select_checks(order.ignore)  # a wrong name ends us before anything is read
    if order.yes and not order.fix:
        raise Misuse("--yes means nothing without --fix", "run: avahi-gpu doctor --fix --yes")
    for name in order.peers:
        if any("\ud800" <= letter <= "\udfff" for letter in name):  # what Python makes of bytes that are not
            raise Misuse(f"the name {name!r} is not UTF-8", "give a host name, or a peer's name")
    if order.deepspeed_config == "":
        raise Misuse(
            "--deepspeed-config needs the name of a file",
            "run: avahi-gpu doctor --deepspeed-config ds_config.json",
        )
    if order.report is not None and order.format is Format.nagios:
        raise Misuse("--report and --format nagios do not go together", "run doctor --report on its own")
    if order.report is not None and (not order.report or Path(order.report).is_dir()):
        raise Misuse("--report needs the name of a file", "run: avahi-gpu doctor --report report.md")
    if order.report is not None and not Path(order.report).absolute().parent.is_dir():
        raise Misuse(f"there is no folder for {order.report}", "name a file in a folder that exists")


def _write_report(system: System, name: str, text: str) -> None:
    system.write(Path(name).absolute(), text.encode())


def _users(system: System) -> set[str]:
    """Return the names of the people who may sit here, those of their accounts and their own."""
    names = {os.environ.get(v, "") for v in ("USER", "LOGNAME", "SUDO_USER")}
    # not by getpwent(3), which asks every directory server that nsswitch.conf names
    text = (system.read("/etc/passwd").content or b"").decode("utf-8", "replace")
    for line in text.splitlines():
        account, _, number, _, comment, *_ = (*line.split(":"), "", "", "", "", "")
        if number.isascii() and number.isdigit() and int(number[:10]) in PEOPLE:
            names |= {account, *comment.partition(",")[0].split()}
    return names - {""}
