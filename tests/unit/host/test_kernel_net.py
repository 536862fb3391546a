"""What is read of the kernel's routes and of systemd-resolved."""

from __future__ import annotations

import pytest

from avahi_gpu.host.kernel_net import neighbours_of
from avahi_gpu.host.resolved import parse
from avahi_gpu.model import Address, Interface, ResolvedMdns


@pytest.mark.parametrize(
    ("own", "prefix", "neighbours"),
    [
        ("10.77.0.1", 24, ["10.77.0.2", "10.77.0.254"]),
        ("10.77.0.254", 24, ["10.77.0.1", "10.77.0.253"]),
        ("10.77.0.1", 30, ["10.77.0.2", "10.77.0.2"]),
        ("10.77.0.1", 31, []),
        ("10.77.0.1", 32, []),
    ],
)
def test_the_ends_of_a_subnet_are_its_neighbours(own: str, prefix: int, neighbours: list[str]) -> None:
    card = Interface("eth0", 2, "wired", up=True, running=True, multicast=True)
    card = Interface(**{**vars(card), "addresses": (Address(own, prefix, 4, "global"),)})

    assert list(neighbours_of(card)) == neighbours


def test_resolvectl_tells_of_all_and_of_each_link() -> None:
    text = "Global: yes\nLink 2 (enp1s0): no\nLink 3 (wlp2s0): resolve\n"

    assert parse(text) == ResolvedMdns("yes", (("enp1s0", "no"), ("wlp2s0", "resolve")))
    assert parse("") == ResolvedMdns("no")
    assert parse("nonsense: yes\nGlobal: maybe") == ResolvedMdns("no")
