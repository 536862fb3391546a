"""The rendezvous alone, without torch: three nodes start at the same moment and agree on a round."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from bench.measure import Chapter, Series
from tests.lab.cluster import Cluster, cluster
from tests.lab.jobs import Job

HOSTS = 3
WITHIN_S = 20.0


def measure(runs: int, tell: Callable[[str], None]) -> Iterator[Chapter]:
    """Let three nodes agree, again and again."""
    series = Series("three nodes, one round")
    with cluster(HOSTS) as lab:
        for run in range(runs):
            if run % 10 == 0:
                tell(f"agreement, runs {run + 1} to {min(run + 10, runs)} of {runs}")
            series.add(time_round(lab, run))
    about = (
        "from the start of three nodes at the same moment (bus, record, browse, election, mesh test) "
        "to the round on the last of them; interpreters run and have imported already"
    )
    yield Chapter("The rendezvous alone, without torch", about, [series])


def time_round(lab: Cluster, run: int) -> float | str:
    """Return the seconds from the start of three nodes to the last one's round."""
    with Job(lab.hosts, (HOSTS, HOSTS), job=f"bench-{run}") as job:
        began = time.monotonic()
        job.start()
        try:
            job.rounds(WITHIN_S)
        except AssertionError:
            return "no round"
        took = time.monotonic() - began
        for node in job.nodes:
            node.close("finished")
        return took
