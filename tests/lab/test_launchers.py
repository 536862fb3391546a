"""The pages of other launchers, done to the letter on two hosts by the real tools."""

from __future__ import annotations

import importlib.util
import json
import shutil
import time
from collections.abc import Iterator
from typing import Any

import pytest

from avahi_gpu.render.launcher_lists import FORMATS, RANKED
from tests.lab.cluster import Cluster, cluster
from tests.lab.host import Host
from tests.lab.pages import FOLDER, Done, follow_page
from tests.lab.test_cluster_doctor_ssh import HOME, serve_ssh
from tests.lab.test_peers import become_node, peers
from tests.lab.tiny_training import ACCELERATE, DEEPSPEED, TORCH, trained

pytestmark = [pytest.mark.lab, pytest.mark.torch, pytest.mark.timeout(600)]

BOTH = [(0, 2, "gpu-node-1"), (1, 2, "gpu-node-2")]
WITHIN_S = 200.0  # a page's block takes ten seconds on two idle cores
# mpirun refuses to run as root, which everybody is on the lab's hosts
ROOT_ON_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@pytest.fixture(scope="module")
def lab() -> Iterator[Cluster]:
    """Two nodes without GPUs; from the first one ssh leads to both."""
    with cluster(2) as hosts:
        for host in hosts:
            become_node(host, "gpus=0")
        one = hosts[0]
        one.run(["mkdir", "-p", "/etc/ssh"], check=True)
        one.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/run/key"], check=True)
        servers = [serve_ssh(host, one.read("/run/key.pub")) for host in hosts]
        one.run(["mv", "/run/key", f"{HOME}/.ssh/id_ed25519"], check=True)
        keys = [one.run(["ssh-keyscan", "-t", "ed25519", h.address], check=True).stdout for h in hosts]
        named = [f"{h.name}.local,{key}" for h, key in zip(hosts, keys, strict=True)]
        one.write("/etc/ssh/ssh_known_hosts", "".join(named))
        yield hosts
        for server in servers:
            server.end()


def needs(*names: str) -> pytest.MarkDecorator:
    """Skip where a program or a package is not installed; CI has all of them."""
    missing = [n for n in names if shutil.which(n) is None and importlib.util.find_spec(n) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} is not installed")


def follow(page: str, lab: Cluster, script: str, under: str | None = None, **env: str) -> list[Done]:
    given = {"HOME": HOME, **env}
    return follow_page(page, lab.hosts, under=under, files={"train.py": script}, env=given, within_s=WITHIN_S)


@pytest.mark.faults
def test_torchrun_with_the_values_filled_in(lab: Cluster) -> None:
    (done,) = follow("docs/how-to/torchrun-by-hand.md", lab, TORCH)

    assert trained(done.outputs) == BOTH and "avahi-gpu:" not in "".join(done.outputs)


@needs("deepspeed")
@pytest.mark.faults
def test_deepspeed_under_launch(lab: Cluster) -> None:
    """And what the page says of master_addr in the configuration file: it stands there, and does nothing."""
    (done,) = follow("docs/how-to/deepspeed.md", lab, DEEPSPEED, "Under avahi-gpu launch")

    assert '"master_addr": "203.0.113.9"' in lab[0].read(f"{FOLDER}/ds_config.json")
    assert trained(done.outputs) == BOTH


def test_the_doctor_says_that_master_addr_does_nothing(lab: Cluster) -> None:
    heading = "What master_addr does in the configuration file"
    (done,) = follow("docs/how-to/deepspeed.md", lab, "", heading)

    assert f"AG340  master_addr and master_port in {FOLDER}/ds_config.json" in done.outputs[0]


@needs("deepspeed", "pdsh")
def test_deepspeeds_own_command(lab: Cluster) -> None:
    (done,) = follow("docs/how-to/deepspeed.md", lab, DEEPSPEED, "By the deepspeed command")

    assert trained(done.outputs) == BOTH


@needs("deepspeed")
@pytest.mark.faults  # six interpreters load torch and DeepSpeed: 15 s of a core
def test_deepspeeds_own_command_without_ssh(lab: Cluster) -> None:
    (done,) = follow("docs/how-to/deepspeed.md", lab, DEEPSPEED, "Without ssh")

    assert trained(done.outputs) == BOTH


