"""``avahi-gpu bench`` on cables whose speed is known."""

from __future__ import annotations

import json
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.lab.cluster import Cluster, cluster
from tests.lab.runs import BIN, JOB_S, Runs, on_all

pytestmark = [pytest.mark.lab, pytest.mark.torch]

GOOD, BAD = 200.0, 20.0  # Mbit/s: slow enough for the busiest machine
KEY = "ab" * 32 + "\n"
ETHERNET = 0.941  # of each frame is payload of TCP (1448 of 1538 bytes)


def bench(*words: str) -> list[str | Path]:
    return [BIN / "avahi-gpu", "bench", *words]


def test_a_slow_cable_is_named_and_nothing_else_and_the_figures_are_those_of_the_cables(
    tmp_path: Path,
) -> None:
    with cluster(3) as lab:
        for host in lab:
            host.shape(BAD if host is lab[2] else GOOD)
            host.write("/etc/avahi-gpu/key", KEY)
            host.path("/etc/avahi-gpu/key").chmod(0o600)
        words = bench("--nnodes", "3", "--quick", "--json", "--model", "1M", "--dtype", "fp32")
        # two nodes share a folder and write the same file in the same moment
        pictures = [tmp_path / name for name in ("shared.svg", "shared.svg", "own.svg")]
        commands = [(host, [*words, "--svg", p]) for host, p in zip(lab, pictures, strict=True)]
        with Runs(commands) as runs:
            assert runs.codes() == [0, 0, 0]

        told = [json.loads(follower.lines[-1])["data"] for follower in runs.followers]

    assert all("cluster key" in follower.output for follower in runs.followers)
    assert told[0]["links"] == told[1]["links"] == told[2]["links"]
    data = told[0]
    assert len(data["links"]) == 6
    for link in data["links"]:
        bad = "gpu-node-3" in (link["from"], link["to"])
        carried = (BAD if bad else GOOD) * 1e6 * ETHERNET
        assert 0.6 * carried < link["bits_per_s"] < 1.2 * carried, link
        assert link["slow"] is True  # veth says that it is a card of 10 Gbit/s
        assert 0 < link["round_trip_best_s"] <= link["round_trip_s"] <= link["round_trip_p99_s"]
    assert "gpu-node-3" in data["summary"]
    named = [trouble for trouble in data["troubles"] if trouble.startswith("every link")]
    assert len(named) == 1 and named[0].startswith("every link to and from gpu-node-3 is slow")
    assert not any("gpu-node-1" in trouble or "gpu-node-2" in trouble for trouble in data["troubles"])

    reduced = data["all_reduce"]
    assert (reduced["backend"], reduced["ranks"], reduced["omitted"]) == ("gloo", 3, "")
    last = reduced["sizes"][-1]
    assert last["busbw_gb_per_s"] == pytest.approx(4 / 3 * last["algbw_gb_per_s"])
    # no more than the slow cable carries, and half of it at least where all of it is payload
    assert last["bytes"] >= 1 << 17
    assert last["busbw_gb_per_s"] * 8e3 < 1.2 * BAD
    (gradients,) = data["gradients"]
    assert (gradients["bytes"], gradients["measured"]) == (4_000_000, True)
    assert gradients["seconds"] > 4e6 * 4 / 3 * 8 / (1.2 * BAD * 1e6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own.svg", "shared.svg"]
    for picture in pictures:
        assert "gpu-node-3" in picture.read_text()
        ElementTree.fromstring(picture.read_text())


def test_without_torch_tcp_is_measured_and_the_reason_is_told(shared_cluster3: Cluster) -> None:
    """The one that leads shows the tables, and the others what matters."""
    lab = shared_cluster3
    lab[1].write("/etc/lab/torch.py", "raise ModuleNotFoundError(\"No module named 'torch'\")\n")
    line = bench("--nnodes", "2", "--quick")
    with Runs([(lab[0], line), (lab[1], ["env", "PYTHONPATH=/etc/lab", *line])]) as runs:
        assert runs.codes() == [0, 0]

    leader, member = ("\n".join(follower.lines) for follower in runs.followers)
    assert "all-reduce was not measured: gpu-node-2: torch is not installed there" in leader
    assert "slowest link: " in leader and "slowest link: " in member
    assert "  2 gpu-node-2 " in leader and "  2 gpu-node-2 " not in member
    assert "the tables are on gpu-node-1, which led" in member
    assert "Traceback" not in leader + member


@pytest.mark.faults
def test_a_node_that_dies_while_it_is_measured_ends_all_with_a_sentence() -> None:
    """What was measured until then is told: the first pair does not need the third node."""
    with cluster(3) as lab, on_all(lab.hosts, bench("--nnodes", "3", "--tcp", "--json")) as runs:
        runs[0].wait_for("measuring TCP")
        lab[2].cut()

        assert [runs[i].wait(JOB_S) for i in (0, 1)] == [1, 1]
        told = [json.loads(runs[i].lines[-1]) for i in (0, 1)]

    assert [t["status"] for t in told] == ["partial", "error"]
    for each in told:
        (error,) = each["errors"]
        assert error["code"] == "measurement-broken"
        assert error["message"].startswith("the measurement is broken off: gpu-node-3")
    assert [(x["from"], x["to"], x["error"]) for x in told[0]["data"]["links"]][:1] == [
        ("gpu-node-1", "gpu-node-2", "")
    ]


def test_ctrl_c_on_one_node_ends_it_on_all_and_leaves_nothing(shared_cluster3: Cluster) -> None:
    lab = shared_cluster3
    with on_all(lab.hosts[:2], bench("--nnodes", "2")) as runs:
        for follower in runs.followers:
            follower.wait_for("measuring TCP")
        runs[1].ctrl_c()

        assert runs.codes() == [1, 130]
        assert "the measurement is broken off: gpu-node-2" in runs[0].output
        assert "Traceback" not in runs.transcript()
    deadline = time.monotonic() + 10
    while any(host.strangers() for host in lab) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert lab.strangers() == []


@pytest.mark.faults
def test_a_process_of_the_all_reduce_that_is_killed_is_named_and_tcp_is_told(
    shared_cluster3: Cluster,
) -> None:
    lab = shared_cluster3
    for host in lab:
        host.shape(20)
    try:
        with on_all(lab.hosts, bench("--nnodes", "3", "--json")) as runs:
            for follower in runs.followers:
                follower.wait_for("measuring the all-reduce")
            kill = "kill -9 $(pgrep -f 'import collectiv[e]' | tail -1)"
            lab[1].run(["sh", "-c", kill], check=True)

            assert runs.codes() == [1, 1, 1]
            for follower in runs.followers:
                told = json.loads(follower.lines[-1])
                (error,) = told["errors"]
                assert error["message"] == (
                    "the all-reduce failed on gpu-node-2: a process was ended by SIGKILL"
                )
                assert len(told["data"]["links"]) == 6
                assert not any(g["measured"] for g in told["data"]["gradients"])
    finally:
        for host in lab:
            host.shape(None)
