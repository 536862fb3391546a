"""From a pulled cable to training that goes on with two of three nodes."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.measure import Chapter, Series
from bench.start import WITHIN_S, moment_of
from tests.lab.cluster import Cluster, cluster
from tests.lab.runs import TRAIN, launch, on_all

LEADER, MEMBER = "the leader's cable", "a member's cable"
STEPS = 60
OPTIONS = ["--steps", str(STEPS), "--slow", "0.05", "--save-every", "5", "--checkpoint", "/var/tmp/bench.pt"]


def measure(runs: int, tell: Callable[[str], None]) -> list[Chapter]:
    """Cut the cable in mid-training; the first step after it counts."""
    series = {LEADER: Series(LEADER), MEMBER: Series(MEMBER)}
    for run in range(runs):
        for name, victim in ((LEADER, 0), (MEMBER, 2)):
            tell(f"recovery, run {run + 1} of {runs}: {name}")
            with cluster(3) as lab:
                series[name].seconds.append(time_recovery(lab, victim))
    about = (
        "from the cut to the survivors' next step of training, resumed from the checkpoint; 5 s of silence "
        "until a node counts as lost (--lost-after) are part of it"
    )
    return [Chapter("A cable is pulled, --nnodes 2:3", about, list(series.values()))]


def time_recovery(lab: Cluster, victim: int) -> float:
    """Return the seconds from the cut to the first step with two nodes."""
    survivor = 1 if victim == 0 else 0
    with on_all(lab.hosts, launch("--nnodes", "2:3", TRAIN, *OPTIONS)) as job:
        job[0].wait_for("step 12 ", WITHIN_S)
        lab[victim].cut()
        cut = time.monotonic()
        resumed = job[survivor].wait_for("training resumes after step", WITHIN_S)
        return moment_of(job[survivor], "step ", after=resumed + 1) - cut
