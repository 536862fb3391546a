"""Training on virtual hosts with real torchrun, by ``avahi-gpu launch`` and without it."""

from __future__ import annotations

import re
import time

import pytest

from tests.lab.cluster import Cluster
from tests.lab.host import Host
from tests.lab.runs import ALLREDUCE, JOB_S, TRAIN, Runs, launch, on_all, torchrun

pytestmark = [pytest.mark.lab, pytest.mark.torch]

NAMES = ["gpu-node-1", "gpu-node-2", "gpu-node-3"]
STEPPING = """
import sys, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
for step in range(600):
    dist.all_reduce(torch.zeros(1))
    time.sleep(0.05)
    if step == 10 and dist.get_rank() == 1:
        sys.exit(7)
"""
# one worker has less to do than the other
EARLY = """
import os, time, torch.distributed as dist
dist.init_process_group("gloo")
dist.barrier()
print("rank", dist.get_rank(), "ends", flush=True)
time.sleep(600 * (dist.get_rank() == 0))
os._exit(0)
"""
NODE = """<?xml version="1.0" standalone='no'?><!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<service-group><name replace-wildcards="yes">%h</name><service><type>_torch._tcp</type><port>29500</port>
<txt-record>txtvers=1</txt-record><txt-record>id=0123456789a{number}</txt-record></service></service-group>
"""
# a torch that says of itself that it is another one
OTHER_TORCH = """
import sys
sys.path.remove("/var/tmp/other")
del sys.modules["torch"]
import torch
"""
# a torch whose agent has the methods that we extend under other names
RENAMED = """
import importlib.machinery, re, sys
NAMES = "_initialize_workers|_monitor_workers|_shutdown"

class Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        path = self.get_filename(fullname)
        text = re.sub(rf"\\b({NAMES})\\(", r"\\1_of_old(", self.get_data(path).decode())
        return self.source_to_code(text.encode(), path)

class Finder:
    def find_spec(self, name, path, target=None):
        if not name.startswith("torch.distributed.elastic.agent.server."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        spec.loader = Loader(name, spec.origin)
        return spec

sys.meta_path.insert(0, Finder())
"""


def processes(host: Host) -> list[str]:
    """Return the command lines that a fresh host would not have."""
    return host.strangers()


