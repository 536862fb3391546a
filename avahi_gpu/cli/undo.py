"""``avahi-gpu undo``: take back what setup and doctor --fix changed."""

from __future__ import annotations

import io
from datetime import datetime, timezone
from shlex import quote
from typing import Annotated

import typer

from avahi_gpu.changes import journal
from avahi_gpu.changes.change import describe
from avahi_gpu.changes.lock import locked
from avahi_gpu.changes.plan import AVAHI, daemon_of
from avahi_gpu.changes.record import CommandRecord, Restore, Reversal
from avahi_gpu.cli.consent import consent, demand_consent, demand_root
from avahi_gpu.cli.outcome import finish, guarded
from avahi_gpu.errors import ExitCode, Interrupted
from avahi_gpu.host.daemons import DEFAULT_CONFIG
from avahi_gpu.host.interruption import heard
from avahi_gpu.host.system import System
from avahi_gpu.render.diff import show_changes
from avahi_gpu.render.text import printable, steady_console
from avahi_gpu.result import Result


def command(
    last: Annotated[
        bool, typer.Option("--last", help="Only what the last setup or doctor --fix changed.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only tell what would be taken back; exit 5 if anything.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    root: Annotated[
        str | None, typer.Option(metavar="DIR", help="Undo what setup --root changed in that image.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Take back what setup and doctor --fix changed. Edits made since are kept; packages stay."""
    with guarded("undo", as_json=as_json), heard():
        from avahi_gpu.host.image import Image, open_system  # seldom wanted

        system = open_system(root, installs=False)
        if isinstance(system, Image) and system.is_root:
            system.sweep_policy()
        demand_root(system.is_root, "undo" if root is None else f"undo --root {quote(root)}")
        finish(
            undo(system, last=last, check=check, yes=yes, as_json=as_json),
            as_json=as_json,
            show=lambda _: None,
        )


def undo(system: System, *, last: bool, check: bool, yes: bool, as_json: bool) -> Result:
    """Undo, and return ``{"changes", "changed", "kept"}``; exit code 1 where something would not go back.

    With ``check`` nothing is done, and 5 says that there is something to take back.
    """
    out = steady_console(io.StringIO() if as_json else None)
    with locked(system, lambda text: out.print(f"… {printable(text)}")):
        for path in journal.tidy(system):
            out.print(
                f"{printable(path)} was half written when an earlier run was cut off; it is whole again"
            )
        records, broken = journal.read_journal(system)
        if broken:
            lines = ", ".join(str(n) for n in broken)
            out.print(f"{journal.JOURNAL}: line {lines} is cut short or not ours, and left out")
        if not records:
            out.print("nothing to undo")
            return Result("undo", {"changes": [], "changed": False, "kept": []})
        unwinding = journal.plan_undo(system, last=last)
        changes = [step.change for step in unwinding.steps]
        if last and "" not in unwinding.runs:
            out.print(f"The last run was: {printable(', '.join(map(name_run, unwinding.runs)))}")
        if check:
            if changes:
                out.print("This would be taken back:")
                show_changes(out, changes, with_diffs=True)
            else:
                out.print("nothing to take back")
            kept = list(unwinding.kept)
            data = {"changes": [describe(c) for c in changes], "changed": False, "kept": kept}
            return Result("undo", data, ExitCode.PENDING if changes else ExitCode.FINE)
        if changes:
            place = f" --root {quote(str(system.root))}" if not system.is_whole else ""
            demand_consent(yes=yes, as_json=as_json, command=f"undo{' --last' if last else ''}{place}")
            out.print("This is taken back:")
            show_changes(out, changes, with_diffs=not yes)
            if not yes and not consent("Take it back?"):
                out.print("nothing was changed")
                return Result(
                    "undo",
                    {"changes": [describe(c) for c in changes], "changed": False, "kept": []},
                    ExitCode.PENDING,
                )
        try:
            done = journal.undo(unwinding, system)
        except KeyboardInterrupt:
            hint = "avahi-gpu undo takes back the rest"
            raise Interrupted("interrupted before all was taken back", hint) from None
    for path in done.kept:
        out.print(f"{printable(path)} was edited since: your edit is kept.")
        out.print("  To have the old one back nevertheless, move the file away and run undo again.")
    for record in done.gone:
        out.print(f"No longer in force, so not taken back: {printable(record.title)}")
    for path in done.left_folders:
        out.print(f"{printable(path)} is not empty: it stays.")
    restarted = any(isinstance(s, Reversal) and daemon_of(s.record.undo) == AVAHI for s in done.restored)
    if not restarted and any(isinstance(s, Restore) and s.path == DEFAULT_CONFIG for s in done.restored):
        out.print(
            f"avahi-daemon goes on with what it has read: restart it to have {DEFAULT_CONFIG} in force."
        )
    for line in describe_rest(unwinding.stays):
        out.print(line, soft_wrap=True)  # command lines are there to be copied
    if not done.failed:
        out.print("undone" if done.restored else "nothing was left to take back")
    return Result(
        "undo",
        {
            "changes": [describe(r.change) for r in done.restored],
            "changed": bool(done.restored),
            "kept": list(done.kept),
        },
        ExitCode.FAILED if done.failed else ExitCode.FINE,
        done.failed,
    )


def name_run(run: str) -> str:
    """Return the command and the second of a run, which the journal names by the microsecond."""
    command, _, when = run.rpartition(" ")
    try:
        return f"{command} {datetime.fromisoformat(when).astimezone(timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    except ValueError:
        return run


def describe_rest(records: tuple[CommandRecord, ...]) -> list[str]:
    """Say what undo leaves as it is: packages and daemons may be in use by others meanwhile."""
    lines = [printable(" ".join(r.argv), 1000) for r in records if r.change == "package"]
    said = [
        f"Packages that came by this stay installed, and what they wrote themselves: {line}"
        for line in dict.fromkeys(lines)
    ]
    # a restart leaves nothing behind that could be taken back
    lasting = [r for r in records if r.change != "package" and not r.title.startswith(("stop ", "restart "))]
    titles = [printable(r.title) for r in lasting]
    said += [f"Not taken back, it may be of use to others: {title}" for title in dict.fromkeys(titles)]
    return said
