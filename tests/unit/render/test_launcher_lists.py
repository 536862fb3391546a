"""The nodes for other launchers: who is named, in which order, and nothing that a stranger could slip in."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.model import Peer
from avahi_gpu.render.launcher_lists import FORMATS, RANKED, TRAINING, WRITERS, env
from avahi_gpu.render.lineup import Lineup, line_up
from avahi_gpu.rendezvous.environment import interface_variables
from tests.unit.render.test_inventory import node

VARIABLES = interface_variables("eth0", "10.77.0.1")
ADDRESS = r"[0-9a-f.:]+"
# every line that may come out, whatever goes in
GRAMMAR = {
    "deepspeed": rf"{ADDRESS} slots=[1-9]\d{{0,3}}",
    "mpi": rf"{ADDRESS} slots=[1-9]\d{{0,3}}",
    "accelerate": rf"[a-z_]+: (?:{ADDRESS}|\d+|true|false|static|main|'no'|NO|MULTI_GPU|LOCAL_MACHINE)",
    "env": r"[A-Z_]+=(?:[A-Za-z0-9_.:-]*|'=[A-Za-z0-9._-]+')",
    "ssh": rf"#.*|Host [a-z0-9-]+ [a-z0-9-]+\.local|    HostName {ADDRESS}(?:%%[\w.-]+)?"
    r"|    HostKeyAlias [a-z0-9-]+\.local",
    "hosts": rf"#.*|{ADDRESS}\t[a-z0-9-]+\.local [a-z0-9-]+",
}


def lined(*peers: Peer, training: bool = True) -> Lineup:
    return line_up(peers, "default", {"eth0": "10.77.0.1", "eth1": "10.88.0.1"}, training=training)


def names(lineup: Lineup) -> list[str]:
    return [entry.name for entry in lineup.entries]


def written(format: str, lineup: Lineup) -> str:
    return env(lineup, VARIABLES) if format == "env" else WRITERS[format](lineup)


def test_the_order_is_that_of_the_ranks_of_a_job() -> None:
    peers = [node(10), node(2), node(1, self=True), node(3, priority=5)]

    assert names(lined(*peers)) == ["gpu-node-3", "gpu-node-1", "gpu-node-2", "gpu-node-10"]
    assert lined(*peers).own_rank == 1
    assert names(lined(*reversed(peers))) == names(lined(*peers))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"alive": False}, "it does not answer"),
        ({"cluster": "other"}, "it is of cluster other, not of default"),
        ({"address": None}, "its address is not known"),
        ({"address": "127.0.0.1"}, "no address of a machine"),
        ({"host": "localhost.local"}, "localhost.local is no name for a host"),
        ({"host": "*.local"}, "*.local is no name for a host"),
        ({"address": "fd77::2"}, "it has no IPv4 address"),
        ({"address": "10.77.0.1"}, "a second node with the address 10.77.0.1"),
        ({"host": "gpu-node-1.local"}, "a second node with the name gpu-node-1"),
        ({"gpus": 0}, "it has no GPU, and others have"),
    ],
)
def test_who_is_left_out_is_told(changes: dict[str, Any], why: str) -> None:
    found = lined(node(1, self=True), node(2, **changes))

    assert names(found) == ["gpu-node-1"]
    assert len(found.notes) == 1 and why in found.notes[0]


def test_names_are_for_all_nodes_and_hostfiles_for_those_that_train() -> None:
    peers = [node(1, gpus=0), node(2), node(3, address="fe80::3"), node(4, alive=None)]

    assert names(lined(*peers)) == ["gpu-node-2", "gpu-node-4"]
    everybody = lined(*peers, training=False)
    assert len(everybody.entries) == 4 and everybody.notes == ()
    assert "    HostName fe80::3%%eth0\n" in WRITERS["ssh"](everybody)
    assert "fe80" not in WRITERS["hosts"](everybody)


def test_a_record_that_names_this_machine_takes_no_rank_from_it() -> None:
    own = node(1, self=True, gpus=1)
    lies = [
        node(7, host=own.host, address=own.address, priority=9, port=4444, gpus=99),
        node(8, host="other.local", address=own.address, priority=9),
        node(9, host=own.host.upper(), address="10.77.0.9", priority=9),
    ]

    lineup = lined(*lies, node(2), own)

    assert (names(lineup), lineup.own_rank) == (["gpu-node-1", "gpu-node-2"], 0)
    assert (lineup.entries[0].port, lineup.entries[0].gpus) == (own.port, 1)


def test_without_any_gpu_each_machine_has_one_process() -> None:
    assert WRITERS["deepspeed"](lined(node(1, gpus=0), node(2, gpus=0))) == (
        "10.77.0.1 slots=1\n10.77.0.2 slots=1\n"
    )


def test_this_machine_is_named_by_its_address_on_the_network_of_the_others() -> None:
    """Avahi may tell another one of its own."""
    own = node(1, self=True, interface="docker0", address="172.17.0.1")

    entry = lined(own, node(2, interface="eth1", address="10.88.0.2")).entries[0]
    assert (entry.address, entry.interface) == ("10.88.0.1", "eth1")
    assert lined(own).entries[0].address == "172.17.0.1"


def test_machines_with_unequal_gpus_get_the_number_that_accelerate_divides_right() -> None:
    first, second = node(1, gpus=2), node(2, gpus=1)

    for peers, rank, processes in (
        ((replace(first, self=True), second), 0, 4),
        ((first, replace(second, self=True)), 1, 2),
    ):
        text = WRITERS["accelerate"](lined(*peers))
        assert f"machine_rank: {rank}\n" in text and f"num_processes: {processes}\n" in text
        assert "main_process_ip: 10.77.0.1\n" in text


hostile = st.one_of(
    st.text(max_size=80),
    st.sampled_from(
        [
            "a\nProxyCommand touch /run/evil.local",
            "-oProxyCommand=x.local",
            "$(touch /run/evil).local",
            "a;b.local",
            "x slots=9\ny.local",
            "10.0.0.9",
            "fe80::1",
            "eth0'; touch /run/evil; '",
            "gpu-node-7.local",
        ]
    ),
)
strangers = st.builds(
    lambda **changes: node(7, **changes),
    host=hostile,
    name=hostile,
    address=hostile,
    interface=hostile,
    gpu=hostile,
    id=hostile,
    cluster=st.sampled_from(["default", "x\ny"]),
    port=st.integers(-1, 70000),
    gpus=st.integers(0, 10**6),
    priority=st.integers(-9, 9),
)


@given(st.lists(strangers, max_size=4))
def test_no_line_option_or_word_comes_from_the_lan(others: list[Peer]) -> None:
    for format in FORMATS:
        lineup = lined(node(1, self=True), *others, training=format in TRAINING)
        if format in RANKED and lineup.own_rank is None:
            continue
        text = written(format, lineup)
        assert text.endswith("\n")
        for line in text.splitlines():
            assert re.fullmatch(GRAMMAR[format], line, re.ASCII), (format, line)
        if format == "env":
            assert all(len(shlex.split(line)) == 1 for line in text.splitlines())
