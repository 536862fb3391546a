"""From the command to the workers on three hosts: ours, and torchrun that is told everything by hand."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench.job import BY_HAND, Way, note_down, running
from bench.measure import Chapter, Series, Wanted
from tests.lab.cluster import Cluster, cluster
from tests.lab.host import Command, Host
from tests.lab.runs import launch, torchrun

LAUNCH = "avahi-gpu launch --nnodes 3"
PLUGIN = "torchrun --rdzv-backend=avahi"
STATIC = "torchrun, all by hand (static)"
HOSTS = 3
RATIO = 1.05  # wanted, against all by hand
WITHIN_S = 120.0
WORKER = Path(__file__).with_name("worker.py")

_FIRST = re.compile(r"first line of rank \d+ at ([\d.]+)")
_READY = re.compile(r"group ready on rank \d+ at ([\d.]+)")


def by_launch(_lab: Cluster, _host: Host) -> tuple[Command, Mapping[str, str]]:
    return launch("--nnodes", str(HOSTS), str(WORKER)), {}


def by_plugin(_lab: Cluster, _host: Host) -> tuple[Command, Mapping[str, str]]:
    words = (f"--nnodes={HOSTS}", "--nproc-per-node=1", "--rdzv-backend=avahi", "--rdzv-id=bench")
    return torchrun(*words, str(WORKER)), {}


def by_hand(lab: Cluster, host: Host) -> tuple[Command, Mapping[str, str]]:
    words = (
        f"--nnodes={HOSTS}",
        "--nproc-per-node=1",
        f"--node-rank={host.number - 1}",
        f"--master-addr={lab[0].address}",
        "--master-port=29500",
    )
    return torchrun(*words, str(WORKER)), BY_HAND


WAYS: dict[str, Way] = {LAUNCH: by_launch, PLUGIN: by_plugin, STATIC: by_hand}


def measure(runs: int, tell: Callable[[str], None]) -> Iterator[Chapter]:
    """Start the same job on all hosts at once, by all ways in turn, so that noise hits all alike."""
    wanted = {LAUNCH: Wanted(ratio=RATIO), PLUGIN: Wanted(ratio=RATIO), STATIC: None}
    first = {name: Series(name, wanted=wanted[name]) for name in WAYS}
    ready = {name: Series(name) for name in WAYS}
    about = "from the command, typed on three hosts at once, to the last worker's "
    chapters = (
        Chapter(
            "start",
            "Start of a job on three hosts, first line of the workers",
            about + "first line",
            list(first.values()),
            STATIC,
        ),
        Chapter(
            "start-group",
            "Start of a job on three hosts, process group formed",
            about + "process group of gloo, its own import of torch included",
            list(ready.values()),
            STATIC,
        ),
    )
    with cluster(HOSTS) as lab:
        tell("start, rehearsal: torch is read from the disk")
        time_start(lab, by_hand)
        names = list(WAYS)
        for run in range(runs):
            # each way is first, second and last equally often: whoever follows a job finds the machine warm
            for name in names[run % len(names) :] + names[: run % len(names)]:
                tell(f"start, run {run + 1} of {runs}: {name}")
                seconds = time_start(lab, WAYS[name])
                for series, value in zip((first[name], ready[name]), seconds, strict=True):
                    series.add(value)
            yield from chapters


def time_start(lab: Cluster, way: Way) -> tuple[float | str, float | str]:
    """Return the seconds to the last worker's first line and to the last one's process group, or why not."""
    began = time.monotonic()
    with running(lab, way) as job:
        try:
            codes: object = job.codes(WITHIN_S)
        except AssertionError:
            codes = f"nothing within {WITHIN_S:g} s"
        output = "\n".join(follower.output for follower in job.followers)
        first, ready = (sorted(map(float, what.findall(output))) for what in (_FIRST, _READY))
        if codes != [0] * HOSTS or len(first) != HOSTS or len(ready) != HOSTS:
            note_down(f"a start ended with {codes}", job.transcript())
            return (f"ended with {codes}",) * 2
    return first[-1] - began, ready[-1] - began
