"""``avahi-gpu jobs`` and the picture on a real LAN: real nodes of jobs, one waits, a leader is cut off."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

from tests.lab.cluster import Cluster
from tests.lab.host import Host
from tests.lab.jobs import Job, JobNode
from tests.lab.test_peers import become_node

ROUND_S = 30.0
SEEN_S = 30.0


def ask(host: Host) -> dict[str, dict[str, Any]]:
    done = host.run(["avahi-gpu", "jobs", "--json"], timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return {job["name"]: job for job in json.loads(done.stdout)["data"]["jobs"]}


def ask_until(host: Host, accept: Callable[[dict[str, dict[str, Any]]], bool]) -> dict[str, dict[str, Any]]:
    """Ask until the answer is accepted: a record that has changed is seen a second later."""
    end = time.monotonic() + SEEN_S
    while True:
        found = ask(host)
        if accept(found):
            return found
        assert time.monotonic() < end, found


def member_hosts(job: dict[str, Any]) -> list[str]:
    return [m["host"] for m in job["members"]]


def test_the_jobs_of_the_lan_with_a_loss_of_the_leader(make_cluster: Callable[..., Cluster]) -> None:
    lab = make_cluster(3)
    become_node(lab[0])
    become_node(lab[1])
    stranger = lab[2].run(["avahi-gpu", "peers", "--expect", "2"], timeout=60)
    assert (stranger.returncode, "this machine is no node itself" in stranger.stderr) == (0, True)
    assert lab[1].run(["avahi-gpu", "peers", "--expect", "2"], timeout=60).stderr == ""
    become_node(lab[2])
    empty = lab[0].run(["avahi-gpu", "jobs"], timeout=60)
    assert (empty.returncode, empty.stdout.splitlines()[0]) == (0, "No job runs on this LAN.")

    apart = {"cluster": "lab"}
    with (
        Job(lab.hosts, (2, 3), job="llama", skills={"processes": 2}) as job,
        Job(lab.hosts[1:2], (3, 3), job="bert") as waiting,
        Job(lab.hosts[2:], (2, 2), job="other", terms=apart, env={"AVAHI_GPU_CLUSTER": "lab"}) as other,
    ):
        watch = lab[2].follow(["avahi-gpu", "jobs", "--watch"])
        job.start()
        assert job.rounds(ROUND_S)[0]["hosts"][0] == "gpu-node-1"
        waiting.start()
        other.start()

        found = ask_until(
            lab[1], lambda jobs: len(jobs) == 3 and len(jobs.get("llama", {}).get("members", ())) == 3
        )
        llama, bert = found["llama"], found["bert"]
        assert (llama["state"], llama["leader"], llama["round"], llama["restarts"]) == (
            "running",
            "gpu-node-1",
            1,
            0,
        )
        assert [(m["rank"], m["host"], m["processes"]) for m in llama["members"]] == [
            (0, "gpu-node-1", 2),
            (1, "gpu-node-2", 2),
            (2, "gpu-node-3", 2),
        ]
        assert [m["self"] for m in llama["members"]] == [False, True, False]
        assert {m["alive"] for m in llama["members"]} == {True}
        assert abs(time.time() - llama["since"]) < 120
        assert llama["notes"] == []
        assert (bert["state"], bert["leader"], bert["wants"]) == ("waiting", None, 2)
        assert [p["name"] for p in bert["absent"]] == ["gpu-node-1", "gpu-node-3"]
        assert found["other"]["cluster"] == "lab"

        shown = lab[1].run(["avahi-gpu", "jobs"], timeout=60).stdout
        assert re.search(r"^llama +runs +gpu-node-1 +3 of 3 +1 ", shown, re.M), shown
        assert "waits for 2 nodes more: start the same command on gpu-node-1, gpu-node-3" in shown
        assert shown.index("Cluster lab:") > shown.index("llama")

        svg = lab[1].run(["avahi-gpu", "peers", "--expect", "3", "--format", "svg"], timeout=60)
        told = [
            element.text for element in ET.fromstring(svg.stdout).iter("{http://www.w3.org/2000/svg}text")
        ]
        assert (svg.returncode, svg.stderr) == (0, "")
        assert {"gpu-node-1", "gpu-node-2", "gpu-node-3", "★ llama: leads", "llama: rank 2"} <= set(told)
        assert "3 nodes, 0 GPUs, 1 job running" in told

        watch.wait_for("runs round 1: gpu-node-1, gpu-node-2, gpu-node-3; leader gpu-node-1", SEEN_S)

        lab[0].cut()
        watch.wait_for("leader gpu-node-2", SEEN_S)
        found = ask_until(lab[1], lambda jobs: member_hosts(jobs["llama"]) == ["gpu-node-2", "gpu-node-3"])
        assert (found["llama"]["leader"], found["llama"]["restarts"]) == ("gpu-node-2", 1)
        assert found["llama"]["round"] > 1
        assert found["llama"]["began"] <= found["llama"]["since"]
        end_all(job.nodes[1:])
        ask_until(lab[1], lambda jobs: "llama" not in jobs)
        watch.wait_for("llama  is over", SEEN_S)
        watch.end()


def end_all(nodes: list[JobNode]) -> None:
    for node in nodes:
        node.close("finished")
