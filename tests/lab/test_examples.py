"""The example jobs on virtual hosts: what they promise about checkpoints."""

from __future__ import annotations

import re

import pytest

from tests.lab.cluster import Cluster
from tests.lab.runs import JOB_S, TRAIN, launch, on_all

pytestmark = [pytest.mark.lab, pytest.mark.torch]


def losses(output: str) -> dict[int, float]:
    """Return the loss of every step."""
    return {int(step): float(loss) for step, loss in re.findall(r"step (\d+) loss ([\d.]+)", output)}


@pytest.mark.faults
def test_training_goes_on_from_the_furthest_checkpoint_of_any_node(shared_cluster3: Cluster) -> None:
    """One node has trained alone, the other one's file is torn: both end with the same checkpoint."""
    lab = shared_cluster3
    file = "/var/tmp/new/folder/furthest.pt"
    lab[0].write(file, b"half a file of a full disk")
    options = ["--save-every", "50", "--checkpoint", file]
    with on_all([lab[1]], launch("--nnodes", "1", TRAIN, "--steps", "60", *options)) as alone:
        assert alone.codes() == [0]
        before = losses(alone[0].output)
    with on_all(lab.hosts[:2], launch("--nnodes", "2", TRAIN, "--steps", "90", *options)) as both:
        assert both.codes() == [0, 0]

        assert both[0].wait_for("gpu-node-1: /var/tmp/new/folder/furthest.pt is left aside")
        assert both[0].wait_for("training resumes after step 60 with 2 processes, rank 0 on gpu-node-1")
        after = losses(both[0].output)
    assert (min(before), max(before)) == (1, 60)
    assert (min(after), max(after)) == (61, 90)
    assert before[1] > 0.9  # three classes by guessing: ln 3 = 1.1
    assert after[90] < before[60] < before[30]
    digests = [lab[i].run(["sha256sum", file], check=True).stdout for i in range(2)]
    assert digests[0] == digests[1]
    leftovers = lab[0].run(["sh", "-c", f"ls {file}*"], check=True).stdout.split()
    assert leftovers == [file]

    done = launch("--nnodes", "1", TRAIN, "--steps", "90", *options)
    again = lab[1].run(done, check=True, timeout=JOB_S)
    assert "training resumes after step 90" in again.stdout
    assert losses(again.stdout) == {}
