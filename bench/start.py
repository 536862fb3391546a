"""From the command to the workers on three hosts: ours, and torchrun that is told everything by hand."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench.measure import Chapter, Series
from tests.lab.cluster import Cluster, cluster
from tests.lab.host import Command, Host
from tests.lab.runs import Runs, launch, torchrun

LAUNCH = "avahi-gpu launch --nnodes 3"
PLUGIN = "torchrun --rdzv-backend=avahi"
STATIC = "torchrun, all by hand (static)"
HOSTS = 3
WITHIN_S = 120.0
WORKER = Path(__file__).with_name("worker.py")

Way = tuple[Command, Mapping[str, str]]  # a command, and what is added to its environment

_FIRST = re.compile(r"first line of rank \d+ at ([\d.]+)")
_READY = re.compile(r"group ready on rank \d+ at ([\d.]+)")


def by_launch(_lab: Cluster, _host: Host) -> Way:
    return launch("--nnodes", str(HOSTS), str(WORKER)), {}


def by_plugin(_lab: Cluster, _host: Host) -> Way:
    words = (f"--nnodes={HOSTS}", "--nproc-per-node=1", "--rdzv-backend=avahi", "--rdzv-id=bench")
    return torchrun(*words, str(WORKER)), {}


def by_hand(lab: Cluster, host: Host) -> Way:
    words = (
        f"--nnodes={HOSTS}",
        "--nproc-per-node=1",
        f"--node-rank={host.number - 1}",
        f"--master-addr={lab[0].address}",
        "--master-port=29500",
    )
    return torchrun(*words, str(WORKER)), {"GLOO_SOCKET_IFNAME": "eth0"}


WAYS = {LAUNCH: by_launch, PLUGIN: by_plugin, STATIC: by_hand}


def measure(runs: int, tell: Callable[[str], None]) -> Iterator[Chapter]:
    """Start the same job on all hosts at once, by all ways in turn."""
    first = {name: Series(name) for name in WAYS}
    ready = {name: Series(name) for name in WAYS}
    with cluster(HOSTS) as lab:
        for run in range(-1, runs):
            for name in WAYS:
                tell(f"start, run {run + 1} of {runs}: {name}" if run >= 0 else f"start, rehearsal: {name}")
                seconds = time_start(lab, name)
                if run >= 0:  # the first has read torch from the disk for all others
                    first[name].add(seconds[0])
                    ready[name].add(seconds[1])
    about = "from the command, typed on three hosts at once, to the last worker's "
    yield Chapter(
        "Start of a job on three hosts: first line", about + "first line", list(first.values()), STATIC
    )
    yield Chapter(
        "Start of a job on three hosts: process group",
        about + "process group of gloo, its import of torch included",
        list(ready.values()),
        STATIC,
    )


def time_start(lab: Cluster, name: str) -> tuple[float, float]:
    """Return the seconds to the last worker's first line, and to the last one's process group."""
    commands = [(host, *WAYS[name](lab, host)) for host in lab]
    began = time.monotonic()
    with Runs([(host, command) for host, command, _ in commands], env=commands[0][2]) as job:
        codes = job.codes(WITHIN_S)
        output = "\n".join(follower.output for follower in job.followers)
        first, ready = (sorted(map(float, what.findall(output))) for what in (_FIRST, _READY))
        if codes != [0] * HOSTS or len(first) != HOSTS or len(ready) != HOSTS:
            raise RuntimeError(f"{name} failed with {codes}:\n{job.transcript()}")
    return first[-1] - began, ready[-1] - began
