"""A node lets itself be made to reach nodes of its LAN on ports of jobs, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.model import Address, Interface
from avahi_gpu.survey.limits import is_job_port, is_mdns_name, on_link, refuse_target
from avahi_gpu.survey.messages import Target


def interface(name: str, link: str, *addresses: Address) -> Interface:
    return Interface(name, 2, link, True, True, True, addresses=addresses)  # type: ignore[arg-type]


HERE = (
    interface("lo", "loopback", Address("127.0.0.1", 8, 4, "host")),
    interface("eth0", "wired", Address("10.0.0.1", 24, 4, "global"), Address("fd00::1", 64, 6, "global")),
    interface("wg0", "tunnel", Address("10.9.0.1", 24, 4, "global")),
    interface("eth1", "wired", Address("10.1.0.0", 31, 4, "global")),
)


@pytest.mark.parametrize(
    ("address", "near"),
    [
        ("10.0.0.2", True),
        ("fd00::2", True),
        ("10.1.0.1", True),  # a cable between two: both addresses are hosts'
        ("10.0.0.0", False),
        ("10.0.0.255", False),
        ("10.0.1.2", False),
        ("10.9.0.2", False),
        ("127.0.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.251", False),
        ("::ffff:127.0.0.1", False),
        ("ff02::fb", False),
        ("1.2.3", False),
        (":::", False),
    ],
)
def test_only_addresses_of_own_subnets_are_near(address: str, near: bool) -> None:
    assert on_link(address, HERE) is near


@given(st.text(alphabet="0123456789abcdef:.%", max_size=45))
def test_any_text_is_judged(address: str) -> None:
    assert on_link(address, HERE) in (True, False)


@pytest.mark.parametrize("port", [29400, 29419, 29500, 29999, 32768, 65535])
def test_ports_of_jobs(port: int) -> None:
    assert is_job_port(port)


@pytest.mark.parametrize("port", [0, 22, 80, 443, 8080, 29399, 29420, 29499, 30000, 32767])
def test_ports_of_others(port: int) -> None:
    assert not is_job_port(port)


@pytest.mark.parametrize("name", ["a.local", "gpu-node-1.local", "gpu-node-1.local."])
def test_names_of_mdns(name: str) -> None:
    assert is_mdns_name(name)


@pytest.mark.parametrize(
    "name",
    ["", "local", ".local", "a.b.local", "example.com", "a.local.example.com", "-x.local", "a b.local"],
)
def test_names_of_others(name: str) -> None:
    assert not is_mdns_name(name)


def test_networks_of_containers_count_where_there_is_no_other() -> None:
    docker = interface("docker0", "virtual", Address("172.17.0.1", 16, 4, "global"))

    assert not on_link("172.17.0.2", (*HERE, docker))
    assert on_link("172.17.0.2", (HERE[0], docker))


def test_a_stranger_reaches_nodes_that_are_seen_and_whoever_has_the_key_all_near_ones() -> None:
    target = Target("10.0.0.7", "a.local", 1500, (29500,))

    assert refuse_target(target, {"10.0.0.8"}, HERE) == "this node does not see it"
    assert refuse_target(target, {"10.0.0.7"}, HERE) == ""
    assert refuse_target(target, None, HERE) == ""
    assert refuse_target(Target("10.0.0.7", "a.local", 1500, (29500, 22)), None, HERE)
    assert refuse_target(Target("10.0.0.7", "a.example", 1500, ()), None, HERE)
    assert refuse_target(Target("10.5.0.7"), None, HERE)
