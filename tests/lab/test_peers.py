"""``avahi-gpu peers`` on a real LAN: who is there, who answers, what is said where something is missing."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from avahi_gpu.errors import AS_ROOT
from tests.lab.cluster import Cluster, cluster
from tests.lab.driver import BUSY_S, Start, drive
from tests.lab.host import Host

__all__ = ["drive"]  # a fixture

FILE = "/etc/avahi/services/torch.service"
SERVICE = """<service-group><name replace-wildcards="yes">%h</name>
<service><type>_torch._tcp</type><port>29500</port>{records}</service></service-group>
"""
QUICK = ("--timeout", "0.5")  # enough where nothing is lost


def become_node(host: Host, *records: str) -> None:
    """Publish the host, as ``setup`` does, with an id and these records."""
    items = [f"id={host.number:012x}", *records]
    text = "".join(f"<txt-record>{item}</txt-record>" for item in items)
    host.write(FILE, SERVICE.format(records=text))


def peers(host: Host, *options: str) -> subprocess.CompletedProcess[str]:
    return host.run(["avahi-gpu", "peers", *options])


def as_json(host: Host, *options: str, code: int = 0) -> dict[str, Any]:
    """Return the one object that is printed, and nothing else is."""
    done = peers(host, "--json", *options)
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stderr == ""
    told: dict[str, Any] = json.loads(done.stdout)
    assert (told["command"], told["exit_code"]) == ("peers", code)
    return told


def by_name(told: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {p["name"]: p for p in told["data"]["peers"]}


@pytest.fixture(scope="module")
def nodes() -> Any:
    """Three nodes, one with GPUs of two kinds."""
    with cluster(3) as lab:
        become_node(lab[0], "gpus=2", "gpu=NVIDIA GeForce RTX 4090", "vram=24564", "torch=2.13.0")
        become_node(lab[1], "gpus=3", "gpu=RTX 4090*2,RTX 3090", "vram=24564*2,24576", "torch=2.13.0")
        become_node(lab[2], "gpus=0")
        as_json(lab[0], "--expect", "3")
        yield lab


def test_all_nodes_are_listed_with_what_they_have(nodes: Cluster) -> None:
    found = by_name(as_json(nodes[1]))

    assert list(found) == ["gpu-node-1", "gpu-node-2", "gpu-node-3"]
    assert found["gpu-node-1"] == {
        "id": "000000000001",
        "name": "gpu-node-1",
        "host": "gpu-node-1.local",
        "address": nodes[0].address,
        "interface": "eth0",
        "port": 29500,
        "alive": True,
        "self": False,
        "cluster": "default",
        "gpus": 2,
        "gpu": "NVIDIA GeForce RTX 4090",
        "vram_mib": [24564, 24564],
        "versions": {"python": "", "torch": "2.13.0", "cuda": "", "nccl": "", "driver": ""},
    }
    assert found["gpu-node-2"]["vram_mib"] == [24564, 24564, 24576]
    assert [p["self"] for p in found.values()] == [False, True, False]
    assert {p["alive"] for p in found.values()} == {True}


def test_the_table_has_one_line_for_each(nodes: Cluster) -> None:
    done = peers(nodes[0])

    assert done.returncode == 0
    header, *rows = done.stdout.splitlines()
    assert header.split() == ["NODE", "ADDRESS", "VIA", "ALIVE", "GPUS", "MEMORY", "TORCH"]
    assert rows[0].startswith(f"gpu-node-1 (this machine)  {nodes[0].address}")
    assert "RTX 4090 (2), RTX 3090 (1)" in rows[1]
    assert "3 × 24 GiB" in rows[1]
    assert rows[2].rstrip().endswith("none")


def test_waiting_for_a_number_ends_with_the_last(nodes: Cluster) -> None:
    started = time.monotonic()

    told = as_json(nodes[2], "--expect", "3")

    assert time.monotonic() - started < 1.0 + BUSY_S
    assert told["status"] == "ok"
    assert [p["alive"] for p in told["data"]["peers"]] == [True] * 3  # enough is who answers, not who is seen


def test_a_mistake_in_the_configuration_is_told_with_its_line(nodes: Cluster) -> None:
    nodes[2].write("/etc/avahi-gpu/config.toml", '# ours\nclutser = "lab"\n')
    try:
        told = as_json(nodes[2], code=2)
    finally:
        nodes[2].run(["rm", "/etc/avahi-gpu/config.toml"], check=True)

    assert [e["code"] for e in told["errors"]] == ["malformed-configuration"]
    assert "/etc/avahi-gpu/config.toml:2: " in told["errors"][0]["message"]
    assert "cluster" in told["errors"][0]["hint"]


def test_too_few_in_time_is_exit_3_with_who_is_there(nodes: Cluster) -> None:
    told = as_json(nodes[0], "--expect", "4", "--timeout", "1", code=3)

    assert told["status"] == "partial"
    assert len(told["data"]["peers"]) == 3
    assert told["errors"][0]["code"] == "too-few-peers"
    done = peers(nodes[0], "--expect", "4", "--timeout", "1")
    assert done.returncode == 3
    assert "gpu-node-3" in done.stdout
    assert "3 of 4 nodes" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_node_behind_a_firewall_still_answers_by_echo(nodes: Cluster) -> None:
    block(nodes[1], "tcp dport 29500 drop")
    try:
        assert by_name(as_json(nodes[0], "--expect", "3"))["gpu-node-2"]["alive"] is True
    finally:
        unblock(nodes[1])


def test_a_node_that_drops_everything_but_mdns_gives_no_answer(nodes: Cluster) -> None:
    block(nodes[1], "udp dport 5353 accept", "counter drop")
    try:
        told = as_json(nodes[0], "--expect", "3", "--timeout", "2", code=3)
        assert by_name(told)["gpu-node-2"]["alive"] is False
        assert "no answer" in peers(nodes[0], *QUICK).stdout
    finally:
        unblock(nodes[1])


def block(host: Host, *rules: str) -> None:
    host.run(["nft", "add table inet probe"], check=True)
    host.run(
        ["nft", "add chain inet probe input { type filter hook input priority 0 ; }"],
        check=True,
    )
    for rule in rules:
        host.run(["nft", f"add rule inet probe input iifname eth0 {rule}"], check=True)


def unblock(host: Host) -> None:
    host.run(["nft", "delete table inet probe"], check=True)


def test_a_bridge_of_containers_is_not_taken_for_the_lan(nodes: Cluster) -> None:
    """Avahi publishes and lists a host on every interface that it has."""
    for command in (
        "ip link add docker0 type bridge",
        "ip addr add 172.17.0.1/16 dev docker0",
        "ip link set docker0 up",
        "ip link add veth9 type veth peer name veth8",
        "ip link set veth9 master docker0 up",
        "ip link set veth8 up",
    ):
        nodes[0].run(command.split(), check=True)
    try:
        time.sleep(2)  # Avahi joins and announces there
        found = by_name(as_json(nodes[0], *QUICK))
        assert (found["gpu-node-1"]["address"], found["gpu-node-1"]["interface"]) == (
            nodes[0].address,
            "eth0",
        )
        assert by_name(as_json(nodes[1], *QUICK))["gpu-node-1"]["address"] == nodes[0].address
    finally:
        nodes[0].run(["ip", "link", "del", "veth9"], check=True)
        nodes[0].run(["ip", "link", "del", "docker0"], check=True)


def test_a_hostile_neighbour_is_shown_and_nothing_more(nodes: Cluster, drive: Start) -> None:
    """Its name steers no terminal; without an id it is nobody's double."""
    evil = "\x1b[2Jevil\u202e"
    publisher = drive(nodes[2], "publish", "_torch._tcp", evil)
    publisher.wait_for("established")

    done = peers(nodes[0], *QUICK)
    found = by_name(as_json(nodes[0], *QUICK))

    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    assert "\\x1b[2Jevil" in done.stdout
    assert found[evil]["id"] == ""
    publisher.leave()


