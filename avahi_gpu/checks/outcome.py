"""What a check may answer. A check returns one of these; the registry makes a ``Finding`` of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from avahi_gpu.errors import AS_ROOT
from avahi_gpu.model import Facts, Fix, Verdict


@dataclass(frozen=True)
class Outcome:
    """The answer of one check. ``says`` '' stands for the check's own sentence, which is then true."""

    verdict: Verdict
    says: str = ""
    evidence: tuple[str, ...] = ()
    fix: Fix | None = None
    hint: str = ""


def ok(*evidence: str) -> Outcome:
    """All is well, as ``evidence`` shows."""
    return Outcome("ok", evidence=evidence)


def info(says: str, evidence: Iterable[str] = (), *, hint: str = "") -> Outcome:
    """Worth knowing, nothing to do."""
    return Outcome("info", says, tuple(evidence), hint=hint)


def warn(says: str, evidence: Iterable[str] = (), *, fix: Fix | None = None, hint: str = "") -> Outcome:
    """It works, but not well or not for long."""
    return Outcome("warn", says, tuple(evidence), fix, hint)


def error(says: str, evidence: Iterable[str] = (), *, fix: Fix | None = None, hint: str = "") -> Outcome:
    """It does not work. ``says`` tells what is, ``hint`` what to do where ``fix`` does not."""
    return Outcome("error", says, tuple(evidence), fix, hint)


def skip(reason: str) -> Outcome:
    """The question makes no sense here."""
    return Outcome("skip", reason)


def unknown(reason: str, *, hint: str = "") -> Outcome:
    """The question could not be answered. Never a guess."""
    return Outcome("unknown", reason, hint=hint)


def unread(facts: Facts, field: str, what: str) -> Outcome:
    """Say that ``what`` could not be read, and why; ``field`` is a prober's name."""
    why = facts.unread.get(field, "")
    hint = f"ask as root: {AS_ROOT} doctor" if why.startswith("only root") and not facts.is_root else ""
    return unknown(f"{what} could not be read{f': {why}' if why else ''}", hint=hint)
