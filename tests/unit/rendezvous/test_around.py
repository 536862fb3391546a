"""Which addresses are asked where records do not get through."""

from __future__ import annotations

from avahi_gpu.model import Address, Interface
from avahi_gpu.rendezvous.around import subnet_addresses


def interface(name: str, *addresses: Address, link: str = "wired") -> Interface:
    return Interface(name, 2, link, True, True, True, addresses=addresses)  # type: ignore[arg-type]


def test_every_address_of_the_lan_but_our_own_and_none_of_a_large_network() -> None:
    lan = interface("eth0", Address("10.0.0.5", 29, 4, "global"), Address("fd00::5", 64, 6, "global"))
    large = interface("eth1", Address("172.16.0.1", 16, 4, "global"))
    tunnel = interface("wg0", Address("10.9.0.1", 24, 4, "global"), link="tunnel")

    assert subnet_addresses([lan, large, tunnel]) == tuple(f"10.0.0.{n}" for n in (1, 2, 3, 4, 6))


def test_a_thousand_addresses_at_most_are_asked_of_a_subnet() -> None:
    lan = interface("eth0", Address("10.0.0.5", 22, 4, "global"))

    assert len(subnet_addresses([lan])) == 1021
