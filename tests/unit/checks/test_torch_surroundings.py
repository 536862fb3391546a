"""The environment of torch, judged on facts: what is not set is not judged."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from avahi_gpu.checks.ports import job_ports_free, job_ports_reserved, no_leftovers
from avahi_gpu.checks.registry import run_checks
from avahi_gpu.checks.torch_surroundings import (
    endpoint_found,
    endpoint_has_a_host,
    gloo_address,
    interface_variables,
    nccl_interface,
)
from avahi_gpu.files import torch_environment
from avahi_gpu.model import Address, Endpoint, Facts, Interface, LauncherFile, Leftover, Listener, OwnName

DEBIAN = OwnName("gpu-node-1", "gpu-node-1", (("gpu-node-1", "127.0.1.1"),))
C10D = {"PET_RDZV_BACKEND": "c10d", "PET_RDZV_ENDPOINT": "gpu-node-1.local:29500"}
HERE = Endpoint("PET_RDZV_ENDPOINT", "gpu-node-1.local", 29500, addresses=("10.77.0.1",), alive=True)
THERE = Endpoint("MASTER_ADDR", "gpu-node-2.local", 29500, addresses=("10.77.0.2",), alive=True)
BRIDGE = Interface(
    "br-1f3a",
    1,
    "virtual",
    up=True,
    running=True,
    multicast=True,
    addresses=(Address("172.18.0.1", 16, 4, "global"),),
)


def on(facts: Facts, **host: object) -> Facts:
    return replace(facts, host=replace(facts.host, **host))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        (Endpoint("MASTER_ADDR", "gpu-node-2", 29500, error="name not found"), "cannot look it up"),
        (Endpoint("MASTER_ADDR", "", 29500, "there is no host"), "there is no host"),
        (replace(THERE, alive=False), "nobody is at 10.77.0.2"),
        (replace(THERE, addresses=("127.0.1.1",)), "127.0.1.1 here"),
    ],
)
def test_an_endpoint_that_leads_nowhere_is_an_error(endpoint: Endpoint, words: str, healthy: Facts) -> None:
    found = endpoint_found(on(healthy, endpoints=(endpoint,)))

    assert found.verdict == "error" and words in found.says


@pytest.mark.parametrize(
    "endpoint",
    [
        THERE,
        replace(THERE, alive=None),
        replace(HERE, alive=False),
        Endpoint("MASTER_ADDR", "localhost", 29500, addresses=("127.0.0.1",)),
        Endpoint("MASTER_ADDR", "127.0.0.1", 29500, addresses=("127.0.0.1",)),
        Endpoint("MASTER_ADDR", "gpu-node-1", 29500, addresses=("127.0.1.1",)),
    ],
)
def test_an_endpoint_that_may_work_is_none(endpoint: Endpoint, healthy: Facts) -> None:
    assert endpoint_found(on(healthy, endpoints=(endpoint,))).verdict == "ok"


def test_a_local_name_is_not_judged_without_avahi(healthy: Facts) -> None:
    lost = replace(THERE, addresses=(), error="name not found", alive=None)
    facts = on(replace(healthy, daemon=replace(healthy.daemon, on_bus=False)), endpoints=(lost,))

    assert endpoint_found(facts).verdict == "skip"


def test_an_endpoint_that_c10d_does_not_recognise_has_no_host(healthy: Facts) -> None:
    found = endpoint_has_a_host(on(healthy, environment=C10D, endpoints=(HERE,), own_name=DEBIAN))

    assert found.verdict == "error" and "does not see that" in found.says
    assert found.fix is not None
    assert found.fix.commands == ("export PET_RDZV_CONF=is_host=1", "export PET_LOCAL_ADDR=10.77.0.1")


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ({"PET_RDZV_CONF": "is_host=1", "PET_LOCAL_ADDR": "10.77.0.1"}, "ok"),
        ({"PET_RDZV_CONF": "is_host=1"}, "error"),  # it would tell the others its bare name
        ({"PET_RDZV_CONF": "is_host=0"}, "error"),
        ({"PET_RDZV_BACKEND": "static"}, "ok"),
    ],
)
def test_what_torchrun_is_told_counts(more: dict[str, str], verdict: str, healthy: Facts) -> None:
    facts = on(healthy, environment={**C10D, **more}, endpoints=(HERE,), own_name=DEBIAN)

    assert endpoint_has_a_host(facts).verdict == verdict


def test_an_own_name_on_the_lan_is_recognised(healthy: Facts) -> None:
    assert endpoint_has_a_host(on(healthy, environment=C10D, endpoints=(HERE,))).verdict == "ok"


def test_a_host_elsewhere_is_not_this_one(healthy: Facts) -> None:
    there = replace(THERE, variable="PET_RDZV_ENDPOINT")
    wrong = {**C10D, "PET_RDZV_CONF": "is_host=1"}

    assert (
        endpoint_has_a_host(on(healthy, environment=C10D, endpoints=(there,), own_name=DEBIAN)).verdict
        == "ok"
    )
    assert endpoint_has_a_host(on(healthy, environment=wrong, endpoints=(there,))).verdict == "error"


@pytest.mark.parametrize(
    ("environ", "verdict"),
    [
        ({}, "ok"),
        ({"MASTER_ADDR": "10.77.0.2"}, "error"),
        ({"MASTER_ADDR": "10.77.0.2", "GLOO_SOCKET_IFNAME": "eth0"}, "ok"),
        ({"MASTER_ADDR": "127.0.0.1"}, "ok"),
    ],
)
def test_debians_line_is_an_error_only_where_gloo_would_use_it(
    environ: dict[str, str], verdict: str, healthy: Facts
) -> None:
    found = gloo_address(on(healthy, environment=environ, own_name=DEBIAN))

    assert found.verdict == verdict
    if found.fix:
        assert found.fix.commands == ("export GLOO_SOCKET_IFNAME=eth0",)


def test_with_a_lan_line_gloo_is_fine(healthy: Facts) -> None:
    assert gloo_address(on(healthy, environment={"MASTER_ADDR": "10.77.0.2"})).verdict == "ok"


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"GLOO_SOCKET_IFNAME": "10.77.0.1"}, "no interface's name"),
        ({"GLOO_SOCKET_IFNAME": "eth0,eth7"}, "no such interface"),
        ({"TP_SOCKET_IFNAME": "eth7"}, "no such interface"),
        ({"NCCL_SOCKET_IFNAME": "enp"}, "gives up"),
        ({"NCCL_SOCKET_IFNAME": "^docker"}, "no other node can reach"),
        ({"NCCL_SOCKET_FAMILY": "AF_INET6"}, "no global IPv6 address"),
        ({"GLOO_SOCKET_IFNAME": "lo", "MASTER_ADDR": "10.77.0.2"}, "cannot reach loopback"),
    ],
)
def test_an_interface_that_is_none_is_an_error(environ: dict[str, str], words: str, healthy: Facts) -> None:
    found = interface_variables(on(healthy, environment=environ))

    assert found.verdict == "error" and words in found.says and found.fix is not None


@pytest.mark.parametrize(
    "environ",
    [
        {"GLOO_SOCKET_IFNAME": "eth0"},
        {"NCCL_SOCKET_IFNAME": "=eth0"},
        {"NCCL_SOCKET_IFNAME": "eth"},
        {"NCCL_SOCKET_IFNAME": "^lo,docker"},
        {"GLOO_SOCKET_IFNAME": ""},
    ],
)
def test_an_interface_that_is_there_is_none(environ: dict[str, str], healthy: Facts) -> None:
    assert interface_variables(on(healthy, environment=environ)).verdict == "ok"


def test_what_deepspeed_gives_to_all_nodes_counts_too(healthy: Facts) -> None:
    shared = LauncherFile("/root/.deepspeed_env", "GLOO_SOCKET_IFNAME=enp5s0\n# x\n")

    found = interface_variables(on(healthy, deepspeed_env=shared))

    assert found.verdict == "error" and "/root/.deepspeed_env is read too" in found.evidence
    own = on(healthy, deepspeed_env=shared, environment={"GLOO_SOCKET_IFNAME": "eth0"})
    assert interface_variables(own).verdict == "ok"


def test_docker_alone_is_no_error_for_nccl(healthy: Facts) -> None:
    bridged = replace(healthy, interfaces=(BRIDGE, *healthy.interfaces))

    assert nccl_interface(bridged).verdict == "info"
    by_hand = on(bridged, environment={"MASTER_ADDR": "10.77.0.2"})
    assert nccl_interface(by_hand).verdict == "error"
    assert nccl_interface(replace(by_hand, gpus=())).verdict == "info"


def test_one_address_for_every_communicator_is_warned_of(healthy: Facts) -> None:
    assert nccl_interface(on(healthy, environment={"NCCL_COMM_ID": "10.77.0.1:2"})).verdict == "warn"


def test_a_stranger_on_the_port_is_an_error_and_a_job_is_none(healthy: Facts) -> None:
    stranger = Listener(29500, "0.0.0.0", 0, 42, "python3 -m http.server 29500")
    job = replace(stranger, job=True, command="python train.py")
    hidden = Listener(29500, "0.0.0.0", 1000)

    found = job_ports_free(on(healthy, listeners=(stranger,)))

    assert found.verdict == "error" and "http.server" in found.says
    assert found.fix is not None and found.fix.commands == ("kill 42",)
    assert job_ports_free(on(healthy, listeners=(job,))).verdict == "info"
    assert job_ports_free(on(healthy, listeners=(hidden,))).verdict == "info"
    assert job_ports_free(on(healthy, listeners=(replace(stranger, port=29777),))).verdict == "ok"


def test_the_port_of_an_endpoint_here_counts_and_of_one_elsewhere_does_not(healthy: Facts) -> None:
    stranger = Listener(29777, "0.0.0.0", 0, 42, "x")
    here, there = replace(HERE, port=29777), replace(THERE, port=29777)

    assert job_ports_free(on(healthy, listeners=(stranger,), endpoints=(here,))).verdict == "error"
    assert job_ports_free(on(healthy, listeners=(stranger,), endpoints=(there,))).verdict == "ok"


def test_a_worker_without_an_agent_is_the_cause_of_its_port(healthy: Facts) -> None:
    left = Leftover(42, "python train.py", "llama", ("port 29500", "/dev/nvidia0"))
    facts = on(healthy, leftovers=(left,), listeners=(Listener(29500, "0.0.0.0", 0, 42, "x"),))

    found = no_leftovers(facts)

    assert (
        found.verdict == "error" and "run llama" in found.evidence[0] and "/dev/nvidia0" in found.evidence[0]
    )
    assert {f.id: f.verdict for f in run_checks(facts)}["AG331"] == "skip"


def test_what_a_worker_had_started_is_no_error_unless_it_holds_something(healthy: Facts) -> None:
    helper = Leftover(42, "tensorboard --logdir x", "llama", worker=False)

    assert no_leftovers(on(healthy, leftovers=(helper,))).verdict == "warn"
    assert no_leftovers(on(healthy, leftovers=(replace(helper, holds=("/dev/nvidia0",)),))).verdict == "error"


@pytest.mark.parametrize(
    ("given", "reserved", "verdict"),
    [
        ((32768, 60999), "", "ok"),
        ((1024, 65535), "", "warn"),
        ((1024, 65535), "8080,29500-29999", "ok"),
        ((1024, 29000), "", "ok"),
        ((1024, 65535), "x,-", "warn"),
    ],
)
def test_the_range_of_local_ports(
    given: tuple[int, int], reserved: str, verdict: str, healthy: Facts
) -> None:
    assert job_ports_reserved(on(healthy, port_range=given, reserved_ports=reserved)).verdict == verdict


VARIABLES = (
    "MASTER_ADDR", "MASTER_PORT", "PET_RDZV_ENDPOINT", "PET_RDZV_BACKEND", "PET_RDZV_CONF", "PET_NNODES",
    "PET_MASTER_ADDR", "PET_LOCAL_ADDR", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME",
    "NCCL_SOCKET_FAMILY", "NCCL_COMM_ID",
)  # fmt: skip
WORDS = st.text(max_size=20) | st.sampled_from(
    ["c10d", "is_host=1", "lo", "eth0", "^", "=", "10.77.0.1", "1:2"]
)
ADDRESSES = st.sampled_from(["127.0.0.1", "10.77.0.1", "::1", "fe80::1%eth0", "no address", ""])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.dictionaries(st.sampled_from(VARIABLES), WORDS),
    st.lists(ADDRESSES, max_size=2).map(tuple),
    st.sampled_from([True, False, None]),
    st.text(max_size=40),
)
def test_no_environment_and_no_file_breaks_a_check(
    healthy: Facts, environ: dict[str, str], addresses: tuple[str, ...], alive: bool | None, text: str
) -> None:
    found = tuple(replace(e, addresses=addresses, alive=alive) for e in torch_environment.endpoints(environ))
    file = LauncherFile("/job/hostfile", text, found)
    facts = on(healthy, environment=environ, endpoints=found, hostfile=file, accelerate=file, own_name=DEBIAN)

    findings = run_checks(facts, ["host"])

    assert [f.says for f in findings if "itself failed" in f.says] == []
