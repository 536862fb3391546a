"""Jobs for people: who runs what since when, who is waited for, and nothing steers the terminal."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.host.jobs import absentees
from avahi_gpu.model import Job, JobNode, JobPart, Peer, Versions
from avahi_gpu.render.jobs import ago, describe_change, job_data, show_jobs
from avahi_gpu.render.text import console

NOW = 1_800_010_000


def node(number: int, *, rank: int | None = None, own: bool = False, alive: bool | None = True) -> JobNode:
    host = f"gpu-node-{number}"
    part = JobPart(running=rank is not None, rank=rank)
    return JobNode(
        host, f"{number:016x}", host, f"10.77.0.{number}", "eth0", 29400, "llama",
        self=own, part=part, alive=alive, processes=number,
    )  # fmt: skip


LEADER = node(1, rank=0)
RUNS = Job(
    "llama",
    "default",
    members=(LEADER, node(2, rank=1, own=True)),
    leader=LEADER,
    leader_host="gpu-node-1",
    round=2,
    size=2,
    since=NOW - 725,
    began=NOW - 7600,
    restarts=1,
    min_nodes=2,
    max_nodes=3,
)
WAITS = Job("bert", "default", waiting=(node(1),), since=NOW - 3, min_nodes=3, max_nodes=3)


def peer(number: int, *, alive: bool | None = True, cluster: str = "default") -> Peer:
    name = f"gpu-node-{number}"
    return Peer(
        f"{number:012x}", name, f"{name}.local", f"10.77.0.{number}", "eth0", 29500, cluster, alive,
        False, 0, "", (), Versions(),
    )  # fmt: skip


def shown(*jobs: Job, peers: Sequence[Peer] = (), cluster: str = "default") -> str:
    stream = io.StringIO()
    show_jobs([(job, absentees(job, peers)) for job in jobs], cluster, NOW, console(stream))
    return stream.getvalue()


def test_a_job_that_runs_is_one_line_and_one_for_each_node() -> None:
    header, job, first, second = shown(RUNS).splitlines()

    assert header.split() == ["JOB", "STATE", "LEADER", "NODES", "ROUND", "SINCE", "RESTARTS"]
    assert " ".join(job.split()) == "llama runs gpu-node-1 2 of 3 2 12 min (job: 2 h 6 min) 1"
    assert first == "  rank 0  gpu-node-1                 10.77.0.1"
    assert second == "  rank 1  gpu-node-2 (this machine)  10.77.0.2  2 processes"


def test_a_job_that_waits_says_for_whom() -> None:
    peers = [peer(1), peer(2), peer(3, alive=False), peer(4, cluster="lab")]

    told = shown(WAITS, peers=peers)

    assert told.splitlines()[1].split() == ["bert", "waits", "–", "1", "of", "3", "–", "3", "s", "0"]
    assert (
        "waits for 2 nodes more: start the same command on gpu-node-2; gpu-node-3 does not answer\n" in told
    )
    assert "waits for 2 nodes more: no other node of its cluster is seen" in shown(WAITS)


def test_jobs_of_other_clusters_stand_apart() -> None:
    told = shown(WAITS, replace(RUNS, cluster="lab"))

    ours, others = told.split("\nCluster lab:\n")
    assert "bert" in ours and "llama" not in ours
    assert others.splitlines()[1].startswith("llama")
    assert shown(RUNS, cluster="mine").startswith("No job runs in the cluster of this machine, mine.\n")


def test_an_empty_lan_says_what_to_do() -> None:
    says, hint = shown().splitlines()

    assert says == "No job runs on this LAN."
    assert "avahi-gpu launch" in hint


def test_a_member_that_gives_no_answer_and_notes_are_shown() -> None:
    told = shown(replace(RUNS, members=(replace(LEADER, alive=False),), notes=("\x1b[2J is odd",)))

    assert "10.77.0.1  no answer" in told
    assert "  \\x1b[2J is odd" in told


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h 0 min"), (86399, "23 h 59 min"),
     (86400, "1 d 0 h"), (-5, "0 s"), (-6, "–")],
)  # fmt: skip
def test_times_are_told_as_people_say_them(seconds: int, told: str) -> None:
    assert ago(NOW - seconds, NOW) == told


def test_a_clock_that_is_ahead_is_said() -> None:
    assert "its clock is 2 h 0 min ahead of this machine's" in shown(replace(RUNS, since=NOW + 7200))


def test_what_becomes_of_a_job_is_a_line_once() -> None:
    first = replace(RUNS, round=1)

    assert describe_change(None, WAITS) == "bert  waits: gpu-node-1, waits for 2 more"
    assert describe_change(WAITS, WAITS) == ""
    assert describe_change(first, RUNS) == "llama  runs round 2: gpu-node-1, gpu-node-2; leader gpu-node-1"
    assert describe_change(RUNS, replace(RUNS, notes=("x",))) == ""
    assert describe_change(RUNS, None) == "llama  is over"
    assert ", 1 not seen;" in describe_change(RUNS, replace(RUNS, size=3, round=4))


def test_who_takes_part_or_is_of_another_cluster_is_not_missed() -> None:
    assert absentees(WAITS, [peer(1), peer(2), peer(3, cluster="lab")]) == [peer(2)]
    assert absentees(RUNS, [peer(3)]) == []


@given(st.text(max_size=60), st.text(max_size=60))
def test_names_of_others_steer_nothing(name: str, host: str) -> None:
    evil = replace(node(1, rank=0), host=host)
    told = shown(replace(RUNS, name=name, cluster=host, leader_host=host, members=(evil,), notes=(name,)))

    assert all(c.isprintable() or c == "\n" for c in told)
    assert job_data(RUNS, [])["state"] == "running"
