"""A report to paste into a request for help: everything the doctor saw, nothing about who sits there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from avahi_gpu import __version__
from avahi_gpu.model import Facts, FileState, Finding, Story
from avahi_gpu.render.findings import ORDER, fix_commands, summarize
from avahi_gpu.render.scrub import scrub
from avahi_gpu.render.text import printable
from avahi_gpu.render.trace import draw

# what scrub leaves in, told to whoever sends it
NOTE = (
    "Taken out: names of users, home folders, hardware and public addresses, ids and keys. "
    "Left in: host names and private addresses. Read it before you send it."
)


def make_report(
    findings: Sequence[Finding], facts: Facts, users: Iterable[str] = (), stories: Sequence[Story] = ()
) -> str:
    """Return the report as Markdown, scrubbed: see ``scrub``.

    ``users`` are the names of people, ``stories`` the ways of names that were asked about.
    """
    lines = [
        f"avahi-gpu {__version__} doctor: {summarize(findings)}",
        "",
        NOTE,
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
    for story in stories:
        lines += ["", f"## The way of {printable(story.trace.asked)}", ""]
        lines += [f"    {printable(line, 400)}" for line, _ in draw(story)]
    for state in (facts.nsswitch, facts.avahi_conf, facts.resolv_conf, facts.etc_hosts):
        lines += _quote(state)
    text = "\n".join(lines) + "\n"
    if facts.machine_id:
        text = text.replace(facts.machine_id, "MACHINE-ID")
    return scrub(text, users)


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
