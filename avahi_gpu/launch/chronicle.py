"""What happened to a job on this node, as its last line tells it. Pure: events with times in, text out.

Times are seconds of one monotonic clock, in the order of the calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Outcome = Literal["finished", "failed", "left", "ended"]

NAMES_SHOWN = 4  # of those who were lost, or who joined: the line stays one
CAUSE_SHOWN = 80  # characters of a reason: it has been told in full when it happened


@dataclass
class Pause:
    """Workers did not run: ``noticed``, until a round ``stands``, until they are ``running`` again.

    ``own``: workers of this node had failed by themselves, which counts against --max-restarts.
    """

    noticed: float
    reason: str
    own: bool = False
    stands: float | None = None
    running: float | None = None


@dataclass(frozen=True)
class Change:
    """A node was lost, or it joined."""

    host: str
    moment: float
    cause: str = ""


@dataclass
class Chronicle:
    """One job on one node, from ``began`` on."""

    job: str
    min_nodes: int
    began: float
    sizes: list[int] = field(default_factory=list)  # of the rounds
    pauses: list[Pause] = field(default_factory=list)
    lost: list[Change] = field(default_factory=list)
    joined: list[Change] = field(default_factory=list)
    members: dict[str, str] = field(default_factory=dict)  # of the last round, hosts by id

    # --- what happens --------------------------------------------------------------------------------------

    def form(self, at: float, members: Sequence[tuple[str, str]]) -> None:
        """A round stands, with these ids and host names."""
        now, before = dict(members), self.members
        pause = self.open_pause
        if self.sizes:
            noticed, reason = (pause.noticed, pause.reason) if pause else (at, "")
            for id in before.keys() - now.keys():
                self.lost.append(Change(before[id], noticed, cause_of(reason, before[id])))
            self.joined += [Change(now[id], at) for id in now.keys() - before.keys()]
        if pause is not None:
            pause.stands = at
        self.sizes.append(len(now))
        self.members = now

    def run(self, at: float) -> None:
        """The workers of the round have been started."""
        pause = self.open_pause
        if pause is not None and pause.stands is not None:
            pause.running = at

    def regroup(self, at: float, reason: str) -> None:
        """The running round is over, because of others."""
        self._pause(at, reason, own=False)

    def fail(self, at: float, reason: str) -> None:
        """Workers of this node have failed by themselves."""
        self._pause(at, reason, own=True)

    def _pause(self, at: float, reason: str, *, own: bool) -> None:
        pause = self.open_pause
        if pause is None:
            self.pauses.append(Pause(at, reason, own))
        else:  # a round that was lost before its workers ran belongs to the same pause
            pause.stands = None
            pause.reason = pause.reason if pause.own else reason
            pause.own = pause.own or own

    @property
    def open_pause(self) -> Pause | None:
        """The pause that has not ended yet."""
        return self.pauses[-1] if self.pauses and self.pauses[-1].running is None else None

    # --- what is told --------------------------------------------------------------------------------------

    def tell(self, at: float, outcome: Outcome) -> str:
        """Return the line about it all; '' for a job that has ended before it began, which others tell of."""
        if not self.sizes:
            return f"job {self.job}: left before its first round" if outcome == "left" else ""
        parts = [f"job {self.job}: {outcome} after {spell(at - self.began)}", self._rounds()]
        restarts = sum(pause.own and pause.stands is not None for pause in self.pauses)
        if restarts:
            parts.append(f"{count(restarts, 'restart')} after failures of its own workers")
        for changes, word in ((self.lost, "lost"), (self.joined, "joined")):
            if changes:
                parts.append(f"{count(len(changes), 'node')} {word} ({self._list(changes)})")
        parts += [part for part in (self._regroups(), self._open_end(outcome)) if part]
        return ", ".join(parts) + (self._rest() if outcome == "left" else "")

    def _rounds(self) -> str:
        least, most = min(self.sizes), max(self.sizes)
        nodes = count(most, "node") if least == most else f"{least} to {most} nodes"
        return f"{count(len(self.sizes), 'round')} of {nodes}"

    def _list(self, changes: Sequence[Change]) -> str:
        told = [
            f"{change.host} after {spell(change.moment - self.began)}"
            + (f": {shorten(change.cause)}" if change.cause else "")
            for change in sorted(changes, key=lambda change: (change.moment, change.host))
        ]
        more = len(told) - NAMES_SHOWN
        return ", ".join(told[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")

    def _regroups(self) -> str:
        whole = [p for p in self.pauses if not p.own and p.running is not None and p.stands is not None]
        took = [(p.running or 0.0) - p.noticed for p in whole]
        if not whole:
            return ""
        if len(whole) == 1:
            agreed = (whole[0].stands or 0.0) - whole[0].noticed
            return f"regroup took {spell(took[0])} (agreed after {spell(agreed)})"
        return f"{len(whole)} regroups took {spell(min(took))} to {spell(max(took))}"

    def _open_end(self, outcome: Outcome) -> str:
        pause = self.open_pause
        if pause is None or pause.stands is not None or outcome in ("finished", "failed"):
            return ""
        reason = f": {shorten(pause.reason)}" if pause.reason else ""
        return f"no round since {spell(pause.noticed - self.began)} after its start{reason}"

    def _rest(self) -> str:
        others = len(self.members) - 1
        pause = self.open_pause
        if not others or (pause is not None and pause.stands is None):  # who knows where they are by now
            return ""
        who = "the other node" if others == 1 else f"the other {others} nodes"
        if others >= self.min_nodes:
            return f"; {who} can go on"
        return f"; {who} cannot go on without this one: {self.min_nodes} are needed"


def cause_of(reason: str, host: str) -> str:
    """Return what ``reason`` says of ``host``, without what the line says anyway; '' if of somebody else."""
    if not reason.startswith(host) or reason[len(host) :][:1] not in ("", " ", ","):
        return ""
    rest = reason[len(host) :].removeprefix(", the leader,").strip()
    for said in ("is lost:", "is gone:"):
        rest = rest.removeprefix(said).strip()
    return rest


def count(number: int, noun: str) -> str:
    """Return ``1 node`` or ``3 nodes``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def shorten(text: str) -> str:
    """Return ``text`` cut to what the line has room for."""
    return text if len(text) <= CAUSE_SHOWN else text[: CAUSE_SHOWN - 1] + "…"


def spell(seconds: float) -> str:
    """Return a duration as people say it: ``4.2 s``, ``42 s``, ``12 min 3 s``, ``5 h``, ``3 d 4 h``."""
    if round(max(seconds, 0.0), 1) < 10:
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    for unit, smaller, length, part in (("d", "h", 86400, 3600), ("h", "min", 3600, 60), ("min", "s", 60, 1)):
        if whole >= length:
            rest = whole % length // part
            return f"{whole // length} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"
