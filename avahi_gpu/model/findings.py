"""What checks answer, and what would mend it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "info", "warn", "error", "skip", "unknown"]
Area = Literal["names", "network", "host", "gpu", "service", "cluster"]
ChangeKind = Literal["package", "file", "daemon"]


@dataclass(frozen=True)
class Change:
    """One edit of the machine as data.

    ``package``: ``argv`` installs it. ``file``: ``path`` becomes ``content`` with ``mode`` (content None:
    the file is removed). ``daemon``: ``argv`` starts, restarts or enables a daemon.
    """

    kind: ChangeKind
    title: str
    path: str = ""
    content: bytes | None = None
    mode: int = 0o644
    argv: tuple[str, ...] = ()
    before: bytes | None = None  # file: what the diff is against; None where there is no file


@dataclass(frozen=True)
class Fix:
    """What would mend a finding: changes that we make, or commands that only the user should run."""

    title: str
    changes: tuple[Change, ...] = ()
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """The answer of one check."""

    id: str  # AG104
    slug: str  # mdns-before-dns
    area: Area
    verdict: Verdict
    says: str  # the sentence; what is true when all is well, or what is wrong
    evidence: tuple[str, ...] = ()
    fix: Fix | None = None
    hint: str = ""
