"""C and D: what torch, gloo, NCCL and the launchers find on a host."""

from __future__ import annotations

import sys
from collections.abc import Callable

from tests.lab import network
from tests.lab.cluster import Cluster
from tests.lab.scenarios.hosts import LOCALHOST, hosts_file
from tests.lab.scenarios.scenario import Scenario

LISTEN = (
    "import socket, time; s = socket.socket(); s.setsockopt(1, 2, 1); s.bind(('', {port})); s.listen();"
    " print(flush=True); time.sleep(600)"
)
HOSTFILE = {"DLTS_HOSTFILE": "/var/job/hostfile"}  # hosts of the lab have a /var of their own, and no /job
ACCELERATE = "/var/hf/accelerate/default_config.yaml"
# as torchrun starts its workers, in a session of their own; then the agent goes
ORPHAN = (
    "import os, subprocess, sys; env = dict(os.environ, RANK='0', TORCHELASTIC_RUN_ID='lost');"
    " subprocess.Popen([sys.executable, '-c', sys.argv[1]], env=env, start_new_session=True, stdout=1)"
)


def nothing(_: Cluster) -> None:
    """The environment alone is wrong."""


def listen(port: int) -> Callable[[Cluster], None]:
    """Return what lets a program that is no job listen on a port of the first host."""

    def break_it(lab: Cluster) -> None:
        listener = lab[0].popen([sys.executable, "-c", LISTEN.format(port=port)])
        assert listener.stdout is not None
        listener.stdout.readline()

    return break_it


def write(path: str, text: str, mode: int = 0o644) -> Callable[[Cluster], None]:
    """Return what gives the first host a file; ``@N`` is the number of each host's address."""

    def break_it(lab: Cluster) -> None:
        filled = text
        for number, host in enumerate(lab, 1):
            filled = filled.replace(f"@{number}", host.address)
        lab[0].write(path, filled, mode)

    return break_it


def docker_first(lab: Cluster) -> None:
    """Bring Docker's bridge up before the network card, on the first host of a hostfile."""
    host = lab[0]
    network.remove_port(host.switch, host.number)  # the kernel gives each interface a higher number
    host.run(["ip", "link", "add", "docker0", "type", "bridge"], check=True)
    host.run(["ip", "addr", "add", "172.17.0.1/16", "dev", "docker0"], check=True)
    host.run(["ip", "link", "set", "docker0", "up"], check=True)
    network.plug_in(host.switch, host.number, host.pid, host.address)
    host.wait_for_avahi()
    write("/var/job/hostfile", "@1 slots=1\n@2 slots=1\n")(lab)


def orphan(lab: Cluster) -> None:
    """Leave a worker without an agent."""
    agent = lab[0].popen([sys.executable, "-c", ORPHAN, LISTEN.format(port=29500)])
    assert agent.stdout is not None
    agent.stdout.readline()
    agent.wait(10)


SCENARIOS = (
    Scenario(
        "C-01",
        "endpoint-by-local-name",
        "`PET_RDZV_ENDPOINT=gpu-node-1.local:29500` with c10d on the machine of that name",
        "AG326",
        nothing,
        env={"PET_RDZV_BACKEND": "c10d", "PET_RDZV_ENDPOINT": "gpu-node-1.local:29500", "PET_NNODES": "2"},
    ),
    Scenario(
        "C-02",
        "bare-name-told-to-others",
        "c10d is told that it hosts the endpoint, and tells the others its bare name",
        "AG326",
        nothing,
        env={
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": "gpu-node-1.local:29500",
            "PET_RDZV_CONF": "is_host=1",
        },
    ),
    Scenario(
        "C-02",
        "master-by-bare-name",
        "`MASTER_ADDR=gpu-node-1` on another node, which mDNS does not answer for",
        "AG325",
        nothing,
        env={"MASTER_ADDR": "gpu-node-1", "MASTER_PORT": "29500"},
        on=1,
    ),
    Scenario(
        "C-04",
        "gloo-on-loopback",
        "`MASTER_ADDR=gpu-node-2.local`, no GLOO_SOCKET_IFNAME, Debian's /etc/hosts",
        "AG327",
        nothing,
        env={"MASTER_ADDR": "gpu-node-2.local", "MASTER_PORT": "29500"},
    ),
    Scenario(
        "C-05",
        "gloo-interface-is-an-address",
        "`GLOO_SOCKET_IFNAME=10.77.0.1`",
        "AG328",
        nothing,
        env={"GLOO_SOCKET_IFNAME": "10.77.0.1"},
    ),
    Scenario(
        "C-05",
        "nccl-without-docker-takes-loopback",
        "`NCCL_SOCKET_IFNAME=^docker`",
        "AG328",
        nothing,
        env={"NCCL_SOCKET_IFNAME": "^docker"},
    ),
    Scenario("C-09", "port-taken", "a program that is no job listens on 29500", "AG331", listen(29500)),
    Scenario(
        "C-18",
        "worker-without-agent",
        "a worker of torchrun has outlived its agent and holds port 29500",
        "AG330",
        orphan,
    ),
    Scenario(
        "B-14",
        "static-and-an-unknown-own-name",
        "/etc/hosts does not name this machine, and MASTER_ADDR is set",
        "AG320",
        hosts_file(LOCALHOST),
        env={"MASTER_ADDR": "gpu-node-2.local", "MASTER_PORT": "29500"},
    ),
    Scenario(
        "D-01",
        "docker-before-the-lan",
        "`hostname -I` begins with docker0's address on the first host of DeepSpeed's hostfile",
        "AG339",
        docker_first,
        env=HOSTFILE,
    ),
    Scenario(
        "D-03",
        "hostfile-with-an-unknown-name",
        "a bare name in DeepSpeed's hostfile, which this node cannot look up",
        "AG336",
        write("/var/job/hostfile", "gpu-node-1.local slots=1\ngpu-node-2 slots=1\n"),
        env=HOSTFILE,
    ),
    Scenario(
        "D-04",
        "hostfile-with-a-bad-line",
        "`gpu-node-2.local slots = 8` in DeepSpeed's hostfile",
        "AG336",
        write("/var/job/hostfile", "gpu-node-2.local slots = 8\n"),
        env=HOSTFILE,
    ),
    Scenario(
        "D-06",
        "machine-rank-of-another",
        "accelerate's configuration was copied with its machine_rank",
        "AG338",
        write(ACCELERATE, "num_machines: 2\nmachine_rank: 1\nmain_process_ip: @1\nnum_processes: 2\n"),
        env={"HF_HOME": "/var/hf"},
    ),
)