def test_ctrl_c_while_waiting_is_exit_130_without_a_traceback(nodes: Cluster) -> None:
    waiting = nodes[0].follow(["avahi-gpu", "peers", "--expect", "9", "--timeout", "60"])
    time.sleep(1.5)

    waiting.ctrl_c()

    assert waiting.wait(5) == 130
    assert "Traceback" not in waiting.output
    assert waiting.output.strip() == "avahi-gpu: interrupted"


def test_a_closed_pipe_is_no_error(nodes: Cluster) -> None:
    done = nodes[0].run(["bash", "-c", "avahi-gpu peers | head -c 1; echo ${PIPESTATUS[0]}"])

    assert done.stdout == "N0\n"
    assert done.stderr == ""


def test_it_works_for_an_ordinary_user(nodes: Cluster) -> None:
    """Who may send no echo: the refused connection tells."""
    done = nodes[0].run(
        ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "avahi-gpu", "peers", "--json"]
    )

    if "Permission denied" in done.stderr and done.returncode != 0:
        pytest.skip("the folder of this checkout is closed to other users")
    assert done.returncode == 0, done.stderr
    assert {p["alive"] for p in json.loads(done.stdout)["data"]["peers"]} == {True}


# --- where something is missing --------------------------------------------------------------------------


def test_nobody_there_is_no_error(make_cluster: Callable[..., Cluster]) -> None:
    (host,) = make_cluster(1)

    done = peers(host, *QUICK)

    assert done.returncode == 0
    assert "No node is seen" in done.stdout
    assert f"{AS_ROOT} setup" in done.stdout
    told = as_json(host, "--expect", "1", "--timeout", "0.5", code=3)
    assert "does not publish itself" in told["errors"][0]["hint"]


