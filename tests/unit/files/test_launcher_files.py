"""Hostfiles and accelerate's configuration, as their launchers read them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.files.launcher_files import (
    IDLE_MAX,
    MAX_HOSTS,
    number_of,
    parse_deepspeed_config,
    parse_flat,
    parse_hostfile,
    parse_variables,
)


def test_a_hostfile_is_hosts_and_slots() -> None:
    found = parse_hostfile("# mine\n\ngpu-node-1.local slots=8\n10.0.0.2  slots=4 # old\n")

    assert found.hosts == ((3, "gpu-node-1.local"), (4, "10.0.0.2")) and found.complaints == ()


@pytest.mark.parametrize(
    "text", ["a\n", "a slots=\n", "a slots = 2\n", "a slots=1\na slots=1\n", "", "# no\n"]
)
def test_what_deepspeed_ends_with_is_complained_of(text: str) -> None:
    assert parse_hostfile(text).complaints


def test_a_huge_hostfile_is_bounded() -> None:
    assert len(parse_hostfile("".join(f"h{i} slots=1\n" for i in range(1000))).hosts) == MAX_HOSTS


def test_yaml_and_json_say_the_same() -> None:
    yaml = "num_machines: 2  # two\nmain_process_ip: '10.0.0.1'\nfsdp_config:\n  num_machines: 9\n"
    json = '{\n  "num_machines": 2,\n  "main_process_ip": "10.0.0.1",\n  "x": {"y": 1}\n}\n'

    for text in (yaml, json):
        found = parse_flat(text)
        assert (number_of(found, "num_machines"), found["main_process_ip"]) == (2, "10.0.0.1")


def test_variables_are_names_and_values() -> None:
    assert parse_variables("A=1\nB_2=x=y \n# C=3\nno\n=4\n") == {"A": "1", "B_2": "x=y"}


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    parse_hostfile(text)
    number_of(parse_flat(text), "x")
    parse_variables(text)


@pytest.mark.parametrize(
    ("text", "idle"),
    [
        ("{}", []),
        ('{"train_batch_size": 8, "zero_optimization": {"stage": 3}}', []),
        ('{"master_addr": "10.0.0.1", "master_port": 29500}', ["master_addr", "master_port"]),
        ('{"comms": {"nnodes": 2}}', ["comms.nnodes"]),
        ('{"autotuning": {"master_addr": "x"}}', []),
        ("{\n  # Hjson\n  master_addr: 10.0.0.1\n}", ["master_addr"]),
        ("{ 'master_port' : 1, }", ["master_port"]),
    ],
)
def test_keys_that_deepspeed_reads_nowhere_are_found(text: str, idle: list[str]) -> None:
    found = parse_deepspeed_config(text)

    assert [name for name, _ in found.idle] == idle
    assert found.complaint == ""


@pytest.mark.parametrize("text", ["[]", "3", '{"a": 1, "a": 2}', '{"x": {"a": 1, "a": 2}}'])
def test_what_deepspeed_ends_with_is_told(text: str) -> None:
    assert parse_deepspeed_config(text).complaint


@pytest.mark.parametrize("depth", [900, *range(960, 1010, 2), 5000])
def test_nesting_deeper_than_python_descends_is_looked_through(depth: int) -> None:
    for begin, end in (('{"a":', "}"), ('{"nnodes":' + "[" * 900, "]" * 900 + "}"), ("[", "]")):
        parse_deepspeed_config(begin * depth + "1" + end * depth)


@given(
    st.text() | st.recursive(st.none() | st.text(), lambda x: st.dictionaries(st.text(), x)).map(json.dumps)
)
def test_any_text_is_looked_through(text: str) -> None:
    assert len(parse_deepspeed_config(text).idle) <= IDLE_MAX
