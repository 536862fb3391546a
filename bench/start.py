"""From the command to the workers on three hosts: ours, and torchrun that is told everything by hand."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench.job import BY_HAND, Way, running
from bench.measure import Chapter, Series
from tests.lab.cluster import Cluster, cluster
from tests.lab.host import Command, Host
from tests.lab.runs import launch, torchrun

LAUNCH = "avahi-gpu launch --nnodes 3"
PLUGIN = "torchrun --rdzv-backend=avahi"
STATIC = "torchrun, all by hand (static)"
HOSTS = 3
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
    first = {name: Series(name) for name in WAYS}
    ready = {name: Series(name) for name in WAYS}
    with cluster(HOSTS) as lab:
        tell("start, rehearsal: torch is read from the disk")
        time_start(lab, by_hand)
        for run in range(runs):
            for name, way in WAYS.items():
                tell(f"start, run {run + 1} of {runs}: {name}")
                seconds = time_start(lab, way)
                first[name].add(seconds[0])
                ready[name].add(seconds[1])
    about = "from the command, typed on three hosts at once, to the last worker's "
    yield Chapter(
        "Start of a job on three hosts: first line", about + "first line", list(first.values()), STATIC
    )
    yield Chapter(
        "Start of a job on three hosts: process group",
        about + "process group of gloo, its own import of torch included",
        list(ready.values()),
        STATIC,
    )


def time_start(lab: Cluster, way: Way) -> tuple[float, float]:
    """Return the seconds to the last worker's first line, and to the last one's process group."""
    began = time.monotonic()
    with running(lab, way) as job:
        codes = job.codes(WITHIN_S)
        output = "\n".join(follower.output for follower in job.followers)
        first, ready = (sorted(map(float, what.findall(output))) for what in (_FIRST, _READY))
        if codes != [0] * HOSTS or len(first) != HOSTS or len(ready) != HOSTS:
            raise RuntimeError(f"the job ended with {codes}:\n{job.transcript()}")
    return first[-1] - began, ready[-1] - began
