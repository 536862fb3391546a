"""Histories of jobs as chaos/train.py would write them down, made from arbitrary choices. Not a test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from hypothesis import strategies as st

from chaos.journal import Life, Mark, Step
from chaos.judge import Evidence
from chaos.lesson import right_losses
from chaos.plan import Job
from chaos.train import SAVE_EVERY

LOSSES = [0.0, *islice(right_losses(), 200)]
STEP_S = 0.1


@dataclass(frozen=True)
class Chapter:
    """One group. ``writers`` have written its last checkpoint; where there are any, it is not committed."""

    members: tuple[str, ...]
    steps: int
    writers: frozenset[str] = frozenset()


@dataclass
class Disks:
    """What the hosts remember."""

    generation: dict[str, int] = field(default_factory=dict)
    checkpoint: dict[str, Mark] = field(default_factory=dict)


def job_of(hosts: int, min_nodes: int = 0) -> Job:
    return Job(1, hosts, min_nodes or hosts // 2 + 1, "launch", 5.0, "ctrl-c")


def names(hosts: int) -> list[str]:
    return [f"gpu-node-{number}" for number in range(1, hosts + 1)]


def tell(job: Job, chapters: Sequence[Chapter]) -> Evidence:
    """Return the evidence of these groups, one after the other."""
    disks = Disks()
    now = 100.0
    lives: list[Life] = []
    for chapter in chapters:
        group, now = live(chapter, disks, now)
        lives += group
    return Evidence(job, lives=sorted(lives, key=lambda life: life.start))


def live(chapter: Chapter, disks: Disks, now: float) -> tuple[list[Life], float]:
    """Return the lives of one group that starts at ``now``, and when it has ended."""
    generation = 1 + max(disks.generation.get(host, 0) for host in chapter.members)
    source = max(disks.checkpoint.get(host, (0, 0)) for host in chapter.members)
    lives = []
    for rank, host in enumerate(chapter.members):
        life = Life(host, now + rank / 100, rank, len(chapter.members))
        life.group, life.source = (generation, chapter.members), source
        life.held = disks.checkpoint.get(host, (0, 0))
        lives.append(life)
        disks.generation[host] = generation
    step = source[1]
    save(lives, disks, generation, step, None)
    now += 1.0
    for number in range(chapter.steps):
        step += 1
        for life in lives:
            begin = now + life.rank / 1000
            life.steps.append(Step(step, LOSSES[step], begin, now + STEP_S / 2))
        now += STEP_S
        if step % SAVE_EVERY == 0:
            last = number == chapter.steps - 1
            save(lives, disks, generation, step, chapter.writers if last and chapter.writers else None)
    for life in lives:
        life.last = now
    return lives, now + 1.0


def save(lives: list[Life], disks: Disks, generation: int, step: int, writers: frozenset[str] | None) -> None:
    """Let ``writers`` write a checkpoint; all (None) commit it."""
    for life in lives:
        if writers is None or life.host in writers:
            life.saved.append(step)
            disks.checkpoint[life.host] = (generation, step)
        if writers is None:
            life.committed.append(step)


@st.composite
def histories(draw: st.DrawFn) -> Evidence:
    """Jobs of 3 to 6 hosts with up to 6 groups, each a majority, each broken off anywhere."""
    hosts = draw(st.integers(3, 6))
    job = job_of(hosts, draw(st.integers(hosts // 2 + 1, hosts)))
    chapters = []
    for _ in range(draw(st.integers(1, 6))):
        members = draw(st.permutations(names(hosts)))[: draw(st.integers(job.min_nodes, hosts))]
        writers = draw(st.sets(st.sampled_from(members), max_size=len(members) - 1))
        chapters.append(Chapter(tuple(members), draw(st.integers(0, 12)), frozenset(writers)))
    return tell(job, chapters)
