"""Peers as an Ansible inventory: groups, addresses, and nothing of the LAN that Ansible would evaluate."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.model import Peer, Versions
from avahi_gpu.render.inventory import RESERVED, host_variables, make_inventory

NODE = Peer(
    id="0123456789ab",
    name="gpu-node-1",
    host="gpu-node-1.local",
    address="10.77.0.1",
    interface="eth0",
    port=29500,
    cluster="default",
    alive=True,
    self=False,
    gpus=2,
    gpu="NVIDIA GeForce RTX 4090",
    vram_mib=(24564, 24564),
    versions=Versions("3.11.2", "2.13.0+cu126", "12.6", "2.27", "570.1"),
    models=("NVIDIA GeForce RTX 4090",),
)


def node(number: int, **changes: Any) -> Peer:
    name = f"gpu-node-{number}"
    mine = {"id": f"{number:012x}", "name": name, "host": f"{name}.local", "address": f"10.77.0.{number}"}
    return replace(NODE, **{**mine, **changes})


def groups_of(inventory: dict[str, Any]) -> dict[str, list[str]]:
    return {name: group["hosts"] for name, group in inventory.items() if name != "_meta"}


def test_hosts_are_grouped_by_cluster_and_by_model() -> None:
    mixed = node(
        2, gpu="RTX 4090 (2), RTX 3090 (1)", gpus=3, models=("RTX 4090", "RTX 3090"), cluster="My Lab"
    )
    inventory, notes = make_inventory(
        [node(1), mixed, node(3, gpus=0, gpu="", models=()), node(4, models=(), gpu="")]
    )

    assert groups_of(inventory) == {
        "avahi_gpu": ["gpu-node-1", "gpu-node-2", "gpu-node-3", "gpu-node-4"],
        "cluster_default": ["gpu-node-1", "gpu-node-3", "gpu-node-4"],
        "cluster_my_lab": ["gpu-node-2"],
        "gpu_none": ["gpu-node-3"],
        "gpu_nvidia_geforce_rtx_4090": ["gpu-node-1"],
        "gpu_rtx_3090": ["gpu-node-2"],
        "gpu_rtx_4090": ["gpu-node-2"],
        "gpu_unknown": ["gpu-node-4"],
    }
    assert notes == []


def test_a_host_has_its_address_and_its_facts_in_one_variable() -> None:
    inventory, _ = make_inventory([node(1), node(2, self=True)])

    assert host_variables(inventory, "gpu-node-1") == {
        "ansible_host": "10.77.0.1",
        "avahi_gpu_node": {
            "id": "000000000001",
            "cluster": "default",
            "interface": "eth0",
            "port": 29500,
            "alive": True,
            "gpus": 2,
            "gpu": "NVIDIA GeForce RTX 4090",
            "vram_mib": [24564, 24564],
            "driver": "570.1",
            "cuda": "12.6",
            "torch": "2.13.0+cu126",
            "nccl": "2.27",
            "python": "3.11.2",
        },
    }
    assert host_variables(inventory, "gpu-node-2")["ansible_connection"] == "local"
    assert host_variables(inventory, "gpu-node-9") == {}


@pytest.mark.parametrize(
    ("changes", "host"),
    [
        ({"address": "fe80::1"}, "fe80::1%eth0"),
        ({"address": "fd77::1"}, "fd77::1"),
        ({"address": "fe80::1", "interface": None}, None),
        ({"address": "fe80::1", "interface": "{{x}}"}, None),
        ({"address": None}, None),
        ({"address": "gpu-node-1.local"}, None),
    ],
)
def test_an_address_is_one_or_the_host_is_left_out(changes: dict[str, Any], host: str | None) -> None:
    inventory, notes = make_inventory([node(1, **changes)])

    assert host_variables(inventory, "gpu-node-1").get("ansible_host") == host
    assert bool(notes) == (host is None)


@pytest.mark.parametrize(
    "host",
    ["localhost.local", "ALL.local", "ungrouped", "a b.local", "a_b.local", "-a.local", "", "x.y.local"],
)
def test_a_name_that_means_something_else_is_left_out_and_told(host: str) -> None:
    inventory, notes = make_inventory([node(1, host=host), node(2)])

    assert inventory["avahi_gpu"]["hosts"] == ["gpu-node-2"]
    assert list(inventory["_meta"]["hostvars"]) == ["gpu-node-2"]
    assert len(notes) == 1 and "gpu-node-1 is left out" in notes[0]


def test_of_two_machines_with_one_name_the_one_that_answers_keeps_it() -> None:
    dead = node(1, alive=False, address="10.77.0.9", id="dddddddddddd")
    alive, again = node(1), node(1, id="eeeeeeeeeeee")

    inventory, notes = make_inventory([dead, alive, again])

    hostvars = inventory["_meta"]["hostvars"]
    assert {name: v["ansible_host"] for name, v in hostvars.items()} == {
        "gpu-node-1-dddddddddddd": "10.77.0.9",
        "gpu-node-1": "10.77.0.1",
    }
    assert len(notes) == 2


def test_clusters_whose_names_look_alike_are_groups_of_their_own() -> None:
    inventory, _ = make_inventory([node(1, cluster="Lab"), node(2, cluster="lab"), node(3, cluster="«»")])

    groups = groups_of(inventory)
    assert groups["cluster_lab"] == ["gpu-node-2"]
    others = {
        name: hosts for name, hosts in groups.items() if name.startswith("cluster_") and name != "cluster_lab"
    }
    assert sorted(others.values()) == [["gpu-node-1"], ["gpu-node-3"]]
    assert all(re.fullmatch("cluster_(lab_)?[0-9a-f]{8}", name) for name in others)


text = st.text(max_size=30) | st.sampled_from(
    [
        "{{ lookup('pipe', 'id') }}",
        "{% set x = 1 %}",
        "{# x #}",
        "${x}",
        "!vault |",
        "$ANSIBLE_VAULT;1.1;AES256",
        "\x1b[1m",
    ]
)
peers = st.builds(
    replace,
    st.just(NODE),
    id=st.sampled_from(["", "0123456789ab", "aaaaaaaaaaaa"]),
    name=text,
    host=text | st.sampled_from(["a.local", "A.local", "b.local", "localhost.local", "{{a}}.local"]),
    address=st.sampled_from([None, "10.0.0.1", "10.0.0.2", "fe80::1", "{{ a }}"]),
    interface=st.none() | text | st.just("eth0"),
    cluster=text,
    alive=st.sampled_from([True, False, None]),
    self=st.booleans(),
    gpus=st.integers(0, 3),
    gpu=text,
    models=st.lists(text, max_size=3, unique=True).map(tuple),
    versions=st.builds(Versions, text, text, text, text, text),
)


@given(st.lists(peers, max_size=5))
def test_nothing_of_the_lan_is_left_for_ansible_to_evaluate(seen: list[Peer]) -> None:
    inventory, notes = make_inventory(seen)

    text = json.dumps(inventory)
    for opening in ("{{", "{%", "{#", "$ANSIBLE_VAULT", "!vault", "__ansible"):
        assert opening not in text.replace("{}", "")
    hosts = list(inventory["_meta"]["hostvars"])
    assert len(hosts) + len(notes) >= len(seen)
    assert all(re.fullmatch("[a-z0-9-]+", host) and host not in RESERVED for host in hosts)
    for group, members in groups_of(inventory).items():
        assert re.fullmatch("[a-z][a-z0-9_]*", group)
        assert set(members) <= set(hosts) and len(members) == len(set(members))
    for variables in inventory["_meta"]["hostvars"].values():
        assert set(variables) <= {"ansible_host", "ansible_connection", "avahi_gpu_node"}
        assert re.fullmatch(r"10\.0\.0\.[12]|fe80::1%[A-Za-z0-9._-]{1,15}", variables["ansible_host"])
        assert variables.get("ansible_connection", "local") == "local"
