"""The Ansible inventory, as Ansible itself reads it on a LAN with a hostile neighbour."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lab.cluster import Cluster, cluster
from tests.lab.host import Host
from tests.lab.test_peers import become_node, peers

pytest.importorskip("ansible")

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "ansible/inventory/avahi_gpu"
BIN = Path(sys.executable).parent
STRANGER = ("avahi-publish", "-s")
PIPE = "{{ lookup('pipe', 'touch /run/evaluated') }}"
# what Ansible shows of every host, evaluated as often as it likes to
PLAY = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.debug:
        msg: "{{ ansible_host }} {{ avahi_gpu_node.cluster }} {{ avahi_gpu_node }}"
"""


@pytest.fixture(scope="module")
def nodes() -> Any:
    """Three nodes, the third with cards of two models and of another cluster; the fourth host is none."""
    with cluster(4) as lab:
        become_node(lab[0], "gpus=2", "gpu=NVIDIA GeForce RTX 4090", "vram=24564", "torch=2.13.0")
        become_node(lab[1], "gpus=0")
        become_node(lab[2], "gpus=3", "gpu=RTX 4090*2,RTX 3090", "cluster=My Lab")
        assert peers(lab[0], "--format", "ansible", "--timeout", "10", "--expect", "2").returncode == 0
        yield lab


def inventory(host: Host, *options: str) -> dict[str, Any]:
    told = host.run([str(SCRIPT), *options], check=True).stdout
    found: dict[str, Any] = json.loads(told)
    return found


def ansible(host: Host, program: str, *arguments: str) -> str:
    environ = [
        "env",
        "HOME=/run",
        "ANSIBLE_LOCALHOST_WARNING=false",
        "ANSIBLE_PYTHON_INTERPRETER=auto_silent",
    ]
    done = host.run([*environ, str(BIN / program), "-i", str(SCRIPT), *arguments], timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr and "Traceback" not in done.stderr, done.stderr
    return done.stdout


def test_ansible_sees_the_nodes_by_cluster_and_by_model(nodes: Cluster) -> None:
    listed = json.loads(ansible(nodes[0], "ansible-inventory", "--list"))

    hosts = {
        group: sorted(listed[group].get("hosts", [])) for group in listed if group not in ("_meta", "all")
    }
    assert hosts == {
        "avahi_gpu": ["gpu-node-1", "gpu-node-2", "gpu-node-3"],
        "cluster_default": ["gpu-node-1", "gpu-node-2"],
        "cluster_my_lab": ["gpu-node-3"],
        "gpu_none": ["gpu-node-2"],
        "gpu_nvidia_geforce_rtx_4090": ["gpu-node-1"],
        "gpu_rtx_3090": ["gpu-node-3"],
        "gpu_rtx_4090": ["gpu-node-3"],
    }
    hostvars = listed["_meta"]["hostvars"]
    assert {name: v["ansible_host"] for name, v in hostvars.items()} == {
        h.name: h.address for h in nodes.hosts[:3]
    }
    assert [name for name, v in hostvars.items() if v.get("ansible_connection") == "local"] == ["gpu-node-1"]
    assert hostvars["gpu-node-3"]["avahi_gpu_node"]["gpu"] == "RTX 4090 (2), RTX 3090 (1)"

    assert inventory(nodes[0], "--host", "gpu-node-2") == hostvars["gpu-node-2"]
    few = peers(nodes[0], "--format", "ansible", "--expect", "9", "--timeout", "1")
    assert few.returncode == 3
    assert json.loads(few.stdout)["avahi_gpu"]["hosts"] == ["gpu-node-1", "gpu-node-2", "gpu-node-3"]
    assert "3 of 9 nodes" in few.stderr or "2 of 9 nodes" in few.stderr


def test_what_a_stranger_publishes_is_neither_evaluated_nor_taken_for_this_machine(nodes: Cluster) -> None:
    one, stranger = nodes[0], nodes[3]
    records = [
        "id=666666666666",
        f"cluster={PIPE}",
        "gpus=1",
        f"gpu={PIPE}",
        "torch={% for x in range(9) %}x{% endfor %}",
        "python={{ 6 * 7 }}",
        "ansible_connection=local",
    ]
    named = stranger.popen([*STRANGER, "{{ 6 * 7 }}", "_torch._tcp", "29500", *records])
    false = stranger.popen(
        [*STRANGER, "-H", "localhost.local", "mine", "_torch._tcp", "29500", "id=777777777777"]
    )
    address = stranger.popen(["avahi-publish-address", "--no-reverse", "localhost.local", stranger.address])
    try:
        for _ in range(20):
            seen = json.loads(one.run(["avahi-gpu", "peers", "--json"], check=True).stdout)["data"]["peers"]
            if {"mine", "{{ 6 * 7 }}"} <= {p["name"] for p in seen if p["address"]}:
                break
        told = one.run([str(SCRIPT)], check=True)
        one.write("/run/play.yml", PLAY)
        shown = ansible(one, "ansible-playbook", "/run/play.yml")
    finally:
        for process in (named, false, address):
            process.kill()
            process.wait()

    assert "mine is left out" in told.stderr
    assert f"ok: [{stranger.name}]" in shown and f"ok: [{one.name}]" in shown
    assert "ok: [localhost]" not in shown and "ok: [mine]" not in shown
    assert f"{stranger.address} __ lookup(_pipe_, _touch /run/evaluated_) __" in shown
    assert "'python': '__ 6 _ 7 __'" in shown
    assert "'torch': '__ for x in range(9) __x" in shown
    assert not one.path("/run/evaluated").exists()
