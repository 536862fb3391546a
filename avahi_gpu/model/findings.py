"""What checks answer, and what would mend it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "info", "warn", "error", "skip", "unknown"]
Area = Literal["names", "network", "host", "gpu", "service", "cluster"]
ChangeKind = Literal["package", "file", "command", "daemon"]

# in ``Change.undo``: the number that nft has given to the rule with the comment of ``Change.argv``
HANDLE = "{handle}"


@dataclass(frozen=True)
class Change:
    """One edit of the machine as data.

    ``package``: ``argv`` installs it. ``file``: ``path`` becomes ``content`` with ``mode`` (content None:
    the file is removed). ``daemon``: ``argv`` starts, restarts or enables a daemon. ``command``: ``argv``
    changes what no file holds (a rule of the firewall, a host name), and ``undo`` takes exactly that back; ()
    where there is nothing to take back. ``verify`` ends with 0 only while the change is in force: it is asked
    after ``argv``, and before ``undo``, which is not run for what is gone already.

    ``rewrites``: files that the program writes anew, and that undo brings back to the byte, as long as nobody
    else has written them since.

    ``first``: before packages, whose scripts fail without it.

    ``question`` is asked on its own, after the consent to all changes. It is for what touches the firewall or
    the network. ``--yes`` answers it too, so only what adds and cuts nobody off may be a change at all;
    anything else belongs into ``Fix.commands``, which the user alone runs.
    """

    kind: ChangeKind
    title: str
    path: str = ""
    content: bytes | None = None
    mode: int = 0o644
    argv: tuple[str, ...] = ()
    before: bytes | None = None  # file: what the diff is against; None where there is no file
    undo: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    until_boot: bool = False  # command: what it does ends with the next boot, and undo with it
    question: str = ""
    rewrites: tuple[str, ...] = ()
    first: bool = False


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
