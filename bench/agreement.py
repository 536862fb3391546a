"""The rendezvous alone, without torch: nodes start at the same moment and agree on a round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bench.measure import Chapter, Series, Wanted
from bench.nodes import loaded, time_round
from tests.lab.cluster import cluster

HOSTS = 3
MEDIAN_S, TAIL_S = 1.3, 1.6  # wanted
PER_HOST_S = 0.1  # wanted of every further host

ABOUT = (
    "from the start of all nodes at the same moment (bus, record, browse, election, mesh test) to the round "
    "on the last of them; interpreters run and have imported already"
)


def measure(runs: int, tell: Callable[[str], None]) -> Iterator[Chapter]:
    """Let three nodes agree, again and again."""
    series = Series("three nodes, one round", wanted=Wanted(median=MEDIAN_S, tail=TAIL_S))
    chapter = Chapter("agreement", "The rendezvous alone, without torch", ABOUT, [series])
    with cluster(HOSTS) as lab, loaded(lab.hosts) as nodes:
        time_round(nodes, "rehearsal")
        for run in range(runs):
            if run % 10 == 0:
                tell(f"agreement, runs {run + 1} to {min(run + 10, runs)} of {runs}")
            series.add(time_round(nodes, f"bench-{run}"))
            yield chapter


def measure_sizes(sizes: Sequence[int], runs: int, tell: Callable[[str], None]) -> Iterator[Chapter]:
    """Let few and many nodes agree: how much longer each further host makes it."""
    rounds = {size: Series(f"{size} hosts") for size in sizes}
    growth = Series("each further host", wanted=Wanted(median=PER_HOST_S))
    chapter = Chapter(
        "sizes",
        "Time to the first round by the number of hosts",
        f"{ABOUT}; all hosts share the cores of one machine",
        list(rounds.values()),
    )
    smallest = min(sizes)
    for size, series in rounds.items():
        with cluster(size) as lab, loaded(lab.hosts) as nodes:
            time_round(nodes, "rehearsal")
            for run in range(runs):
                tell(f"sizes, {size} hosts, run {run + 1} of {runs}")
                series.add(time_round(nodes, f"bench-{run}"))
                yield chapter
    few, many = rounds[smallest], rounds[max(sizes)]
    if few.values:
        growth.name += f", {smallest} to {max(sizes)}"
        for seconds in many.values:
            growth.add((seconds - few.median) / (max(sizes) - smallest))
        for outcome in many.outcomes:
            growth.add(outcome)
        chapter.series.append(growth)
        yield chapter
