"""A cable that is out for a moment and back again: training is wanted to go on as if nothing had been."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from bench.job import Way, note_down
from bench.measure import Chapter, Series, Wanted
from bench.recovery import GROUP_TIMEOUT_S
from bench.trainings import (
    ABOUT_C10D,
    C10D,
    HOSTS,
    LOST_AFTER_S,
    OURS,
    POLL_S,
    NoTraining,
    Training,
    by_c10d,
    by_launch,
    trained,
)

OUT_S = 4.0
WITHIN_S = 40.0  # more than that is a job that stands
WATCH_S = OUT_S + LOST_AFTER_S + 2.0  # a restart that comes late is one as well
CALM_S = 2.0  # between two outages of one job
VICTIMS = {"a member's cable": 2, "the leader's cable": 0}
C10D_PATIENT, C10D_SAME = C10D, f"{C10D}, process group's timeout {GROUP_TIMEOUT_S:g} s"


def measure(runs: int, c10d_runs: int, tell: Callable[[str], None]) -> Iterator[Chapter]:
    """Pull a member's cable and put it back, then the leader's, in one job; ``runs`` times."""
    ours = {victim: Series(f"{OURS}: {victim}", wanted=Wanted(always="no restart")) for victim in VICTIMS}
    ways: list[tuple[Way, dict[str, Series], int]] = [(by_launch(), ours, runs)]
    for name, timeout_s in ((C10D_PATIENT, 0.0), (C10D_SAME, GROUP_TIMEOUT_S)):
        ways.append((by_c10d(timeout_s), {v: Series(f"{name}: {v}") for v in VICTIMS}, c10d_runs))
    chapter = Chapter(
        "outage",
        f"A cable is out for {OUT_S:g} s, default settings",
        f"from the cut to the next step of training; after {OUT_S:g} s of silence TCP itself sends again "
        f"6.2 s after the cut. {ABOUT_C10D}",
        [series for _, by_victim, count in ways if count for series in by_victim.values()],
    )
    for run in range(runs):
        for way, by_victim, count in ways:
            if run >= count:
                continue
            tell(f"outage, run {run + 1} of {count}: {next(iter(by_victim.values())).name.partition(':')[0]}")
            try:
                with trained(way) as training:
                    for victim, series in by_victim.items():
                        series.add(time_outage(training, VICTIMS[victim]))
            except NoTraining as failure:
                for series in by_victim.values():
                    series.add(str(failure))
            yield chapter


def time_outage(training: Training, victim: int) -> float | str:
    """Cut and heal; return the seconds to the next step, or in words what happened to the job."""
    runs = training.job.followers
    if training.ended(runs):
        return "job lost before"
    time.sleep(CALM_S)
    cut = time.monotonic()
    training.lab[victim].cut()
    time.sleep(max(0.0, cut + OUT_S - time.monotonic()))
    training.lab[victim].heal()
    healed = time.monotonic()
    found: float | str | None = None
    while found is None:
        now = time.monotonic()
        if training.ended(runs):
            found = f"job lost after {now - cut:.0f} s"
        elif training.restarts(cut):
            again = training.trains_again(HOSTS, runs, cut)
            if again is not None:
                found = f"restarted, next step after {again - cut:.1f} s"
        elif now > cut + WATCH_S:
            step = training.step_after(healed, runs)
            found = None if step is None else step - cut
        if found is None and now > cut + WITHIN_S:
            restarted = " after a restart" if training.restarts(cut) else ""
            found = f"no step within {WITHIN_S:g} s{restarted}"
        time.sleep(POLL_S)
    if isinstance(found, str):
        note_down(f"cable out: {found}", training.job.transcript())
    return found
