"""A report to paste into a request for help: everything the doctor saw, nothing about who sits there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from avahi_gpu import __version__
from avahi_gpu.model import Facts, FileState, Finding
from avahi_gpu.render.findings import ORDER, fix_commands, summarize
from avahi_gpu.render.text import printable

_MAC = re.compile(r"\b[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}\b")
_HOME = re.compile(r"(?<![\w.])((?:/var)?/home|/Users)/[^/\s:'\"]+")
_ROOT_HOME = re.compile(r"(?<![\w./])/root(?=[/\s:'\"]|$)")
_SHORTEST_NAME = 3  # a user named "a" would take half of the report with him
_NOBODY = frozenset({"root", "user", "avahi", "gpu", "torch", "local"})  # tell nobody, and are words of ours


def make_report(findings: Sequence[Finding], facts: Facts, users: Iterable[str] = ()) -> str:
    """Return the report as Markdown, with the names in ``users``, MACs, home folders and ids taken out."""
    lines = [
        f"avahi-gpu {__version__} doctor: {summarize(findings)}",
        "",
        f"- distribution {facts.distribution or 'unknown'}, init {facts.init}, "
        f"avahi {facts.daemon.version or 'unknown'}",
        f"- torch {facts.versions.torch or 'none'}, python {facts.versions.python or 'unknown'}, "
        f"driver {facts.versions.driver or 'none'}, {len(facts.gpus or ())} GPUs",
        "",
        "## Findings",
        "",
    ]
    for verdict in ORDER[::-1]:
        for finding in findings:
            if finding.verdict == verdict:
                lines += _tell(finding)
    for state in (facts.nsswitch, facts.avahi_conf, facts.resolv_conf, facts.etc_hosts):
        lines += _quote(state)
    text = "\n".join(lines) + "\n"
    if facts.machine_id:
        text = text.replace(facts.machine_id, "MACHINE-ID")
    return scrub(text, users)


def scrub(text: str, users: Iterable[str] = ()) -> str:
    """Return ``text`` without MAC addresses, names of home folders and the names in ``users``."""
    text = _MAC.sub("MAC", text)
    text = _ROOT_HOME.sub("/home/USER", _HOME.sub(r"\1/USER", text))
    for user in sorted({u for u in users if len(u) >= _SHORTEST_NAME} - _NOBODY, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(user)}(?!\w)", "USER", text)
    return text


def _tell(finding: Finding) -> list[str]:
    lines = [f"- **{finding.verdict}** {finding.id} {finding.slug}: {printable(finding.says, 400)}"]
    lines += [f"  - {printable(e, 400)}" for e in finding.evidence]
    lines += [f"  - advice: {printable(finding.hint, 400)}"] if finding.hint else []
    lines += [f"  - fix: `{printable(c, 400)}`" for c in (fix_commands(finding.fix) if finding.fix else ())]
    return lines


def _quote(state: FileState) -> list[str]:
    """Return the lines of a file that count, comments left out."""
    if state.content is None:
        return ["", f"## {state.path}", "", state.error or "missing"]
    text = state.content.decode("utf-8", "replace").splitlines()
    kept = [
        printable(line.rstrip(), 200) for line in text if line.strip() and not line.lstrip().startswith("#")
    ]
    return ["", f"## {state.path}", "", *(f"    {line}" for line in kept[:100])]
