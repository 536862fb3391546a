"""Which interfaces NCCL takes, by the rules that its own library was seen to follow."""

from __future__ import annotations

import pytest

from avahi_gpu.files.socket_ifname import names_of, nccl_choice, nccl_takes
from avahi_gpu.model import Address, Interface


def interface(name: str, index: int, *, up: bool = True) -> Interface:
    address = (Address(f"10.0.{index}.1", 24, 4, "global"),)
    return Interface(name, index, "wired", up=up, running=up, multicast=True, addresses=address)


LO, ETH, ETH01, DOCKER, BRIDGE = (
    interface("lo", 1),
    interface("eth0", 3),
    interface("eth01", 4),
    interface("docker0", 5),
    interface("br-lan0", 2),
)


@pytest.mark.parametrize(
    ("value", "name", "takes"),
    [
        ("eth", "eth0", True),
        ("eth0", "eth01", True),
        ("=eth0", "eth01", False),
        ("=eth0,eth1", "eth1", True),
        ("^docker", "docker0", False),
        ("^docker", "lo", True),
        ("^docker,lo", "lo", False),
        ("^=eth0", "eth01", True),
        ("10.0.3.1", "eth0", False),
        ("eth0:1234", "eth0", True),
        (",", "eth0", False),
    ],
)
def test_which_names_fit(value: str, name: str, takes: bool) -> None:
    assert nccl_takes(value, name) is takes


@pytest.mark.parametrize(
    ("value", "interfaces", "chosen"),
    [
        ("", [LO, ETH, DOCKER], "eth0"),
        ("", [LO, ETH, BRIDGE], "br-lan0"),
        ("", [LO, DOCKER], "docker0"),
        ("", [LO], "lo"),
        ("", [], None),
        ("", [LO, ETH, interface("ibmgmt0", 9)], "ibmgmt0"),
        ("", [LO, interface("eth0", 3, up=False), DOCKER], "docker0"),
        ("^docker", [LO, ETH, DOCKER], "lo"),
        ("^docker,lo", [LO, ETH, DOCKER], "eth0"),
        ("=eth01", [LO, ETH, ETH01], "eth01"),
        ("wlan", [LO, ETH], None),
    ],
)
def test_what_nccl_takes_first(value: str, interfaces: list[Interface], chosen: str | None) -> None:
    found = nccl_choice(value, interfaces)

    assert (found.name if found else None) == chosen


def test_gloo_takes_names_between_commas() -> None:
    assert names_of("eth0, eth1") == ["eth0", "eth1"]
