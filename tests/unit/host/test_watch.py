"""What a change of this machine's network is called, and whom a watch may ask."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.host.net import may_be_asked
from avahi_gpu.host.watch import bare_host, describe_change, target_of
from avahi_gpu.model import Address, Interface, Service

ETH = Interface("eth0", 2, "wired", True, True, True, addresses=(Address("10.0.0.1", 24, 4, "global"),))
FE80 = Address("fe80::1", 64, 6, "link")
GLOBAL6 = Address("2001:db8::1", 64, 6, "global")


@pytest.mark.parametrize(
    ("before", "now", "lines"),
    [
        ([ETH], [ETH], []),
        ([ETH], [], ["eth0 is gone"]),
        ([], [ETH], ["eth0 is there, 10.0.0.1"]),
        ([], [replace(ETH, addresses=())], ["eth0 is there, without an address"]),
        ([ETH], [replace(ETH, running=False)], ["eth0 has lost its connection"]),
        ([replace(ETH, running=False)], [ETH], ["eth0 is connected again"]),
        ([ETH], [replace(ETH, addresses=())], ["eth0 has no address any more"]),
        (
            [ETH],
            [replace(ETH, addresses=(Address("10.0.0.9", 24, 4, "global"),))],
            ["eth0 has the address 10.0.0.9 now"],
        ),
        ([ETH], [replace(ETH, addresses=(*ETH.addresses, FE80, GLOBAL6))], []),  # they come and go
        (
            [replace(ETH, addresses=())],
            [replace(ETH, addresses=(GLOBAL6,))],
            ["eth0 has the address 2001:db8::1 now"],
        ),
        ([ETH], [ETH, replace(ETH, name="docker0", index=9, link="virtual")], []),
        ([ETH], [ETH, replace(ETH, name="wg0", index=9, link="tunnel")], []),
        ([ETH], [replace(ETH, index=7)], []),  # taken out and put in: Avahi tells the rest
    ],
)
def test_a_change_of_the_network_is_told(
    before: list[Interface], now: list[Interface], lines: list[str]
) -> None:
    assert describe_change(before, now) == lines


@pytest.mark.parametrize(
    "address", ["224.0.0.251", "255.255.255.255", "0.0.0.0", "127.0.0.1", "::1", "ff02::1", "::"]
)
def test_nobody_is_asked_where_many_would_answer_or_only_we(address: str) -> None:
    assert not may_be_asked(address)


def test_a_target_has_a_scope_where_it_needs_one() -> None:
    service = Service("x", "_torch._tcp", 3, 6, "X.local", "fe80::2", 29500)

    assert may_be_asked("10.0.0.1") and may_be_asked("fe80::1")
    assert target_of(service).scope == 3
    assert target_of(replace(service, address="2001:db8::2")).scope == 0
    assert bare_host("GPU-Node-1.local.") == bare_host("gpu-node-1") == "gpu-node-1"