def wait_until_empty(host: Host, within_s: float) -> list[str]:
    """Return what is left on the host after a moment."""
    deadline = time.monotonic() + within_s
    while (left := processes(host)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def announced(host: Host) -> str:
    """Return the running nodes of jobs that the host's Avahi knows."""
    # unresolved: avahi-browse -r may wait for ever for the record of one that leaves at that moment
    return host.run(["avahi-browse", "-pt", "_torch-rdzv._tcp"]).stdout


def test_the_same_command_on_three_hosts_is_one_job(shared_cluster3: Cluster) -> None:
    lab = shared_cluster3
    for host in lab:  # what Debian and Ubuntu write: the own name is a loopback address
        assert f"127.0.1.1\t{host.name}" in host.read("/etc/hosts")
    with on_all(lab.hosts, launch("--nnodes", "3", ALLREDUCE)) as job:
        assert job.codes() == [0, 0, 0]

        master = lab[0].address
        assert job.sums() == [(rank, 3, name, master) for rank, name in enumerate(NAMES)]
        assert "Traceback" not in job.transcript()
        for follower in job.followers:
            assert "avahi-gpu: job allreduce of 3 nodes, torch " in follower.lines[0]
            follower.wait_for(f"round 1: 3 nodes ({', '.join(NAMES)}), leader gpu-node-1 at {master}")
            ended = r"avahi-gpu: job allreduce: finished after [\d.]+ s, 1 round of 3 nodes"
            assert re.fullmatch(ended, follower.lines[-1])


def test_plain_torchrun_and_a_second_job_run_side_by_side(shared_cluster3: Cluster) -> None:
    """Two jobs at once never meet; nodes may run unequal numbers of processes."""
    lab = shared_cluster3
    line = torchrun("--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=avahi", "--rdzv-id=job1", ALLREDUCE)
    second = launch("--nnodes", "2", "--job", "job2", "--master", "gpu-node-3.local")
    unequal = [
        (lab[index], [*second, "--nproc-per-node", processes, ALLREDUCE])
        for index, processes in ((1, "1"), (2, "2"))
    ]
    with on_all(lab.hosts[:2], line) as first, Runs(unequal) as other:
        assert first.codes() == [0, 0]
        assert other.codes() == [0, 0]

        assert first.sums() == [(rank, 2, NAMES[rank], lab[0].address) for rank in range(2)]
        # the leader's two processes first, then one
        hosts = ["gpu-node-3"] * 2 + ["gpu-node-2"]
        assert [entry[:3] for entry in other.sums()] == [(rank, 3, host) for rank, host in enumerate(hosts)]
        assert {entry[3] for entry in other.sums()} == {lab[2].address}


def test_the_scripts_exit_code_is_ours_and_everybody_is_told_why(shared_cluster3: Cluster) -> None:
    hosts = shared_cluster3.hosts[:2]
    for host in hosts:
        host.write("/var/tmp/stepping.py", STEPPING)
    with on_all(hosts, launch("--nnodes", "2", "/var/tmp/stepping.py")) as job:
        assert job.codes() == [1, 7]

        assert job[1].lines[-1] == "avahi-gpu: gpu-node-2: rank 1 ended with exit code 7"
        assert job[1].lines[-2].startswith("avahi-gpu: job stepping: failed after ")
        assert job[0].lines[-1] == "avahi-gpu: gpu-node-2 gave up: rank 1 ended with exit code 7"
        assert "ChildFailedError" not in job.transcript()


@pytest.mark.faults
def test_under_plain_torchrun_the_others_are_told_whose_script_failed(shared_cluster3: Cluster) -> None:
    hosts = shared_cluster3.hosts[:2]
    for host in hosts:
        host.write("/var/tmp/stepping.py", STEPPING)
    line = [
        "--nnodes=2",
        "--nproc-per-node=1",
        "--rdzv-backend=avahi",
        "--rdzv-id=step",
        "/var/tmp/stepping.py",
    ]
    with on_all(hosts, torchrun(*line)) as job:
        assert job.codes() == [1, 1]  # torchrun's code for every failure
        assert "gpu-node-2 gave up: its script failed on gpu-node-2" in job[0].output
        assert "gave up" not in job[1].output


def test_ctrl_c_ends_a_node_at_once_and_the_others_know(shared_cluster3: Cluster) -> None:
    lab = shared_cluster3
    command = launch("--nnodes", "2", TRAIN, "--slow", "0.1", "--checkpoint", "/var/tmp/ctrl-c.pt")
    with on_all(lab.hosts[:2], command) as job:
        job[0].wait_for("step 3 ", JOB_S)
        job[1].ctrl_c()
        assert job[1].wait(10) == 130
        assert job[1].lines[-1].startswith("avahi-gpu: job train: left after ")
        assert job[1].lines[-1].endswith("the other node cannot go on without this one: 2 are needed")
        assert processes(lab[1]) == []
        assert "avahi-gpu" not in "\n".join(line for line in job[1].lines if "Traceback" in line)
        job[0].wait_for("regrouping: gpu-node-2 left", 10)
        assert f";{NAMES[1]}-" not in announced(lab[0])

        job[0].process.terminate()
        assert job[0].wait(10) == 143
        assert wait_until_empty(lab[0], 1.0) == []


def test_a_node_is_missed_by_name_and_a_second_start_on_one_host_is_refused(
    shared_cluster3: Cluster,
) -> None:
    lab = shared_cluster3
    for host in lab:
        host.write("/etc/avahi/services/torch.service", NODE.format(number=host.number))
    command = launch("--nnodes", "3", "--join-timeout", "6", ALLREDUCE)
    try:
        with on_all(lab.hosts[:2], command) as job:
            missed = " (not here yet: gpu-node-3); "
            here = "; 2 of 3 nodes here (gpu-node-1, gpu-node-2)"
            job[0].wait_for(missed, JOB_S)
            job[0].wait_for(here, JOB_S)

            again = lab[0].run(command)
            assert again.returncode == 125
            assert "job 'allreduce' is running on this host already" in again.stderr

            assert job.codes() == [125, 125]
            for follower in job.followers:
                assert "no round within 6 s: 3 nodes are needed" in follower.lines[-2]
                assert "Traceback" not in follower.output
    finally:
        for host in lab:
            host.run(["rm", "/etc/avahi/services/torch.service"])


def test_a_node_with_another_torch_is_refused_with_both_versions(shared_cluster3: Cluster) -> None:
    lab = shared_cluster3
    lab[1].write("/var/tmp/other/torch/__init__.py", OTHER_TORCH)
    lab[1].write("/var/tmp/other/torch/version.py", "__version__ = '2.4095.0'\ncuda = None\n")
    command = launch("--nnodes", "2", "--join-timeout", "60", ALLREDUCE)
    with on_all([lab[0]], command) as first:
        first[0].wait_for("waiting for 1 more", JOB_S)
        second = lab[1].run(command, env={"PYTHONPATH": "/var/tmp/other"}, timeout=JOB_S)

        assert second.returncode == 125
        last = second.stderr.splitlines()[-1]
        assert "gpu-node-2 has torch 2.4095.0, gpu-node-1 has torch 2." in last
        first[0].wait_for("refused: gpu-node-2 has torch 2.4095.0", 5)
        first[0].ctrl_c()
        assert first[0].wait(10) == 130


@pytest.mark.faults  # that the installed torch has them is told without running it
def test_a_torch_with_another_agent_runs_the_job_all_the_same_and_what_it_lacks_is_said(
    shared_cluster3: Cluster,
) -> None:
    """What launch adds to torch's agent is then torch's own way; nothing else is lost."""
    hosts = shared_cluster3.hosts[:2]
    for host in hosts:
        host.write("/var/tmp/renamed/sitecustomize.py", RENAMED)
    with on_all(hosts, launch("--nnodes", "2", ALLREDUCE), env={"PYTHONPATH": "/var/tmp/renamed"}) as job:
        assert job.codes() == [0, 0]
        assert [entry[:3] for entry in job.sums()] == [(0, 2, NAMES[0]), (1, 2, NAMES[1])]
        for follower in job.followers:
            warnings = [line for line in follower.lines if "warning: torch " in line]
            lost = [line.split("LocalElasticAgent.")[1].partition(":")[0] for line in warnings]
            assert lost == ["_initialize_workers", "_monitor_workers", "_shutdown"]
            assert "Traceback" not in follower.output


@pytest.mark.parametrize(
    "victim", [pytest.param(0, id="leader"), pytest.param(2, id="member", marks=pytest.mark.faults)]
)
def test_a_job_goes_on_from_its_checkpoint_when_a_cable_is_cut(cluster3: Cluster, victim: int) -> None:
    lab = cluster3
    options = ["--steps", "30", "--slow", "0.1", "--save-every", "5", "--checkpoint", "/var/tmp/cut.pt"]
    with on_all(lab.hosts, launch("--nnodes", "2:3", TRAIN, *options)) as job:
        job[0].wait_for("step 12 ", JOB_S)
        lab[victim].cut()
        survivors = [index for index in range(3) if index != victim]
        first = job[survivors[0]]

        assert [job[index].wait(JOB_S) for index in survivors] == [0, 0]

        resumed = first.lines[first.wait_for("training resumes after step")]
        assert "with 2 processes, rank 0 on " + lab[survivors[0]].name in resumed
        assert int(resumed.split("step ")[1].split()[0]) in (10, 15)
        assert first.wait_for("training ends after step 30")
        assert "is lost: silent for 5 s" in first.output
        lost = rf"1 node lost \({lab[victim].name} after \d+ s: silent for 5 s\), regroup took [\d.]+ s \("
        assert re.search(lost, first.lines[-1]), first.lines[-1]
        alone = job[victim]
        alone.wait_for("waiting for 1 more", 15)
        alone.ctrl_c()
        assert alone.wait(10) == 130


def test_a_killed_launch_takes_its_workers_along_and_the_rest_go_on(shared_cluster3: Cluster) -> None:
    lab = shared_cluster3
    options = ["--steps", "20", "--slow", "0.1", "--save-every", "5", "--checkpoint", "/var/tmp/killed.pt"]
    with on_all(lab.hosts[:2], launch("--nnodes", "1:2", TRAIN, *options)) as job:
        job[0].wait_for("step 7 ", JOB_S)
        job[0].kill()
        assert wait_until_empty(lab[0], 3.0) == []

        assert job[1].wait(JOB_S) == 0
        assert job[1].wait_for("training resumes after step 5 with 1 processes, rank 0 on gpu-node-2")


@pytest.mark.faults
def test_a_dead_name_server_costs_no_half_minute(cluster3: Cluster) -> None:
    lab = cluster3
    for host in lab.hosts[:2]:
        host.write("/etc/resolv.conf", f"nameserver {lab.subnet}.250\n")
    with on_all(lab.hosts[:2], launch("--nnodes", "2", ALLREDUCE)) as job:
        assert job.codes() == [0, 0]
        assert "the name server does not answer: RES_OPTIONS" in job[0].output
        assert "round 2" not in job[0].output


@pytest.mark.faults
def test_a_node_that_has_finished_does_not_wait_for_a_leader_that_is_cut_off(cluster3: Cluster) -> None:
    """It waits for the others by torch's store on the leader, which no longer answers."""
    lab = cluster3
    for host in lab.hosts[:2]:
        host.write("/var/tmp/early.py", EARLY)
    command = launch("--nnodes", "1:2", "--lost-after", "2", "/var/tmp/early.py")
    with on_all(lab.hosts[:2], command) as job:
        job[1].wait_for("rank 1 ends", JOB_S)
        time.sleep(1.0)  # the agent is waiting by now
        lab[0].cut()
        assert job[1].wait(15) == 0
        assert "Traceback" not in job[1].output
        job[0].ctrl_c()
        assert job[0].wait(10) == 130


def test_the_dry_run_says_what_would_be_done_and_does_nothing(shared_cluster3: Cluster) -> None:
    host = shared_cluster3[0]
    words = ["--nnodes", "2:3", "--dry-run", "--", "--max-restarts=2", ALLREDUCE, "--name", "a b"]
    done = host.run(launch(*words), env={"TP_SOCKET_IFNAME": "eth9", "PET_NNODES": "7"}, check=True)

    lines = done.stdout.splitlines()
    assert lines[-1] == (
        "torchrun --nnodes=2:3 --nproc-per-node=1 --rdzv-backend=avahi --rdzv-id=allreduce "
        f"--max-restarts=2 {ALLREDUCE} --name 'a b'"
    )
    assert [line for line in lines if line.startswith("export ")] == [
        "export GLOO_SOCKET_IFNAME=eth0",
        "export NCCL_SOCKET_IFNAME='=eth0'",
        "export NCCL_SOCKET_FAMILY=AF_INET",
    ]
    assert any(line.startswith(f"# interface eth0 ({host.address}, wired, ") for line in lines)
    assert "# TP_SOCKET_IFNAME is set already and stays: eth9" in lines
    assert announced(host) == ""


def test_what_is_missing_is_one_sentence_and_one_of_what_to_do(cluster3: Cluster) -> None:
    host = cluster3[0]

    def refused(*words: str, code: int = 125) -> str:
        done = host.run(launch(*words))
        assert done.returncode == code, done.stderr
        said = [line for line in done.stderr.splitlines() if not line.startswith("avahi-gpu: job ")]
        assert len(said) == 2, done.stderr
        assert said[1].startswith("  ")
        return said[0]

    assert "there is no script trian.py in " in refused("--nnodes", "3", "trian.py", code=2)
    assert "puts the larger number first" in refused("--nnodes", "3:2", ALLREDUCE, code=2)
    assert "number of nodes is not given" in refused(ALLREDUCE, code=2)
    host.run(["ip", "addr", "flush", "dev", "eth0"], check=True)
    assert "no interface of this host has a LAN address" in refused("--nnodes", "3", ALLREDUCE)
    host.run(["ip", "addr", "add", f"{host.address}/24", "dev", "eth0"], check=True)
    host.stop_avahi()
    assert "avahi-daemon" in refused("--nnodes", "3", ALLREDUCE)
