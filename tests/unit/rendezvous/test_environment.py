"""Which interfaces the user's variables allow: the syntax of gloo and of NCCL, and our own option."""

from __future__ import annotations

import pytest

from avahi_gpu.rendezvous.environment import (
    interface_variables,
    missing_variables,
    nccl_matches,
    read_demand,
)


@pytest.mark.parametrize(
    ("pattern", "taken", "left"),
    [
        ("eth", {"eth0", "eth1", "eth01"}, {"ib0", "lo"}),
        ("eth0", {"eth0", "eth01"}, {"eth1"}),
        ("=eth0", {"eth0"}, {"eth01", "eth1"}),
        ("=eth0,ib0", {"eth0", "ib0"}, {"ib01", "eth1"}),
        ("eth,ib", {"eth0", "ib3"}, {"wlan0"}),
        ("^docker", {"eth0", "lo"}, {"docker0"}),
        ("^docker,lo", {"eth0", "br0"}, {"docker0", "lo"}),
        ("^=eth0", {"eth01", "ib0"}, {"eth0"}),
        ("eth0:4000", {"eth0"}, {"ib0"}),
    ],
)
def test_nccl_takes_prefixes_exact_names_and_all_others(
    pattern: str, taken: set[str], left: set[str]
) -> None:
    assert {name for name in taken | left if nccl_matches(pattern, name)} == taken


def test_gloo_takes_exact_names_at_commas() -> None:
    demand = read_demand(None, {"GLOO_SOCKET_IFNAME": "eth1,ib0"})

    assert [name for name in ("eth1", "ib0", "eth10", "eth0") if demand.allows(name)] == ["eth1", "ib0"]
    assert demand.words == "GLOO_SOCKET_IFNAME=eth1,ib0"


def test_both_variables_hold_at_once() -> None:
    demand = read_demand(None, {"GLOO_SOCKET_IFNAME": "eth0,eth1", "NCCL_SOCKET_IFNAME": "^eth0"})

    assert [name for name in ("eth0", "eth1", "eth2") if demand.allows(name)] == ["eth1"]
    assert demand.words == "GLOO_SOCKET_IFNAME=eth0,eth1 and NCCL_SOCKET_IFNAME=^eth0"


def test_our_own_option_comes_before_what_nccl_is_told() -> None:
    demand = read_demand("eth2", {"NCCL_SOCKET_IFNAME": "=eth1"})

    assert demand.allows("eth2")
    assert not demand.allows("eth1")
    assert demand.words == "--interface eth2"


@pytest.mark.parametrize("value", ["", "^", "e"])
def test_a_value_that_the_libraries_take_for_none_asks_nothing(value: str) -> None:
    demand = read_demand(None, {"GLOO_SOCKET_IFNAME": value, "NCCL_SOCKET_IFNAME": value})

    assert demand.allows("anything")
    assert demand.words == ""


def test_what_the_user_has_set_stays_and_what_we_set_before_does_not() -> None:
    first = interface_variables("eth1", "10.9.0.1")
    environ = {
        "NCCL_SOCKET_IFNAME": "^docker",
        **{k: v for k, v in first.items() if k != "NCCL_SOCKET_IFNAME"},
    }

    ours = missing_variables(first, {"NCCL_SOCKET_IFNAME": "^docker"}, {})
    second = missing_variables(interface_variables("eth0", "fd77::1"), environ, ours)

    assert second == {
        "GLOO_SOCKET_IFNAME": "eth0",
        "NCCL_SOCKET_FAMILY": "AF_INET6",
        "TP_SOCKET_IFNAME": "eth0",
    }
