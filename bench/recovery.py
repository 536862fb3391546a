"""From the loss of a node to workers that run with two of three: ours, and torchrun's own c10d."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench.job import Way, note_down
from bench.measure import Chapter, Series, Wanted
from bench.trainings import (
    ABOUT_C10D,
    C10D,
    LOST_AFTER_S,
    OURS,
    POLL_S,
    NoTraining,
    Training,
    by_c10d,
    by_launch,
    trained,
)
from tests.lab.host import BASE, Host

SURVIVORS = 2
OURS_S = 40.0  # more than that is no recovery
IMPATIENT_S = 3.0  # the shorter --lost-after
GROUP_TIMEOUT_S = LOST_AFTER_S  # without one c10d's workers wait for a silent peer for half an hour


def cut(host: Host) -> None:
    """Pull the cable: nobody is told, both sides hear silence."""
    host.cut()


def kill(host: Host) -> None:
    """End every process of the job on a host by SIGKILL; its kernel closes their connections."""
    for pid in host.outer_pids():
        with suppress(OSError):  # it has died with its parent
            if pid != host.pid and Path(f"/proc/{pid}/comm").read_text().strip() not in BASE:
                os.kill(pid, signal.SIGKILL)


@dataclass(frozen=True)
class Fault:
    """What is done to which of the three hosts, and within how many seconds workers are wanted to run again.

    ``lost_after_s`` None: the default. ``beside``: whether c10d is measured beside it.
    """

    key: str
    name: str
    about: str
    victim: int
    strike: Callable[[Host], None]
    wanted_s: float | None
    lost_after_s: float | None = None
    beside: bool = True

    @property
    def way(self) -> Way:
        """Our command."""
        return by_launch(*([] if self.lost_after_s is None else ["--lost-after", f"{self.lost_after_s:g}"]))


SILENT = f"from the cut; {LOST_AFTER_S:g} s of silence pass before a node counts as lost (--lost-after)"
LOUD = "from SIGKILL, which broken connections tell at once"
FAULTS = (
    Fault("leader-cut", "the leader's cable is pulled", SILENT, 0, cut, LOST_AFTER_S + 3),
    Fault(
        "leader-cut-3",
        f"the leader's cable is pulled, --lost-after {IMPATIENT_S:g}",
        "from the cut",
        0,
        cut,
        IMPATIENT_S + 3,
        lost_after_s=IMPATIENT_S,
        beside=False,
    ),
    Fault("leader-killed", "the leader's processes are killed", LOUD, 0, kill, 4),
    Fault("member-cut", "a member's cable is pulled", SILENT, 2, cut, LOST_AFTER_S + 2.5),
    Fault("member-killed", "a member's processes are killed", LOUD, 2, kill, None),
)

FORMED, AGAIN, STEP = "new round", "workers run again", "next step of training"


@dataclass(frozen=True)
class Recovery:
    """Seconds from the fault to each event; in words where one is missed."""

    formed: float | str
    again: float | str
    step: float | str


def measure(runs: int, c10d_runs: int, c10d_s: float, tell: Callable[[str], None]) -> Iterator[Chapter]:
    """Lose a node in mid-training, ``runs`` times each way; c10d in between, as often as asked for."""
    for fault in FAULTS:
        wanted = None if fault.wanted_s is None else Wanted(median=fault.wanted_s)
        formed, again, step = (Series(f"{OURS}: {what}") for what in (FORMED, AGAIN, STEP))
        again.wanted = wanted
        other = tuple(Series(f"{C10D}: {what}") for what in (AGAIN, STEP))
        about = (
            f"{fault.about}; to the first line of the last worker of the two others, before it imports torch"
        )
        chapter = Chapter(f"recovery-{fault.key}", f"Recovery: {fault.name}", about, [formed, again, step])
        if fault.beside and c10d_runs:
            chapter.series += other
            chapter.about += f"; {ABOUT_C10D}; and {GROUP_TIMEOUT_S:g} s as the process group's timeout"
        for run in range(runs):
            tell(f"recovery, {fault.name}, run {run + 1} of {runs}")
            found = time_recovery(fault, fault.way, OURS_S)
            formed.add(found.formed)
            again.add(found.again)
            step.add(found.step)
            yield chapter
            if fault.beside and run < c10d_runs:
                tell(f"recovery, {fault.name}, c10d, run {run + 1} of {c10d_runs}, at most {c10d_s:g} s")
                found = time_recovery(fault, by_c10d(GROUP_TIMEOUT_S), c10d_s)
                other[0].add(found.again)
                other[1].add(found.step)
                yield chapter


def time_recovery(fault: Fault, way: Way, within_s: float) -> Recovery:
    """Train on three fresh hosts, lose one, watch the two others."""
    try:
        with trained(way) as training:
            return watch_recovery(training, fault, within_s)
    except NoTraining as failure:
        return Recovery(*[str(failure)] * 3)


def watch_recovery(training: Training, fault: Fault, within_s: float) -> Recovery:
    """Strike, and wait for what follows."""
    survivors = training.others(fault.victim)
    struck = time.monotonic()
    fault.strike(training.lab[fault.victim])
    missed = f"nothing within {within_s:g} s"
    while training.trains_again(SURVIVORS, survivors, struck) is None:
        now = time.monotonic()
        if training.ended(survivors):
            missed = f"job lost after {now - struck:.0f} s"
            break
        if now > struck + within_s:
            break
        time.sleep(POLL_S)
    found = [
        what(SURVIVORS, survivors, struck)
        for what in (training.round_of, training.running_again, training.trains_again)
    ]
    if found[-1] is None:
        note_down(f"{fault.name}: {missed}", training.job.transcript())
    return Recovery(*(missed if at is None else at - struck for at in found))
