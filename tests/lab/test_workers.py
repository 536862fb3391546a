"""What happens to a job when workers and agents fail, with real training by launch and by plain torchrun.

Each takes half a minute: left out unless asked for (`make faults`); test_launch.py has one of each kind.
docs/reference/faults.md tells users the same.
"""

from __future__ import annotations

import time

import pytest

from tests.lab.cluster import Cluster
from tests.lab.host import Command, Host
from tests.lab.runs import ALLREDUCE, JOB_S, TRAIN, Runs, launch, on_all, torchrun
from tests.lab.test_faults import announced, until

pytestmark = [pytest.mark.lab, pytest.mark.faults, pytest.mark.timeout(300)]

NAMES = ["gpu-node-1", "gpu-node-2", "gpu-node-3"]
GONE_S = 2.0  # workers after the death of their agent
BUSY_S = 3.0  # what a machine that runs other tests besides may add

# trains until /var/tmp/enough is there; does what it is told by files of its own host
OBEDIENT = """
import os, platform, subprocess, sys, time
from pathlib import Path
import torch, torch.distributed as dist

# a helper of its own that heeds no SIGTERM, as a data loader in the middle of a read
subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 300 & wait"], start_new_session=True)
dist.init_process_group("gloo")
rank, round = dist.get_rank(), os.environ["MASTER_PORT"]
step = 0
while True:
    step += 1
    enough = torch.tensor(float(Path("/var/tmp/enough").exists()))
    dist.all_reduce(enough, dist.ReduceOp.MAX)
    print(f"step {step} of rank {rank} of {dist.get_world_size()} in round {round}", flush=True)
    if enough:
        break
    if Path("/var/tmp/fail").exists():
        Path("/var/tmp/fail").unlink()
        sys.exit(7)
    time.sleep(0.1)
dist.destroy_process_group()
"""
# rank 1 has nothing to do; the others work on by themselves
EARLY = """
import os, time
import torch.distributed as dist
dist.init_process_group("gloo")
dist.barrier()
print("begun", flush=True)
if os.environ["RANK"] != "1":
    time.sleep(5)
    print("done", flush=True)
"""
# LaunchAgent's and torch's own clock, and the workers': three hours off
SHIFTED = """
import time
real, real_ns = time.time, time.time_ns
time.time = lambda: real() + {seconds}
time.time_ns = lambda: real_ns() + {seconds} * 10**9
"""
WAYS = ["launch", "torchrun"]


def command(way: str, nodes: str, *words: str, options: tuple[str, ...] = ()) -> Command:
    """Return the command line that runs a job of this name by launch or by plain torchrun."""
    if way == "launch":
        return launch("--nnodes", nodes, "--job", "j", "--last-call", "1", "--", *options, *words)
    ours = [f"--nnodes={nodes}", "--nproc-per-node=1", "--rdzv-backend=avahi", "--rdzv-id=j"]
    return torchrun(*ours, "--rdzv-conf=last_call_timeout=1", *options, *words)


def prepare(lab: Cluster) -> None:
    """Put the scripts where all hosts have them, and nothing else."""
    for host in lab:
        host.run(["rm", "-f", "/var/tmp/enough", "/var/tmp/fail"])
        for name, text in (("obedient", OBEDIENT), ("early", EARLY)):
            host.write(f"/var/tmp/{name}.py", text)


def touch(host: Host, name: str) -> None:
    host.write(f"/var/tmp/{name}", "")


def empty(host: Host) -> bool:
    """Say whether nothing runs on the host that a fresh one would not have."""
    return host.strangers() == []


def check_clean(lab: Cluster) -> None:
    """No process is left on any host, and no record on the LAN."""
    assert until(lambda: not lab.strangers(), GONE_S + BUSY_S), lab.strangers()
    assert until(lambda: not any(announced(lab[0], name) for name in NAMES), 2.0 + BUSY_S)


def own(lines: list[str]) -> list[str]:
    """Return the lines that are ours."""
    return [line for line in lines if line.startswith("avahi-gpu: ")]


# --- killed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("victim", [0, 1], ids=["leader", "member"])
def test_an_agent_that_is_killed_takes_its_workers_and_their_children_along(
    shared_cluster3: Cluster, way: str, victim: int
) -> None:
    lab = shared_cluster3
    prepare(lab)
    options = () if way == "launch" else ("--max-restarts=3",)
    with on_all(lab.hosts, command(way, "2:3", "/var/tmp/obedient.py", options=options)) as job:
        job[victim].wait_for("step 5 ", JOB_S)
        job[victim].kill()
        dead = time.monotonic()
        assert until(lambda: empty(lab[victim]), GONE_S + BUSY_S), lab[victim].strangers()
        print(f"{way}: all gone after {time.monotonic() - dead:.2f} s")

        survivors = [index for index in range(3) if index != victim]
        job[survivors[0]].wait_for(" of 2 in round", JOB_S)
        touch(lab[survivors[0]], "enough")

        assert [job[index].wait(JOB_S) for index in survivors] == [0, 0]
        for index in survivors:
            assert f"{NAMES[victim]}" in "\n".join(own(job[index].lines))
        # what a script has left behind after a good end stays, as under torchrun
        for index in survivors:
            lab[index].run(["pkill", "-KILL", "sleep"])
    check_clean(lab)


