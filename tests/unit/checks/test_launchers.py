"""The files that launchers go by, judged on facts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.checks.launchers import (
    accelerate_config,
    cluster_key,
    deepspeed_config,
    deepspeed_hosts,
    first_address,
    hostname_words,
)
from avahi_gpu.model import Address, ClusterKey, Endpoint, Facts, Interface, LauncherFile

HERE = Endpoint("/job/hostfile:1", "gpu-node-1.local", 22, addresses=("10.77.0.1",), alive=True)
THERE = Endpoint("/job/hostfile:2", "gpu-node-2.local", 22, addresses=("10.77.0.2",), alive=True)
TEXT = "gpu-node-1.local slots=1\ngpu-node-2.local slots=1\n"
DOCKER = Interface(
    "docker0",
    1,
    "virtual",
    up=True,
    running=True,
    multicast=True,
    addresses=(Address("172.17.0.1", 16, 4, "global"),),
)
CONFIG = "/root/.cache/huggingface/accelerate/default_config.yaml"


def on(facts: Facts, **host: object) -> Facts:
    return replace(facts, host=replace(facts.host, **host))  # type: ignore[arg-type]


def hostfile(facts: Facts, text: str = TEXT, *endpoints: Endpoint, error: str = "") -> Facts:
    return on(facts, hostfile=LauncherFile("/job/hostfile", text, endpoints or (HERE, THERE), error))


@pytest.mark.parametrize(
    ("facts_of", "words"),
    [
        (lambda f: hostfile(f, error="permission denied"), "cannot read"),
        (lambda f: hostfile(f, "gpu-node-1\n"), "does not take"),
        (lambda f: hostfile(f, "a slots=1\na slots=1\n"), "does not take"),
        (lambda f: hostfile(f, TEXT, HERE, replace(THERE, addresses=(), error="x")), "cannot be looked up"),
        (lambda f: hostfile(f, TEXT, HERE, replace(THERE, alive=False)), "does not answer"),
    ],
)
def test_a_hostfile_that_deepspeed_cannot_use(facts_of: object, words: str, healthy: Facts) -> None:
    found = deepspeed_hosts(facts_of(healthy))  # type: ignore[operator]

    assert found.verdict == "error" and words in found.says


def test_a_good_hostfile_and_none_are_fine(healthy: Facts) -> None:
    assert deepspeed_hosts(hostfile(healthy)).verdict == "ok"
    assert deepspeed_hosts(healthy).verdict == "ok"


def test_docker_first_is_an_error_only_where_deepspeed_would_go_by_it(healthy: Facts) -> None:
    docker = replace(healthy, interfaces=(DOCKER, *healthy.interfaces))

    assert [word for _, word in hostname_words(docker)] == ["172.17.0.1", "10.77.0.1"]
    assert first_address(healthy).verdict == "ok"
    assert first_address(docker).verdict == "info"
    assert first_address(hostfile(docker, TEXT, THERE, HERE)).verdict == "info"
    found = first_address(hostfile(docker))
    assert found.verdict == "error" and "172.17.0.1" in found.says
    assert found.fix is not None and found.fix.commands == ("deepspeed --master_addr 10.77.0.1 …",)


def test_a_second_card_without_any_peer_is_not_the_lan(healthy: Facts) -> None:
    other = replace(DOCKER, name="eno1", link="wired", addresses=(Address("192.168.5.1", 24, 4, "global"),))
    wired = hostfile(replace(healthy, interfaces=(other, *healthy.interfaces)))

    assert first_address(replace(wired, peers=())).verdict == "ok"
    best = first_address(wired)
    assert best.verdict in ("ok", "error")


def test_a_key_that_launch_refuses_is_an_error(healthy: Facts) -> None:
    found = cluster_key(on(healthy, key=ClusterKey(error="it is open to other users", hint="chmod 600")))

    assert found.verdict == "error" and found.hint == "chmod 600"
    assert cluster_key(on(healthy, key=ClusterKey("/etc/avahi-gpu/key"))).verdict == "ok"


@pytest.mark.parametrize(
    ("text", "host", "addresses", "verdict"),
    [
        ("num_machines: 1\n", "", (), "ok"),
        ("num_machines: 2\nmachine_rank: 0\nmain_process_ip: 10.77.0.1\n", "10.77.0.1", ("10.77.0.1",), "ok"),
        ("num_machines: 2\nmachine_rank: 1\nmain_process_ip: 10.77.0.2\n", "10.77.0.2", ("10.77.0.2",), "ok"),
        (
            "num_machines: 2\nmachine_rank: 1\nmain_process_ip: 10.77.0.1\n",
            "10.77.0.1",
            ("10.77.0.1",),
            "error",
        ),
        (
            "num_machines: 2\nmachine_rank: 0\nmain_process_ip: 10.77.0.2\n",
            "10.77.0.2",
            ("10.77.0.2",),
            "error",
        ),
        (
            "num_machines: 2\nmachine_rank: 2\nmain_process_ip: 10.77.0.2\n",
            "10.77.0.2",
            ("10.77.0.2",),
            "error",
        ),
        ("num_machines: 2\nmachine_rank: 0\nmain_process_ip: null\n", "", (), "error"),
        ("num_machines: 2\nmachine_rank: 0\nmain_process_ip: gpu9\n", "gpu9", (), "error"),
        ("num_machines: 2\nmachine_rank: 9\nrdzv_backend: avahi\nmain_process_ip: x\n", "x", (), "ok"),
        (
            "num_machines: 2\nmachine_rank: 0\nmain_process_ip: 10.77.0.1\nnum_processes: 3\n",
            "10.77.0.1",
            ("10.77.0.1",),
            "warn",
        ),
        (
            '{\n  "num_machines": 2,\n  "machine_rank": 1,\n  "main_process_ip": "10.77.0.1"\n}\n',
            "10.77.0.1",
            ("10.77.0.1",),
            "error",
        ),
    ],
)
def test_accelerates_file(
    text: str, host: str, addresses: tuple[str, ...], verdict: str, healthy: Facts
) -> None:
    endpoints = (Endpoint(CONFIG, host, 29500, addresses=addresses, alive=True),) if host else ()

    assert accelerate_config(on(healthy, accelerate=LauncherFile(CONFIG, text, endpoints))).verdict == verdict


@pytest.mark.parametrize(
    ("file", "verdict", "words"),
    [
        (LauncherFile("", ""), "ok", ""),
        (LauncherFile("/x/ds.json", "{}"), "ok", ""),
        (
            LauncherFile("/x/ds.json", '{"master_addr": "a"}'),
            "warn",
            "master_addr in /x/ds.json does nothing",
        ),
        (LauncherFile("/x/ds.json", "train_batch_size: 8"), "info", "not plain JSON"),
        (LauncherFile("/x/ds.json", "[]"), "error", "DeepSpeed does not take /x/ds.json"),
        (LauncherFile("/x/ds.json", "", error="there is no such file"), "error", "there is no such file"),
        (None, "unknown", ""),
    ],
)
def test_a_configuration_of_deepspeeds_says_nothing_of_addresses(
    file: LauncherFile | None, verdict: str, words: str, healthy: Facts
) -> None:
    found = deepspeed_config(on(healthy, deepspeed_config=file))

    assert found.verdict == verdict and words in found.says
