"""Fine-tuning with LoRA on virtual hosts: the page as it is written, and a job that loses its leader."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.cluster import Cluster
from tests.lab.host import REPOSITORY
from tests.lab.pages import FOLDER, follow_page
from tests.lab.runs import JOB_S, Runs, launch

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(400)]

PAGE = "docs/how-to/finetune-a-model.md"
SCRIPT = "examples/finetune_lora.py"
TRAIN_S = 3 * JOB_S  # transformers and peft take as long to load as torch
ADAPTER_BYTES = 16384 * 4  # as rank 0 says
MODEL_BYTES = 123328 * 4
OPTIONS = ["--batch-size", "4", "--at-once", "4", "--block", "64", "--lr", "0.005"]


def losses(output: str) -> dict[int, float]:
    """Return the loss of every step."""
    return {int(step): float(loss) for step, loss in re.findall(r"step (\d+) loss ([\d.]+) in", output)}


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def falls(found: dict[int, float]) -> bool:
    """Return whether the last steps are clearly better than the first."""
    steps = sorted(found)
    return mean([found[s] for s in steps[-5:]]) < found[steps[0]] - 1.0


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a Llama, made on the spot."""
    folder = tmp_path_factory.mktemp("models") / "tiny-llama"
    subprocess.run([sys.executable, REPOSITORY / "examples/tiny_llama.py", folder], check=True, timeout=JOB_S)
    return folder


@pytest.mark.faults
def test_two_nodes_follow_the_page_and_hold_the_same_adapter(shared_cluster3: Cluster) -> None:
    hosts = shared_cluster3.hosts[:2]
    files = {
        name: (REPOSITORY / "examples" / name).read_text() for name in ("finetune_lora.py", "tiny_llama.py")
    }
    sent = [int(host.read("/sys/class/net/eth0/statistics/tx_bytes")) for host in hosts]
    notes = (REPOSITORY / "LICENSE").read_text()
    done = follow_page(PAGE, hosts, files={**files, "notes.txt": notes}, within_s=TRAIN_S)

    trained, used = done[0], done[1]
    (output,) = [output for output in trained.outputs if "training starts" in output]
    assert sorted(losses(output)) == list(range(1, 41))
    assert falls(losses(output)), output
    assert "16384 of 123328 parameters learn: 0.066 MB of gradients per step" in output
    # two nodes send each other the gradients once a step; the rest is the start. The whole model were 20 MB
    for host, before in zip(hosts, sent, strict=True):
        after = int(host.read("/sys/class/net/eth0/statistics/tx_bytes"))
        assert 40 * ADAPTER_BYTES < after - before < 60 * ADAPTER_BYTES + MODEL_BYTES
    adapter = f"{FOLDER}/lora/adapter/adapter_model.safetensors"
    sums = {host.run(["sha256sum", adapter], check=True).stdout for host in hosts}
    assert len(sums) == 1
    assert "The network" in used.outputs[0]


def test_a_node_finetunes_on_when_the_leaders_cable_is_cut(cluster3: Cluster, tiny_llama: Path) -> None:
    leader, member = cluster3.hosts[:2]
    words = [
        SCRIPT,
        "--model",
        str(tiny_llama),
        "--data",
        "LICENSE",
        "--checkpoint",
        "/var/tmp/lora",
        *OPTIONS,
    ]
    words += ["--steps", "240", "--save-every", "10"]
    commands = [
        (leader, launch("--nnodes", "1:2", *words)),
        (member, launch("--nnodes", "1:2", *words, "--share", "3")),
    ]
    with Runs(commands) as job:
        job[0].wait_for("step 12 ", TRAIN_S)
        leader.cut()

        assert job[1].wait(TRAIN_S) == 0
        resumed = job[1].lines[job[1].wait_for("training resumes after step")]
        assert "with 1 processes, rank 0 on gpu-node-2" in resumed
        step = int(resumed.split("after step ")[1].split()[0])
        assert step % 10 == 0 and 10 <= step < 240
        before, after = losses(job[0].output), losses(job[1].output)
        assert sorted(after) == list(range(step + 1, 241))
        assert falls({**before, **after})
        assert job[1].wait_for("training ends after step 240")
        assert member.run(["ls", "/var/tmp/lora"]).stdout.split() == ["adapter", "checkpoint.pt"]
        assert "Traceback" not in job[1].output.split("training resumes")[1]


@pytest.mark.faults
def test_training_does_not_depend_on_the_number_of_nodes_and_their_shares(
    shared_cluster3: Cluster, tiny_llama: Path
) -> None:
    one, two = shared_cluster3.hosts[:2]
    text = (REPOSITORY / "LICENSE").read_text()
    lines = "\n".join(json.dumps({"text": part}) for part in text.split("\n\n"))
    for host in (one, two):
        host.write("/var/tmp/notes.jsonl", lines)
    words = [SCRIPT, "--model", str(tiny_llama), "--data", "/var/tmp/notes.jsonl", "--steps", "60", *OPTIONS]
    alone = one.run(
        launch("--nnodes", "1", *words, "--checkpoint", "/var/tmp/alone"), timeout=TRAIN_S, check=True
    )
    words += ["--checkpoint", "/var/tmp/both"]
    uneven = [(one, ["--share", "3"]), (two, ["--at-once", "1", "--recompute"])]
    with Runs([(host, launch("--nnodes", "2", *words, *more)) for host, more in uneven]) as both:
        assert both.codes(TRAIN_S) == [0, 0]
        expected, found = losses(alone.stdout), losses(both[0].output)
    assert sorted(found) == sorted(expected) == list(range(1, 61))  # more than one epoch
    assert max(abs(found[step] - expected[step]) for step in found) < 0.01


@pytest.mark.faults
def test_a_node_with_other_data_is_named(shared_cluster3: Cluster, tiny_llama: Path) -> None:
    one, two = shared_cluster3.hosts[:2]
    one.write("/var/tmp/own.txt", "a text " * 100)
    two.write("/var/tmp/own.txt", "another text " * 100)
    words = [SCRIPT, "--model", str(tiny_llama), "--data", "/var/tmp/own.txt", *OPTIONS]
    with Runs([(host, launch("--nnodes", "2", *words)) for host in (one, two)]) as job:
        assert job.codes(TRAIN_S) == [1, 1]
        for node in job.followers:
            assert "gpu-node-2: other data than on gpu-node-1; copy it from there" in node.output
            assert "Traceback" not in node.output


@pytest.mark.faults
@pytest.mark.parametrize("missing", ["peft", "transformers"])
def test_a_library_that_is_missing_is_named(missing: str) -> None:
    code = (
        f"import runpy, sys; sys.modules['{missing}'] = None; runpy.run_path('{SCRIPT}', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=JOB_S,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(
        "On every node, where torch is: pip install transformers peft"
    )
    assert missing in done.stderr.splitlines()[-1]