@needs("accelerate")
def test_accelerate_with_the_avahi_rendezvous(lab: Cluster) -> None:
    page = "docs/how-to/accelerate.md"
    (done,) = follow(page, lab, ACCELERATE, "With the avahi rendezvous", ACCELERATE_USE_CPU="true")

    assert trained(done.outputs) == BOTH and "leader gpu-node-1" in done.outputs[1]


@needs("accelerate")
@pytest.mark.faults  # as long again
def test_accelerate_with_a_written_configuration(lab: Cluster) -> None:
    page = "docs/how-to/accelerate.md"
    (done,) = follow(page, lab, ACCELERATE, "With a written configuration", ACCELERATE_USE_CPU="true")

    assert trained(done.outputs) == BOTH
    for rank, host in enumerate(lab):
        assert f"\nmachine_rank: {rank}\n" in host.read(f"{FOLDER}/accelerate.yaml")


@needs("mpirun")
def test_mpirun(lab: Cluster) -> None:
    (done,) = follow("docs/how-to/mpi.md", lab, TORCH, **ROOT_ON_MPI)

    assert trained(done.outputs) == BOTH


def test_ssh_and_the_hosts_file(lab: Cluster) -> None:
    before = lab[0].read("/etc/hosts")
    try:
        ssh, hosts = follow("docs/how-to/names.md", lab, "")
    finally:
        lab[0].write("/etc/hosts", before)

    assert ssh.outputs[0].splitlines()[-1] == "gpu-node-2"
    assert hosts.outputs[0].split() == [lab[1].address, "gpu-node-2.local", "gpu-node-2"]


def test_nothing_of_strangers_gets_into_a_file_or_a_shell(lab: Cluster) -> None:
    """Some node of the LAN publishes what it likes; those of this cluster alone are listed, in one order."""
    one, two = lab
    strange = [
        ("$(touch /run/evil)", (), ("id=666666666666", "torch=$(touch /run/evil)")),
        ("mine", ("-H", "localhost.local"), ("id=777777777777",)),
        ("theirs", ("-H", "away.local"), ("id=888888888888", "cluster=x\ny")),
    ]
    publishers = [
        two.popen(["avahi-publish", "-s", *host, name, "_torch._tcp", "29500", *records])
        for name, host, records in strange
    ]
    publishers += [
        two.popen(["avahi-publish-address", "--no-reverse", name, two.address])
        for name in ("localhost.local", "away.local")
    ]
    try:
        deadline = time.monotonic() + 30
        while not {n for n, _, _ in strange} <= {p["name"] for p in peers_of(one) if p["address"]}:
            assert time.monotonic() < deadline
        printed = {f: [peers(one, "--format", f, "--expect", "2")] for f in FORMATS}
        for format in ("mpi", "env", "accelerate"):
            printed[format].append(peers(two, "--format", format, "--expect", "2"))
        few = peers(one, "--format", "env", "--expect", "3", "--timeout", "1")
    finally:
        for publisher in publishers:
            publisher.kill()
            publisher.wait()

    for format, by_host in printed.items():
        assert {done.returncode for done in by_host} == {0}, (format, by_host)
        texts = {done.stdout for done in by_host}
        assert len(texts) == (2 if format in RANKED else 1)  # one file on all nodes, but for the ranks
        assert not any(word in text for text in texts for word in ("touch", "mine", "theirs", "localhost"))
    notes = printed["mpi"][0].stderr
    assert "localhost.local is no name for a host" in notes and "it is of cluster xy" in notes
    assert "gpu-node-2 at" in notes and "$(touch /run/evil)" not in printed["mpi"][0].stdout
    assert (few.returncode, few.stdout) == (3, "")
    assert "2 of 3 nodes can be listed: gpu-node-1, gpu-node-2" in few.stderr

    for shell in filter(shutil.which, ("dash", "bash", "zsh")):
        script = 'eval "$1"; echo "$MASTER_ADDR $NNODES $NODE_RANK $GLOO_SOCKET_IFNAME $NCCL_SOCKET_IFNAME"'
        for rank, done in enumerate(printed["env"]):
            told = lab[rank].run([shell, "-euc", script, shell, done.stdout], check=True).stdout
            assert told == f"{one.address} 2 {rank} eth0 =eth0\n", shell
    assert not one.path("/run/evil").exists() and not two.path("/run/evil").exists()


def peers_of(host: Host) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(peers(host, "--json").stdout)["data"]["peers"]
    return found
