"""The verdict on a job: its workers' journals, and what was seen from outside, against the promises. Pure.

**Every step is done once, by one group.** A step counts as done when it is committed: every member of the
group that did it has written a checkpoint of it or of a later step, and at least one worker has learnt so
from the collective operation that follows the writing (``committed`` in its journal). Then:

- No later group does a committed step again, and each goes on from a checkpoint at or behind the last step
  that any earlier group has committed. (A later one shares a member with it, and that one's disk survives.)
- A step that was done and not committed may be done again by a later group, and by nobody else: work behind
  the last checkpoint is lost with the group. A host that comes back with a newer checkpoint of an older
  generation, written when its group had not committed it, throws it away; the judge counts these.
- So the steps of a job, from 1 to the last, have exactly one owner each: following every group's source back
  from the last one leaves no gap and no overlap, and each owner was seen to do all of its steps.
- Two groups never train at once. A group lives while all of its members do: from when the last of them begins
  its first step to when the first of them begins its last one that it completes. (A worker may complete one
  operation later, when it was stopped or cut off after the others had given their part.) No host has workers
  of two groups at once, whatever they do.

**The loss continues from the checkpoint**: every step that any worker reports has the one right loss of that
step (``lesson.right_losses``), which depends on every step before it.

Apart from that: all members of a group name the same members in the same order, as many as the job allows; a
quiet burst starts no worker; every wait ends in time; every process ends with the exit code that its end must
have; no process and no record is left; nothing of our own code's insides is printed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, islice, pairwise

from chaos.journal import Group, Life
from chaos.lesson import TOLERANCE, right_losses
from chaos.plan import Job


@dataclass(frozen=True)
class Wait:
    """Something that had to happen. ``took_s`` None: it did not, within ``limit_s``."""

    what: str
    limit_s: float
    took_s: float | None


@dataclass(frozen=True)
class Ended:
    """A command that ended. ``expected`` are the exit codes that it may have."""

    host: str
    what: str
    code: int
    expected: tuple[int, ...]
    said: str = ""  # its last line


@dataclass(frozen=True)
class Window:
    """A quiet time, in CLOCK_MONOTONIC: no worker may start or end in it."""

    begin: float
    end: float
    why: str


@dataclass
class Evidence:
    """Everything that is known of one job. ``left``: processes and records that outlived it."""

    job: Job
    lives: list[Life] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    noise: list[str] = field(default_factory=list)  # what commands have printed and nobody should see
    errors: list[str] = field(default_factory=list)  # of the lab itself


@dataclass(frozen=True)
class Violation:
    """A promise that was broken; ``kind`` is one word of ``RULES``."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


@dataclass(frozen=True)
class Counts:
    """What a job came to."""

    rounds: int  # groups that trained
    starts: int  # of workers
    steps: int  # committed
    redone: int  # steps that more than one group did, none of it committed before the last one
    thrown_away: int  # newer checkpoints of older generations
    restarts: int  # as torch counts them, the largest of any worker


@dataclass
class Work:
    """A group with what its workers wrote."""

    group: Group
    lives: list[Life]

    @property
    def generation(self) -> int:
        return self.group[0]

    @property
    def done(self) -> set[int]:
        return {s.step for life in self.lives for s in life.steps}

    @property
    def committed(self) -> int:
        return max((step for life in self.lives for step in life.committed), default=0)

    @property
    def saved(self) -> set[int]:
        return {step for life in self.lives for step in life.saved}

    @property
    def source(self) -> tuple[int, int]:
        return self.lives[0].source

    @property
    def span(self) -> tuple[float, float] | None:
        """When all members trained; None where they never did."""
        if {life.host for life in self.lives if life.steps} != set(self.group[1]):
            return None
        trained = [life for life in self.lives if life.steps]
        return max(x.steps[0].begin for x in trained), min(x.steps[-1].begin for x in trained)

    def __str__(self) -> str:
        return f"generation {self.generation} ({', '.join(self.group[1])})"


def works_of(lives: Iterable[Life]) -> list[Work]:
    """Return the groups by generation."""
    found: dict[Group, Work] = {}
    for life in lives:
        if life.group is not None:
            found.setdefault(life.group, Work(life.group, [])).lives.append(life)
    return sorted(found.values(), key=lambda work: work.group)


def judge(evidence: Evidence) -> list[Violation]:
    """Return every broken promise."""
    works = works_of(evidence.lives)
    found: list[Violation] = []
    for rule in (members, overlaps, commits, owners, losses):
        found += rule(evidence, works)
    found += outside(evidence)
    return found


def members(evidence: Evidence, works: list[Work]) -> Iterator[Violation]:
    """All members of a group agree on it, and it is as large as the job allows."""
    job = evidence.job
    for work in works:
        hosts = work.group[1]
        if not job.min_nodes <= len(hosts) <= job.hosts or len(set(hosts)) != len(hosts):
            yield Violation("members", f"{work} has not {job.min_nodes} to {job.hosts} members")
        for life in work.lives:
            if life.size != len(hosts) or hosts[life.rank : life.rank + 1] != (life.host,):
                yield Violation("members", f"{life.host} takes itself for rank {life.rank} of {work}")
        if len({life.host for life in work.lives}) != len(work.lives):
            yield Violation("members", f"{work} had two workers on one host")
        if len({life.source for life in work.lives}) != 1:
            yield Violation("members", f"{work} does not agree on where it goes on from")
    trained = [work for work in works if work.done]
    for one, other in pairwise(trained):
        if one.generation == other.generation:
            yield Violation("members", f"two groups of one generation trained: {one}, {other}")


