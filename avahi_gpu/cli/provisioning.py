"""What ``setup`` does: read, judge, show, ask, change, and prove that it worked."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from shlex import quote
from typing import Any

from rich.console import Console

import avahi_gpu.checks  # noqa: F401  registers them
from avahi_gpu.changes.change import describe
from avahi_gpu.changes.plan import Judge, plan_all
from avahi_gpu.changes.provision import provision, recover, unsettled
from avahi_gpu.checks.network import CORRECT_LIST, missing_cards, say_lack
from avahi_gpu.checks.registry import all_checks, is_unasked, setup_findings, told_findings
from avahi_gpu.cli.consent import ask_for, demand_consent, demand_root
from avahi_gpu.cli.imaging import describe_image, describe_undo, find_notes, offline
from avahi_gpu.cli.outcome import interruption
from avahi_gpu.cli.shut_out import demand_sight, describe_firewall, judge_proof
from avahi_gpu.errors import AvahiGpuError, ChangeFailed, ExitCode, MalformedConfiguration, Misuse
from avahi_gpu.host.configuration import read_settings
from avahi_gpu.host.facts import read_facts
from avahi_gpu.host.image import Image
from avahi_gpu.host.image_facts import read_image
from avahi_gpu.host.key_file import BadKeyFile, UnreadableKey, find_key, name_owner
from avahi_gpu.host.system import System
from avahi_gpu.model import NODE_SERVICE, STATE_FOLDER, Change, Facts, Finding
from avahi_gpu.render.diff import show_changes
from avahi_gpu.render.text import join_names, printable, steady_console
from avahi_gpu.result import Result

# avahi-daemon claims its host name, then the service, each in a second; twice that after a conflict
PROOF_S = 15.0
PROOF_UNCHANGED_S = 4.0  # with nothing to do: the daemon may have started, or the file come, just before
PROOF_AGAIN_S = 0.4

# what makes a node, by area: its service seen on the LAN, its name resolved by glibc
PROOF = {"service": "AG504", "names": "AG105"}
# what may be untrue for a moment after a change, and is worth waiting for
PASSING = frozenset({*PROOF.values(), "AG203", "AG304"})
# nothing is touched while one of these is an error that we cannot mend
BLOCKING = ("AG100", "AG101", "AG102", "AG217", "AG301", "AG302")
# and not while nsswitch.conf cannot be read: what nobody sees nobody has set up
UNREADABLE = frozenset({"AG101"})


@dataclass(frozen=True)
class Order:
    """What the command line asks for."""

    check: bool
    diff: bool
    yes: bool
    as_json: bool
    python: str | None
    cluster: str | None
    areas: frozenset[str]  # none: all
    root: str | None = None  # of an image; None: this machine
    firewall: bool = False
    grants: frozenset[str] = frozenset()  # what is to be mended that serves others too

    @property
    def out(self) -> Console:
        """Where words for people go: under --json nowhere."""
        return steady_console(io.StringIO() if self.as_json else None)

    @property
    def place(self) -> str:
        """`` in DIR`` for an image."""
        return f" in {printable(self.root)}" if self.root is not None else ""

    @property
    def command(self) -> str:
        """The words after ``avahi-gpu``."""
        return "setup" if self.root is None else f"setup --root {quote(self.root)}"

    def tell(self, text: str) -> None:
        """Say what is being done."""
        self.out.print(f"… {printable(text, 1000)}")

    def tell_notes(self, facts: Facts) -> None:
        """Say what is worth knowing and nothing that setup would change."""
        notes = find_notes(setup_findings(facts, self.areas))
        if facts.interfaces and (missing := missing_cards(facts)):
            notes.append(f"note: {facts.cards_source}: {say_lack(missing)} ({CORRECT_LIST})")
        for line in notes:
            self.out.print(printable(line, 1000))


def set_up(system: System, order: Order) -> Result:
    """Do the whole of it: facts, findings, changes, and the proof. Raises what ends it early."""

    def read(known: Facts | None) -> Facts:
        if isinstance(system, Image):
            return read_image(system, order.cluster)
        return read_facts(
            system,
            python=order.python,
            cluster=order.cluster,
            opens_firewall=order.firewall,
            with_peers=False,
            known=known,
            deep=False,
        )

    def judge(facts: Facts) -> list[Finding]:
        return offline(facts, setup_findings(facts, order.areas, order.grants))

    if order.firewall:
        demand_sight(is_root=system.is_root)
    if isinstance(system, Image) and system.is_root and not order.check:
        system.sweep_policy()
    if not order.check:
        recover(system, order.tell)
    key_owner = _demand_usable_key(system) if system.is_whole else ""
    facts = read(None)
    _demand_sound(facts, judge)
    _tell_left_out(order, judge(facts))
    if key_owner:
        order.out.print(printable(key_owner, 1000))
    unsaid = unsettled(system, facts)
    wanted, _ = plan_all(facts, lambda facts: [*judge(facts), *unsaid])
    _demand_places(system, wanted)
    if not wanted:
        order.out.print("nothing to do")
        return _report(order, [], *_prove(read, facts, order, patience_s=PROOF_UNCHANGED_S))
    if order.check:
        order.out.print(f"These changes are pending{order.place}:")
        show_changes(order.out, wanted, with_diffs=order.diff)
        order.tell_notes(facts)
        _tell_ungranted(order, facts)
        return Result("setup", _data(wanted, changed=False), ExitCode.PENDING)
    return _change(system, order, facts, wanted=wanted, read=read, judge=judge)


def _change(
    system: System,
    order: Order,
    facts: Facts,
    *,
    wanted: Sequence[Change],
    read: Callable[[Facts | None], Facts],
    judge: Judge,
) -> Result:
    demand_root(facts.is_root, order.command)
    demand_consent(yes=order.yes, as_json=order.as_json, command=order.command)
    order.out.print(f"These changes are wanted{order.place}:")
    show_changes(order.out, wanted, with_diffs=order.diff or not order.yes)
    approve = ask_for(wanted, order.out, yes=order.yes, with_diffs=order.diff or not order.yes)
    if approve is None:
        order.out.print("nothing was changed")
        return Result("setup", _data(wanted, changed=False), ExitCode.PENDING)
    made: list[Change] = []
    try:
        facts = provision(
            facts,
            judge=judge,
            read=read,
            approve=approve,
            system=system,
            made=made,
            command="setup",
            say=order.tell,
        )
        if facts.init != "systemd" and facts.image is None and any(c.kind == "daemon" for c in made):
            order.out.print(
                "There is no systemd here: what was started now does not start by itself at boot."
            )
        return _report(order, made, *_prove(read, facts, order, patience_s=PROOF_S))
    except ChangeFailed as fault:
        error: AvahiGpuError = fault
    except KeyboardInterrupt:
        error = interruption(made, "setup")
    return Result("setup", _data(made, changed=bool(made)), error.exit_code, (error,))


def _prove(
    read: Callable[[Facts | None], Facts], facts: Facts, order: Order, patience_s: float
) -> tuple[Facts, list[Finding]]:
    """Read the facts until they prove that this is a node, or patience ends; return what is still wrong.

    Where only some areas were asked for, what other areas lack is neither waited for nor held against us.
    """
    proof = [id for area, id in PROOF.items() if not order.areas or area in order.areas]
    if facts.image is not None:
        proof = []  # nothing of it runs
    deadline = time.monotonic() + patience_s
    told = False
    while True:
        judged = judge_proof(facts, proof)
        findings = [*judged, *setup_findings(facts, order.areas, order.grants)]
        # what nobody could find out does not end setup, but it may keep the proof from being asked for
        unseen = {f.id for f in judged if f.verdict == "unknown"} if any(map(is_unasked, judged)) else set()
        wrong = {f.id: f for f in findings if _is_wrong(f) or f.id in unseen}
        foreign = {id for id, f in wrong.items() if order.areas and f.area not in order.areas}
        if not (wrong.keys() & (PASSING | unseen) - foreign) or time.monotonic() >= deadline:
            for id in foreign:
                order.out.print(
                    f"not proven: {printable(wrong[id].says)} ({id}; setup without --only sees to it)"
                )
            if not wrong:  # a look-up that was not waited for proves nothing
                wrong = {
                    f.id: f for f in findings if f.id in proof and f.verdict == "skip" and not is_unasked(f)
                }
            return facts, [f for id, f in wrong.items() if id not in foreign]
        if not told:
            order.out.print("… wait until Avahi has announced this machine")
            told = True
        time.sleep(PROOF_AGAIN_S)
        facts = read(facts)


def _is_wrong(finding: Finding) -> bool:
    return finding.verdict == "error" or (finding.verdict == "unknown" and finding.id in PASSING | UNREADABLE)


def _report(order: Order, made: Sequence[Change], facts: Facts, wrong: Sequence[Finding]) -> Result:
    options = {finding.id: option for finding, option in told_findings(facts, order.areas, order.grants)}
    errors = tuple(_error_of(f, options.get(f.id, "")) for f in wrong)
    _tell_ungranted(order, facts, [f.id for f in wrong])
    for line in describe_firewall(facts, order.areas, wrong, opens=order.firewall):
        order.out.print(printable(line, 1000), soft_wrap=True)
    if not errors:
        if made or not order.areas:
            order.out.print("done" if order.areas else _describe_node(facts))
        order.tell_notes(facts)
        if any(c.kind == "file" for c in made):
            order.out.print(f"{describe_undo(order.root)} puts every file back.")
    return Result(
        "setup",
        _data(made, changed=bool(made)),
        ExitCode.FAILED if errors else ExitCode.FINE,
        errors,
    )


def _tell_ungranted(order: Order, facts: Facts, besides: Collection[str] = ()) -> None:
    """Tell what was found and left as it is, for it serves others too, and what would mend it."""
    for finding, option in told_findings(facts, order.areas, order.grants):
        if finding.id not in besides:
            order.out.print(f"left as it is: {printable(finding.says, 1000)} ({finding.id})", soft_wrap=True)
            order.out.print(f"  {printable(_way_out(finding, option), 1000)}", soft_wrap=True)


def _way_out(finding: Finding, option: str) -> str:
    title = finding.fix.title if finding.fix is not None else ""
    return f"avahi-gpu setup --{option}: {title}" if option else finding.hint


def _describe_node(facts: Facts) -> str:
    if facts.image is not None:
        return printable(describe_image(facts), 1000)
    names = {i.index: i.name for i in facts.interfaces}
    seen = sorted({names.get(s.interface, "?") for s in facts.own_service or ()})
    parts = [f"{facts.daemon.host_name or facts.hostname} is a node"]
    if seen:
        parts.append(f"{NODE_SERVICE} is seen on {join_names(seen)}")
    if facts.own_name is not None and facts.own_name.addresses:
        parts.append(f"{facts.own_name.name} is {join_names(list(facts.own_name.addresses))}")
    return printable("; ".join(parts), 1000)


def _demand_usable_key(system: System) -> str:
    """Look at the cluster key that jobs would use; return what is worth telling.

    Raises BadKeyFile, or MalformedConfiguration where a setting names a file that cannot be used.
    """
    settings = read_settings(system, os.environ)
    try:
        found = find_key(system, os.environ, settings.config.key_file)
    except BadKeyFile as fault:
        if isinstance(fault, UnreadableKey) and not system.is_root:
            return ""  # with --check anybody may look; root will see it
        if settings.config.key_file is None:
            raise
        raise settings.wrong("key_file", fault.message, fault.hint) from None
    owner = name_owner(found) if found is not None else ""
    if found is None or not owner:
        return ""
    return f"The cluster key {found.path} belongs to {owner}: jobs of other users cannot use it."


def _demand_places(system: System, wanted: Sequence[Change]) -> None:
    """Raise ChangeFailed where something that is no folder is in the way of a file that is wanted."""
    places = [PurePosixPath(c.path).parent for c in wanted if c.kind == "file" and c.content is not None]
    for folder in dict.fromkeys([*places, STATE_FOLDER] if wanted else []):
        for place in (*reversed(folder.parents), folder):
            if system.exists(str(place)) and not system.is_folder(place):
                raise ChangeFailed(
                    f"{place} should be a folder, and is none",
                    f"nothing was changed; see what it is (ls -ld {place}) and move it away",
                )


def _demand_sound(facts: Facts, judge: Judge) -> None:
    """Raise what must be mended by hand before anything is touched."""
    if facts.wanted_service_error:
        raise ChangeFailed(
            facts.wanted_service_error, "nothing was changed; correct it, then run setup again"
        )
    missing = missing_cards(facts) if facts.interfaces else []
    if missing and len(missing) == len(facts.cards):
        raise MalformedConfiguration(facts.cards_source, say_lack(missing), CORRECT_LIST)
    for finding in judge(facts):
        if (
            finding.id in BLOCKING
            and (finding.verdict == "error" or (finding.verdict == "unknown" and finding.id in UNREADABLE))
            and not (finding.fix and finding.fix.changes)
        ):
            raise _error_of(finding)


def _tell_left_out(order: Order, findings: Sequence[Finding]) -> None:
    """Say that names are left out where nothing of this system reads the file by which they would come."""
    for finding in findings:
        if finding.id == "AG101" and finding.verdict == "skip":
            order.out.print(printable(f"names are left out: {finding.says}", 1000))


def _error_of(finding: Finding, option: str = "") -> AvahiGpuError:
    """``option`` of setup: what it would take to mend this."""
    hint = "; ".join(part for part in (_way_out(finding, option) if option else "", finding.hint) if part)
    hints = [hint, *(f"run: {line}" for line in (finding.fix.commands if finding.fix else ()))]
    error = AvahiGpuError(finding.says, ". ".join(h for h in hints if h) or f"avahi-gpu explain {finding.id}")
    error.code = finding.id
    return error


def _data(changes: Sequence[Change], *, changed: bool) -> dict[str, Any]:
    return {"changes": [describe(c) for c in changes], "changed": changed}


def setup_areas(names: Sequence[str]) -> frozenset[str]:
    """Return the areas that ``--only`` names. Raises Misuse for what setup has no check of."""
    areas = {c.area for c in all_checks() if c.setup}
    for name in names:
        if name not in areas:
            raise Misuse(f"setup has no area {name!r}", f"choose of {join_names(sorted(areas))}")
    return frozenset(names)
