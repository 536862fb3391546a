"""The doctor beside real runs of torchrun: one that is well is no fault, what one has left behind is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.cluster import cluster
from tests.lab.doctoring import doctor, set_up
from tests.lab.host import Host

SCRIPT = "import os, time; open(os.environ['READY'], 'w').write(str(os.getpid())); time.sleep(600)\n"
READY, TRAIN = "/run/ready", "/run/train.py"
START_S = 60.0  # torch takes a second to import, ten on a busy machine
ABOUT_JOBS = ("--only", "AG330", "--only", "AG331")
RUN = [
    "torchrun",
    "--nnodes=1",
    "--nproc-per-node=1",
    "--master-addr=127.0.0.1",
    "--master-port=29500",
    TRAIN,
]


@pytest.fixture
def host() -> Iterator[Host]:
    with cluster(1) as lab:
        set_up(lab)
        lab[0].write(TRAIN, SCRIPT)
        yield lab[0]


def worker_of(host: Host) -> int:
    deadline = time.monotonic() + START_S
    while not (Path(host.path(READY)).exists() and host.read(READY)):
        assert time.monotonic() < deadline, "the worker did not start"
        time.sleep(0.1)
    return int(host.read(READY))


def test_a_running_job_is_no_fault_and_its_orphan_is(host: Host) -> None:
    agent = host.popen(RUN, env={"READY": READY})
    worker = worker_of(host)

    well = doctor(host, *ABOUT_JOBS)
    agent_pid = host.run(["ps", "-o", "ppid=", "-p", str(worker)], check=True).stdout.strip()
    host.run(["kill", "-KILL", agent_pid], check=True)
    agent.wait(10)
    ill = doctor(host, *ABOUT_JOBS)
    fix = ill.findings["AG330"]["fix"]

    assert (well.exit_code, well.errors) == (0, []), well.tell()
    assert well.findings["AG331"]["verdict"] == "info" and "29500" in well.says("AG331")
    assert (ill.exit_code, ill.errors) == (1, ["AG330"]), ill.tell()
    assert fix["commands"] == [f"kill {worker}"]
    host.run(fix["commands"][0].split(), check=True)
    time.sleep(0.5)
    assert doctor(host, *ABOUT_JOBS).exit_code == 0


def test_a_key_that_launch_would_refuse_is_an_error_before(host: Host) -> None:
    host.run(["avahi-gpu", "key", "new"], check=True)
    well = doctor(host, "--only", "AG337")
    host.path("/etc/avahi-gpu/key").chmod(0o644)

    ill = doctor(host, "--only", "AG337")
    refused = host.run(["avahi-gpu", "launch", "--nnodes", "1", TRAIN], timeout=60)

    assert (well.exit_code, well.errors) == (0, []), well.tell()
    assert (ill.exit_code, ill.errors) == (1, ["AG337"])
    assert "open to other users" in ill.says("AG337") and "open to other users" in refused.stderr
    assert refused.returncode != 0