def test_under_launch_own_failures_alone_use_up_restarts(shared_cluster3: Cluster) -> None:
    lab = shared_cluster3
    prepare(lab)
    line = command("launch", "2:3", "/var/tmp/obedient.py", options=("--max-restarts=1",))
    with on_all(lab.hosts, line) as job:
        job[0].wait_for("step 5 ", JOB_S)
        job[2].kill()  # no restart is counted for this
        after = job[0].wait_for(" of 2 in round", JOB_S)
        touch(lab[1], "fail")  # this is the one
        job[0].wait_for("step 1 of", JOB_S, after=after + 1)
        touch(lab[1], "fail")

        assert [job[0].wait(JOB_S), job[1].wait(JOB_S)] == [1, 7]
        assert own(job[1].lines)[-1] == "avahi-gpu: gpu-node-2: rank 1 ended with exit code 7"
        assert own(job[0].lines)[-1] == "avahi-gpu: gpu-node-2 gave up: rank 1 ended with exit code 7"
    check_clean(lab)


def test_under_torchrun_a_failure_without_restarts_ends_the_job_with_who_it_was(
    shared_cluster3: Cluster,
) -> None:
    lab = shared_cluster3
    prepare(lab)
    with on_all(lab.hosts, command("torchrun", "2:3", "/var/tmp/obedient.py")) as job:
        job[0].wait_for("step 5 ", JOB_S)
        touch(lab[1], "fail")

        assert job.codes() == [1, 1, 1]
        for index in (0, 2):
            text = "\n".join(own(job[index].lines))
            assert "its script failed on gpu-node-" in text, text
    check_clean(lab)


def test_under_torchrun_a_node_that_is_interrupted_is_not_taken_for_a_failure(
    shared_cluster3: Cluster,
) -> None:
    """Whether a restart is used up is a race of torch's; without one left, the cause is told all the same."""
    lab = shared_cluster3
    prepare(lab)
    with on_all(lab.hosts, command("torchrun", "2:3", "/var/tmp/obedient.py")) as job:
        job[0].wait_for("step 5 ", JOB_S)
        job[1].ctrl_c()
        assert job[1].wait(15) == 1
        for index in (0, 2):
            job[index].wait_for("gpu-node-2 left (interrupted)", JOB_S)
        touch(lab[0], "enough")

        codes = [job[0].wait(JOB_S), job[2].wait(JOB_S)]
        for index, code in zip((0, 2), codes, strict=True):
            if code != 0:
                assert "no restart is left: " in "\n".join(own(job[index].lines))
                assert "gave up" not in job[index].output
    for host in lab:
        host.run(["pkill", "-KILL", "sleep"])
    check_clean(lab)


# --- ended early -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_a_worker_that_ends_early_ends_nobody_else(shared_cluster3: Cluster, way: str) -> None:
    lab = shared_cluster3
    prepare(lab)
    with on_all(lab.hosts, command(way, "3", "/var/tmp/early.py")) as job:
        assert job.codes() == [0, 0, 0]
        assert sum(line.endswith("done") for f in job.followers for line in f.lines) == 2
        assert "regrouping" not in job.transcript()
        assert "Traceback" not in job.transcript()
    check_clean(lab)


@pytest.mark.parametrize("first", WAYS)
def test_launch_and_torchrun_meet_in_one_job_and_end_together(shared_cluster3: Cluster, first: str) -> None:
    lab = shared_cluster3
    second = next(way for way in WAYS if way != first)
    pair = [(lab[0], command(first, "2", ALLREDUCE)), (lab[1], command(second, "2", ALLREDUCE))]
    with Runs(pair) as job:
        assert job.codes(JOB_S) == [0, 0]  # torch's own barrier would wait for five minutes
        assert "Traceback" not in job.transcript()
        assert [entry[:3] for entry in job.sums()] == [(0, 2, NAMES[0]), (1, 2, NAMES[1])]
    check_clean(lab)


@pytest.mark.parametrize("way", WAYS)
def test_a_spare_that_is_not_needed_ends_well(shared_cluster3: Cluster, way: str) -> None:
    lab = shared_cluster3
    prepare(lab)
    line = command(way, "2", "/var/tmp/obedient.py")
    with on_all(lab.hosts[:2], line) as job:
        job[0].wait_for("step 3 ", JOB_S)
        with on_all(lab.hosts[2:], line) as spare:
            spare[0].wait_for("waits as a spare", JOB_S)
            touch(lab[0], "enough")

            assert job.codes() == [0, 0]
            assert spare.codes(10.0) == [0]
            assert "Traceback" not in spare.transcript()
            assert "the job has finished on gpu-node-1 without gpu-node-3" in own(spare[0].lines)[-1]
    for host in lab:
        host.run(["pkill", "-KILL", "sleep"])
    check_clean(lab)


