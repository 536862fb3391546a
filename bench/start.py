"""From the command to the first line of the workers on three hosts: ours, and torchrun told everything."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.measure import Chapter, Series
from tests.lab.cluster import Cluster
from tests.lab.host import Command, Host
from tests.lab.process import Follower
from tests.lab.runs import Runs, launch, torchrun

LAUNCH = "avahi-gpu launch --nnodes 3"
PLUGIN = "torchrun --rdzv-backend=avahi"
STATIC = "torchrun, every address and rank by hand"
WITHIN_S = 120.0
SCRIPT = "/var/tmp/first_line.py"
FIRST = "first line of rank"
# no torch in it: what a worker does after its first line is the same for all
WORDS = f'import os\nprint("{FIRST}", os.environ["RANK"], flush=True)\n'


def measure(lab: Cluster, runs: int, tell: Callable[[str], None]) -> list[Chapter]:
    """Start the same command on all hosts at once; the last worker's first line counts."""
    for host in lab:
        host.write(SCRIPT, WORDS)
    series = {name: Series(name, STATIC) for name in (LAUNCH, PLUGIN)} | {STATIC: Series(STATIC)}
    commands: dict[str, Callable[[Host], Command]] = {
        LAUNCH: lambda _: launch("--nnodes", str(len(lab)), SCRIPT),
        PLUGIN: lambda _: torchrun(
            f"--nnodes={len(lab)}", "--nproc-per-node=1", "--rdzv-backend=avahi", "--rdzv-id=bench", SCRIPT
        ),
        STATIC: lambda host: torchrun(
            f"--nnodes={len(lab)}",
            "--nproc-per-node=1",
            f"--node-rank={host.number - 1}",
            f"--master-addr={lab[0].address}",
            "--master-port=29500",
            SCRIPT,
        ),
    }
    for run in range(runs):
        for name, command in commands.items():
            tell(f"start, run {run + 1} of {runs}: {name}")
            series[name].seconds.append(time_start(lab, command))
    about = "from the command, typed on all hosts at once, to the last worker's first line"
    return [Chapter("Start of a job on three hosts", about, list(series.values()))]


def time_start(lab: Cluster, command: Callable[[Host], Command]) -> float:
    """Return the seconds from the command to the last worker's first line."""
    began = time.monotonic()
    with Runs([(host, command(host)) for host in lab], env={"GLOO_SOCKET_IFNAME": "eth0"}) as job:
        last = max(moment_of(follower, FIRST) for follower in job.followers)
        if job.codes(WITHIN_S) != [0] * len(lab):
            raise RuntimeError(f"the job failed:\n{job.transcript()}")
    return last - began


def moment_of(follower: Follower, text: str, after: int = 0) -> float:
    """Return when a line that contains ``text`` came."""
    return follower.times[follower.wait_for(text, WITHIN_S, after=after)]
