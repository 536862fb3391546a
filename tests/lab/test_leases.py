"""No worker of a node that the others have given up lives into their next round, whatever its agent does."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from tests.lab.cluster import Cluster
from tests.lab.runs import JOB_S, launch, on_all, torchrun

pytestmark = [pytest.mark.lab, pytest.mark.timeout(120)]

# needs nobody, heeds no SIGTERM, and never ends: all hosts of the lab have one monotonic clock
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    print(f"work at {time.monotonic():.3f} in a world of {os.environ['WORLD_SIZE']}", flush=True)
    time.sleep(0.02)
"""


def moments(lines: list[str], size: int) -> list[float]:
    """Return when the workers of a round of ``size`` nodes worked."""
    words = [line.split() for line in lines if line.startswith("work at ")]
    return [float(w[2]) for w in words if w[-1] == str(size)]


@pytest.mark.parametrize(
    ("fault", "way"),
    [
        ("stopped", "torchrun"),
        ("cut", "launch"),
        pytest.param("stopped", "launch", marks=pytest.mark.faults),
        pytest.param("cut", "torchrun", marks=pytest.mark.faults),
    ],
)
def test_no_worker_of_a_lost_node_works_beside_the_next_round(
    make_cluster: Callable[..., Cluster], fault: str, way: str
) -> None:
    lab = make_cluster(3)
    for host in lab:
        host.write("/var/tmp/stubborn.py", STUBBORN)
    script = "/var/tmp/stubborn.py"
    command = launch("--nnodes", "2:3", "--job", "j", "--", script)
    if way == "torchrun":
        options = ["--nnodes=2:3", "--nproc-per-node=1", "--rdzv-backend=avahi", "--rdzv-id=j"]
        command = torchrun(*options, script)
    with on_all(lab.hosts, command) as job:
        for node in job.followers:
            node.wait_for("world of 3", JOB_S)
        agent = job[0].process.inner_pid
        assert agent is not None
        if fault == "stopped":
            os.kill(agent, signal.SIGSTOP)
        else:
            lab[0].cut()
        for node in job.followers[1:]:
            node.wait_for("world of 2", JOB_S)
        old, new = moments(job[0].lines, 3), moments(job[1].lines + job[2].lines, 2)
        print(f"{way}, {fault}: {min(new) - max(old):.2f} s in between")
        assert max(old) < min(new), f"worked {max(old) - min(new):.2f} s beside the others"
        os.kill(agent, signal.SIGCONT)
