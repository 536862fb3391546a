"""C and D: what torch, gloo, NCCL and the launchers find on a host."""

from __future__ import annotations

import sys
from collections.abc import Callable

from tests.lab.cluster import Cluster
from tests.lab.scenarios.hosts import LOCALHOST, hosts_file
from tests.lab.scenarios.scenario import Scenario

LISTEN = (
    "import socket, time; s = socket.socket(); s.setsockopt(1, 2, 1); s.bind(('', {port})); s.listen();"
    " print(flush=True); time.sleep(600)"
)
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
        "C-03",
        "static-and-an-unknown-own-name",
        "/etc/hosts does not name this machine, and MASTER_ADDR is set",
        "AG320",
        hosts_file(LOCALHOST),
        env={"MASTER_ADDR": "gpu-node-2.local", "MASTER_PORT": "29500"},
    ),
)