# --- interrupted -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_on_one_node_lets_the_others_go_on_and_on_all_ends_all(
    shared_cluster3: Cluster, way: str
) -> None:
    lab = shared_cluster3
    prepare(lab)
    options = () if way == "launch" else ("--max-restarts=3",)
    with on_all(lab.hosts, command(way, "2:3", "/var/tmp/obedient.py", options=options)) as job:
        job[0].wait_for("step 5 ", JOB_S)
        job[2].ctrl_c()
        assert job[2].wait(10) == (130 if way == "launch" else 1)
        assert until(lambda: empty(lab[2]), GONE_S + BUSY_S), lab[2].strangers()
        assert until(lambda: not announced(lab[0], NAMES[2]), 2.0 + BUSY_S)
        job[0].wait_for("gpu-node-3 left", JOB_S)
        job[0].wait_for(" of 2 in round", JOB_S)

        for follower in job.followers[:2]:
            follower.ctrl_c()
        assert {follower.wait(15) for follower in job.followers[:2]} == {130 if way == "launch" else 1}
    check_clean(lab)


# --- machines ----------------------------------------------------------------------------------------------


def test_a_thawed_machine_ends_its_old_workers_and_comes_back(cluster3: Cluster) -> None:
    lab = cluster3
    prepare(lab)
    with on_all(lab.hosts, command("launch", "2:3", "/var/tmp/obedient.py")) as job:
        job[0].wait_for("step 5 ", JOB_S)
        frozen = job[0]
        lab[0].freeze()
        job[1].wait_for(" of 2 in round", JOB_S)
        said = len(frozen.lines)
        lab[0].thaw()
        again = frozen.wait_for("round 3", JOB_S)
        steps = [line for line in frozen.lines[said:again] if line.startswith("step ")]
        assert len(steps) <= 2, steps  # what was in its pipes, and no training
        frozen.wait_for(" of 3 in round", JOB_S, after=again)
        touch(lab[0], "enough")
        assert job.codes() == [0, 0, 0]
        assert "gpu-node-1, the leader, is lost" in job[1].output


def test_a_machine_without_power_is_lost_and_a_falling_below_the_minimum_is_an_end_with_a_reason(
    cluster3: Cluster,
) -> None:
    lab = cluster3
    prepare(lab)
    words = ["--nnodes", "2:3", "--job", "j", "--join-timeout", "8", "--lost-after", "2"]
    with on_all(lab.hosts, launch(*words, "/var/tmp/obedient.py")) as job:
        job[0].wait_for("step 5 ", JOB_S)
        lab[2].kill()
        job[0].wait_for(" of 2 in round", JOB_S)
        lab[1].kill()

        assert job[0].wait(JOB_S) == 1  # it has trained: 125 is for jobs that never did
        last = [line for line in job[0].lines if "no round within 8 s" in line]
        assert last and "2 nodes are needed, here: gpu-node-1" in last[0]
        assert "gpu-node-2" in last[0]
    assert until(lambda: empty(lab[0]), GONE_S + BUSY_S)


def test_a_dead_name_server_costs_plain_torchrun_no_half_minute(cluster3: Cluster) -> None:
    lab = cluster3
    for host in lab.hosts[:2]:
        host.write("/etc/resolv.conf", f"nameserver {lab.subnet}.250\n")
    with on_all(lab.hosts[:2], command("torchrun", "2", ALLREDUCE)) as job:
        assert job.codes() == [0, 0]
        formed, told = (job[0].wait_for(text) for text in ("round 1: 2 nodes", "RES_OPTIONS keeps torch"))
        took = job[0].times[told] - job[0].times[formed]
        print(f"what torch asked the name server for took {took:.1f} s")
        assert took < 5.0  # one question of a second; ten each without


@pytest.mark.parametrize("way", WAYS)
def test_clocks_hours_apart_do_not_matter_to_torch_either(shared_cluster3: Cluster, way: str) -> None:
    lab = shared_cluster3
    for host, seconds in zip(lab, (0, 3 * 3600, -3 * 3600), strict=True):
        host.write("/var/tmp/clock/sitecustomize.py", SHIFTED.format(seconds=seconds))
    with on_all(lab.hosts, command(way, "3", ALLREDUCE), env={"PYTHONPATH": "/var/tmp/clock"}) as job:
        assert job.codes() == [0, 0, 0]
        assert [entry[0] for entry in job.sums()] == [0, 1, 2]
        assert "round 2" not in job.transcript()


def test_a_job_survives_the_loss_of_its_checkpointless_leader_by_a_cut_cable_under_torchrun(
    cluster3: Cluster,
) -> None:
    lab = cluster3
    options = ["--steps", "30", "--slow", "0.1", "--save-every", "5", "--checkpoint", "/var/tmp/cut.pt"]
    line = command("torchrun", "2:3", TRAIN, *options, options=("--max-restarts=3",))
    with on_all(lab.hosts, line) as job:
        job[0].wait_for("step 12 ", JOB_S)
        lab[0].cut()

        assert [job[1].wait(JOB_S), job[2].wait(JOB_S)] == [0, 0]
        assert job[1].wait_for("training resumes after step 10 with 2 processes, rank 0 on gpu-node-2")