@pytest.mark.parametrize(
    ("missing", "code"), [("avahi-daemon", "avahi-unavailable"), ("dbus-daemon", "bus-unavailable")]
)
def test_what_is_missing_is_told_at_once(
    make_cluster: Callable[..., Cluster], missing: str, code: str
) -> None:
    (host,) = make_cluster(1)
    host.stop_avahi()
    if missing == "dbus-daemon":
        host.run(["rm", "/run/dbus/system_bus_socket"], check=True)
    started = time.monotonic()

    done = peers(host)

    assert time.monotonic() - started < 1.0 + BUSY_S
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 2
    assert "Traceback" not in done.stderr
    (error,) = as_json(host, code=1)["errors"]
    assert error["code"] == code
    assert error["hint"]


# --- comings and goings ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_node_that_comes_late_is_waited_for(make_cluster: Callable[..., Cluster]) -> None:
    lab = make_cluster(2)
    become_node(lab[0])
    waiting = lab[0].follow(["avahi-gpu", "peers", "--expect", "2", "--timeout", "30"])
    time.sleep(2)

    become_node(lab[1])

    assert waiting.wait(10) == 0
    assert "gpu-node-2" in waiting.output


@pytest.mark.slow
def test_a_dead_node_is_listed_as_silent_and_a_watch_tells_of_all(
    make_cluster: Callable[..., Cluster],
) -> None:
    lab = make_cluster(3)
    for host in lab:
        become_node(host)
    as_json(lab[0], "--expect", "3")
    watching = lab[0].follow(["avahi-gpu", "peers", "--watch"])
    for host in lab:
        watching.wait_for(f"joined     {host.name}")

    lab[1].stop_avahi()
    lab[2].kill()

    watching.wait_for("left       gpu-node-2", 5 + BUSY_S)
    watching.wait_for("no answer  gpu-node-3", 8 + BUSY_S)
    found = by_name(as_json(lab[0], "--expect", "2", "--timeout", "1.5", code=3))
    assert found["gpu-node-3"]["alive"] is False  # Avahi lists it for an hour yet
    watching.ctrl_c()
    assert watching.wait(5) == 130
    assert "Traceback" not in watching.output
