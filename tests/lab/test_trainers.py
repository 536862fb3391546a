"""HF Trainer and Lightning under launch and torchrun: their pages as written, and the loss of the leader."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.lab.cluster import Cluster
from tests.lab.host import REPOSITORY
from tests.lab.pages import FOLDER, follow_page
from tests.lab.runs import JOB_S, launch, on_all

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(400)]

TRAIN_S = 3 * JOB_S  # they take as long to load as torch, and longer
HF = "docs/how-to/hugging-face-trainer.md"
LIGHTNING = "docs/how-to/lightning.md"
WHOLE = {"model.safetensors", "optimizer.pt", "scheduler.pt", "trainer_state.json"}
EXAMPLES = {HF: "hf_trainer.py", LIGHTNING: "lightning_trainer.py"}


def files_of(page: str) -> dict[str, str]:
    text = (REPOSITORY / "LICENSE").read_text()
    return {EXAMPLES[page]: (REPOSITORY / "examples" / EXAMPLES[page]).read_text(), "notes.txt": text}


def losses(output: str) -> list[float]:
    return [float(loss) for loss in re.findall(r"loss(?:': '| )([\d.]+)", output)]


@pytest.mark.parametrize(
    ("page", "heading", "folder", "saved"),
    [
        (HF, "The Trainer of Hugging Face on several machines", "checkpoint-30", WHOLE),
        pytest.param(
            LIGHTNING,
            "Lightning on several machines",
            "",
            {"step=60.ckpt"},
            marks=pytest.mark.faults,
        ),
    ],
)
def test_two_nodes_follow_the_page(
    shared_cluster3: Cluster, page: str, heading: str, folder: str, saved: set[str]
) -> None:
    hosts = shared_cluster3.hosts[:2]
    (done,) = follow_page(page, hosts, under=heading, files=files_of(page), within_s=TRAIN_S)

    (output,) = [
        output for output in done.outputs if "training starts with 2 processes on gpu-node-1" in output
    ]
    found = losses(output)
    assert found[-1] < found[0] - 0.3, output
    for host in hosts:  # any of them may be lost
        listing = host.run(["ls", f"{FOLDER}/trained/{folder}"], check=True).stdout
        assert saved <= set(listing.split()), host


@pytest.mark.faults
@pytest.mark.parametrize(("page", "resumed"), [(HF, "checkpoint-30"), (LIGHTNING, "step=60.ckpt")])
def test_plain_torchrun_goes_on_where_launch_ended(shared_cluster3: Cluster, page: str, resumed: str) -> None:
    done = follow_page(page, shared_cluster3.hosts[:2], files=files_of(page), within_s=TRAIN_S)

    output = "".join(done[1].outputs)
    assert f"training resumes from trained/{resumed} with 2 processes on gpu-node-1" in output


@pytest.mark.faults
@pytest.mark.parametrize("page", [HF, LIGHTNING])
def test_the_training_goes_on_without_the_leader(cluster3: Cluster, page: str, tmp_path: Path) -> None:
    leader, member = cluster3.hosts[:2]
    words = [
        f"examples/{EXAMPLES[page]}",
        "--steps",
        "600",
        "--save-every",
        "20",
        "--output",
        "/var/tmp/trained",
    ]
    if page == HF:
        words += ["--data", "LICENSE"]
    with on_all([leader, member], launch("--nnodes", "1:2", *words)) as job:
        job[0].wait_for("training starts with 2", TRAIN_S)
        mark = "checkpoint-40/trainer_state.json" if page == HF else "step=40.ckpt"
        waiting = member.run(
            ["sh", "-c", f"until [ -e /var/tmp/trained/{mark} ]; do sleep 0.05; done"], timeout=TRAIN_S
        )
        assert waiting.returncode == 0
        leader.cut()
        assert job[1].wait(TRAIN_S) == 0
        job[1].wait_for(r"training resumes from /var/tmp/trained/")
        resumed = re.search(r"training resumes from \S+?(\d+)(?:\.ckpt)? with 1 processes", job[1].output)
        assert resumed and int(resumed[1]) >= 40 and int(resumed[1]) % 20 == 0
    # the node that was cut off comes back to the furthest checkpoint
    leader.heal()
    more = [word if word != "600" else "620" for word in words]
    with on_all([leader, member], launch("--nnodes", "2", *more)) as both:
        assert both.codes(TRAIN_S) == [0, 0]
        assert re.search(
            r"training resumes from \S+600(\.ckpt)? with 2 processes on gpu-node-1", both[0].output
        )