def overlaps(evidence: Evidence, works: list[Work]) -> Iterator[Violation]:
    """No two groups train at once, and no host has workers of two groups at once."""
    spans = [(work, span) for work in works if (span := work.span) is not None]
    for (one, (begin, end)), (other, (start, stop)) in combinations(spans, 2):
        both = min(end, stop) - max(begin, start)
        if both > 0:
            yield Violation("at once", f"{one} and {other} both trained for {both:.2f} s")
    by_host: dict[str, list[Life]] = {}
    for life in sorted(evidence.lives, key=lambda life: life.start):
        by_host.setdefault(life.host, []).append(life)
    for host, lives in by_host.items():
        for one_life, next_life in pairwise(lives):
            if one_life.last > next_life.start:
                late = one_life.last - next_life.start
                yield Violation("at once", f"{host}: a worker wrote {late:.2f} s after the next had started")


def commits(evidence: Evidence, works: list[Work]) -> Iterator[Violation]:
    """No group does again what an earlier one has committed, and none goes on from anything older."""
    best, by = 0, ""
    for work in works:
        if work.source[1] < best:
            yield Violation("twice", f"{work} goes on from step {work.source[1]}, but {by} committed {best}")
        again = sorted(step for step in work.done if step <= best)
        if again:
            yield Violation("twice", f"{work} did step {again[0]} again, which {by} had committed")
        if work.committed > best:
            best, by = work.committed, str(work)


def owners(evidence: Evidence, works: list[Work]) -> Iterator[Violation]:
    """Every step up to the last committed one has one owner, which was seen to do it."""
    by_generation = {work.generation: work for work in works if work.saved}
    for work in works:
        for life in work.lives:
            wanted = [life.source[1] + 1 + i for i in range(len(life.steps))]
            if [s.step for s in life.steps] != wanted:
                yield Violation("owners", f"{life.host} in {work} did not do its steps one after the other")
        generation, step = work.source
        origin = by_generation.get(generation)
        if (generation, step) != (0, 0) and (origin is None or step not in origin.saved):
            yield Violation("owners", f"{work} goes on from {work.source}, which nobody saved")
    last = max((w for w in works if w.committed), key=lambda w: w.generation, default=None)
    upto = last.committed if last is not None else 0
    while last is not None:
        generation, step = last.source
        missing = sorted(set(range(step + 1, upto + 1)) - last.done)
        if missing:
            yield Violation("owners", f"{last} owns step {missing[0]} and did not do it")
        upto, last = step, by_generation.get(generation) if generation < last.generation else None
    if upto:
        yield Violation("owners", f"steps 1 to {upto} have no owner")


def losses(evidence: Evidence, works: list[Work]) -> Iterator[Violation]:
    """Every step has the one right loss, whoever did it and after whatever."""
    longest = max((s.step for life in evidence.lives for s in life.steps), default=0)
    right = [0.0, *islice(right_losses(), longest)]
    for life in evidence.lives:
        for step in life.steps:
            if not abs(step.loss - right[step.step]) <= TOLERANCE * abs(
                right[step.step]
            ):  # also where it is NaN
                what = f"step {step.step} has loss {step.loss!r}, not {right[step.step]!r}"
                yield Violation("loss", f"{life.host} in generation {(life.group or (0,))[0]}: {what}")
                break  # the later ones follow from it


def outside(evidence: Evidence) -> Iterator[Violation]:
    """What was seen from outside: waits, windows, exit codes, what is left."""
    for wait in evidence.waits:
        if wait.took_s is None:
            yield Violation("hang", f"{wait.what}: not within {wait.limit_s:g} s")
    for window in evidence.windows:
        started = [life for life in evidence.lives if window.begin < life.start < window.end]
        if started:
            after = started[0].start - window.begin
            yield Violation("restart", f"{window.why} cost a restart after {after:.1f} s")
    for ended in evidence.ended:
        if ended.code not in ended.expected:
            wanted = " or ".join(map(str, ended.expected)) or "no end at all"
            yield Violation(
                "exit", f"{ended.host}: {ended.what} ended with {ended.code}, not {wanted}: {ended.said}"
            )
    if (
        evidence.job.ending == "finish"
        and not evidence.errors
        and not any(w.took_s is None for w in evidence.waits)
    ):
        finished = {life.host for life in evidence.lives if life.finished}
        if len(finished) != evidence.job.hosts:
            yield Violation("finish", f"only {', '.join(sorted(finished)) or 'nobody'} finished the training")
    for line in evidence.left:
        yield Violation("left", line)
    for line in evidence.noise:
        yield Violation("noise", line)
    for line in evidence.errors:
        yield Violation("lab", line)


def count(evidence: Evidence) -> Counts:
    """Return what the job came to."""
    works = works_of(evidence.lives)
    steps = max((work.committed for work in works), default=0)
    doers: dict[int, int] = {}
    for work in works:
        for step in work.done:
            doers[step] = doers.get(step, 0) + 1
    return Counts(
        rounds=sum(bool(work.done) for work in works),
        starts=len(evidence.lives),
        steps=steps,
        redone=sum(n > 1 for n in doers.values()),
        thrown_away=sum(life.held[1] > life.source[1] for life in evidence.lives),
        restarts=max((life.restarts for life in evidence.lives), default=0),
    )
