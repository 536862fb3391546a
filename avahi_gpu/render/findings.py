"""Findings for people, for JSON and for a monitoring system."""

from __future__ import annotations

import shlex
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from avahi_gpu.errors import AS_ROOT
from avahi_gpu.model import Change, Finding, Fix, Verdict
from avahi_gpu.render.text import printable

if TYPE_CHECKING:
    from rich.console import Console

# in the order in which they are shown: what matters most stands last, just above the prompt
ORDER: tuple[Verdict, ...] = ("ok", "skip", "unknown", "info", "warn", "error")
FOLDED: tuple[Verdict, ...] = ("ok", "skip")
CALM: frozenset[Verdict] = frozenset({"ok", "skip", "info"})
_STYLES: dict[Verdict, str] = {
    "ok": "green",
    "skip": "dim",
    "unknown": "magenta",
    "info": "cyan",
    "warn": "yellow",
    "error": "bold red",
}
_LIMIT = 400  # characters of one line that holds words from outside
_INDENT = " " * 12
_LEAST_ROOM = 20  # columns of a line on the narrowest terminal


def show_findings(
    findings: Sequence[Finding],
    console: Console,
    *,
    brief: bool = False,
    whole: bool = False,
    is_root: bool = True,
) -> None:
    """Print what was found, errors last, with evidence and advice below those that need a reader.

    What is fine is one line an area, since nobody reads sixty of them to find the one that is not; with
    ``whole`` one line a finding. With ``brief`` only what needs a reader is shown. What could not be told for
    one reason is one line. The last line is the verdict on all of them. Whoever is not root is told to mend
    by sudo.
    """
    folded = () if whole or brief else FOLDED
    if folded:
        _show_fine(findings, console)
    for verdict in ORDER:
        if verdict in folded or (brief and verdict in CALM):
            continue
        alike: dict[object, list[Finding]] = {}
        for finding in findings:
            if finding.verdict == verdict:
                key = (
                    (finding.says, finding.hint)
                    if verdict == "unknown" and not finding.evidence
                    else finding.id
                )
                alike.setdefault(key, []).append(finding)
        for group in alike.values():
            _show(group, console, is_root=is_root)
    _tell(summarize(findings), console, indent="", style="bold")


def summarize(findings: Iterable[Finding]) -> str:
    """Return the verdict on the machine in one line."""
    found = list(findings)
    count = Counter(f.verdict for f in found)
    worst = [f for f in found if f.verdict == "error"] or [f for f in found if f.verdict == "warn"]
    words = [_counted(count["error"], "error"), _counted(count["warn"], "warning")]
    told = ", ".join(w for w in words if w)
    calm = ((count["ok"], "fine"), (count["unknown"], "unknown"))
    rest = ", ".join(f"{number} {word}" for number, word in calm if number)
    if not worst:
        if count["unknown"]:
            first = printable(next(f.says for f in found if f.verdict == "unknown"), _LIMIT)
            return f"no error found, {count['unknown']} unknown ({count['ok']} fine): {first}"
        return f"no error found ({rest or 'nothing was asked'})"
    calm_ones = f" ({rest})" if rest else ""
    return f"{told}{calm_ones}: {printable(worst[0].says, _LIMIT)}"


def findings_data(findings: Iterable[Finding]) -> dict[str, Any]:
    """Return ``{"findings": [{"id", "slug", "area", "verdict", "says", "evidence", "fix"}]}``.

    ``fix`` is null or ``{"title", "commands"}``; advice that no command expresses is a title alone.
    """
    return {
        "findings": [
            {
                "id": f.id,
                "slug": f.slug,
                "area": f.area,
                "verdict": f.verdict,
                "says": f.says,
                "evidence": list(f.evidence),
                "fix": _fix_data(f),
            }
            for f in findings
        ]
    }


