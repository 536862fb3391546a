"""What ``setup --root`` says and leaves out where it sets up an image and no running machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from shlex import quote

from avahi_gpu.model import BOOT_UNIT, SERVICE_FILE, Change, Facts, Finding

# what is worth telling at the end of a setup although nothing is to be done about it by us
NOTED = ("AG511", "AG514", "AG515")
MADE_OFFLINE = ("package", "file")


def offline(facts: Facts, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings with those changes alone that can be made where nothing runs."""
    if facts.image is None:
        return list(findings)
    return [
        replace(f, fix=replace(f.fix, changes=tuple(filter(is_offline, f.fix.changes)))) if f.fix else f
        for f in findings
    ]


def is_offline(change: Change) -> bool:
    """Whether a change is one of files: packages and links of units are."""
    return change.kind in MADE_OFFLINE or change.argv[:2] == ("systemctl", "enable")


def find_notes(findings: Iterable[Finding]) -> list[str]:
    """Return the sentences that are for people at the end of a setup."""
    noted = [f for f in findings if f.id in NOTED and f.verdict in ("info", "warn") and not f.fix]
    return [f"note: {f.says}{f' ({f.hint})' if f.hint else ''}" for f in noted]


def describe_image(facts: Facts) -> str:
    """Return the last line of a setup that went well."""
    assert facts.image is not None
    unit = facts.host.boot_unit
    if unit is not None and unit.enabled and unit.file.content is not None:
        return f"a machine that boots {facts.image.folder} is a node; {BOOT_UNIT} tells what it is"
    return f"{facts.image.folder} is set up; nothing renders {SERVICE_FILE.name} when a machine boots it"


def describe_undo(root: str | None) -> str:
    """Return the command line that undoes."""
    return "avahi-gpu undo" if root is None else f"avahi-gpu undo --root {quote(root)}"