def nagios_line(findings: Sequence[Finding]) -> tuple[str, int]:
    """Return a monitoring plugin's line and exit code: 0 ok, 1 warning, 2 critical, 3 unknown."""
    verdicts = {f.verdict for f in findings}
    if "error" in verdicts:
        state, code = "CRITICAL", 2
    elif "warn" in verdicts:
        state, code = "WARNING", 1
    elif "ok" not in verdicts:
        state, code = "UNKNOWN", 3
    else:
        state, code = "OK", 0
    count = Counter(f.verdict for f in findings)
    numbers = " ".join(f"{verdict}={count[verdict]}" for verdict in ORDER)
    # a bar would end the text: it starts the performance data (Monitoring Plugins guidelines 2.6)
    return f"AVAHI-GPU {state} - {summarize(findings).replace('|', '/')} | {numbers}", code


def fix_commands(fix: Fix) -> list[str]:
    """Return a fix as lines that a person can read or run."""
    return [_command(c) for c in fix.changes] + list(fix.commands)


def show_list(rows: Iterable[tuple[str, str, str, str]], console: Console) -> None:
    """Print id, area, slug and sentence of every check."""
    for id, area, slug, says in rows:
        console.print(f"{id}  {area:<8} {slug:<22} {says}")


def _fix_data(finding: Finding) -> dict[str, Any] | None:
    if finding.fix:
        return {"title": finding.fix.title, "commands": fix_commands(finding.fix)}
    return {"title": finding.hint, "commands": []} if finding.hint else None


def _show_fine(findings: Sequence[Finding], console: Console) -> None:
    """Print one line for each area: how much of it is fine, and how much was not asked."""
    for area in dict.fromkeys(f.area for f in findings):
        count = Counter(f.verdict for f in findings if f.area == area)
        words = [f"{count['ok']} fine"] if count["ok"] else []
        words += [f"{count['skip']} not asked"] if count["skip"] else []
        if words:
            verdict: Verdict = "ok" if count["ok"] else "skip"
            console.print(f"{verdict:<7} {area:<8} {', '.join(words)}", style=_STYLES[verdict])


def _show(alike: Sequence[Finding], console: Console, *, is_root: bool) -> None:
    """Print findings that differ in their ids alone."""
    finding = alike[0]
    head = f"{finding.verdict:<7} {', '.join(f.id for f in alike)}  "
    _tell(finding.says, console, indent=head, style=_STYLES[finding.verdict])
    if finding.verdict in ("ok", "skip"):
        return
    for line in finding.evidence:
        if line != finding.says:  # nobody reads a sentence twice
            _tell(line, console)
    if finding.hint:
        _tell(f"what to do: {finding.hint}", console)
    for line in _mending(finding.fix, is_root) if finding.fix else ():
        _tell(line, console, to_copy=True)
    if finding.verdict in ("warn", "error"):
        _tell(f"more: avahi-gpu explain {finding.id}", console)


def _mending(fix: Fix, is_root: bool) -> list[str]:
    """Return what mends in lines: one command makes all changes, and what it runs is told below it."""
    if not fix.changes:
        return [f"to mend: {line}" for line in fix.commands]
    program = "avahi-gpu" if is_root else AS_ROOT
    runs = [f"this runs: {shlex.join(c.argv)}" for c in fix.changes if c.argv]
    by_hand = [f"and by hand: {line}" for line in fix.commands]
    return [f"to mend: {program} doctor --fix   # {fix.title}", *runs, *by_hand]


def _tell(
    line: str, console: Console, *, indent: str = _INDENT, style: str = "dim", to_copy: bool = False
) -> None:
    """Print a line behind ``indent``; on a terminal it goes on below its own beginning.

    What is to be copied is left to the terminal, which does not make two commands of one.
    """
    text = printable(line, _LIMIT)
    if console.is_terminal and not to_copy:
        room = max(console.width - len(indent) - 1, _LEAST_ROOM)
        text = f"\n{'':{len(indent)}}".join(
            textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
        )
    console.print(f"{indent}{text}", style=style, soft_wrap=True)


def _command(change: Change) -> str:
    if change.argv:
        return shlex.join(change.argv)
    return f"avahi-gpu doctor --fix   # {change.title}"


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}" if number else ""
