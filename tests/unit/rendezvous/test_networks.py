"""Which network a round runs on: what is shared, what is best, what users ask for, what one node offers."""

from __future__ import annotations

import ipaddress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.errors import LaunchFailed
from avahi_gpu.model import Address, Interface
from avahi_gpu.model.units import show_speed
from avahi_gpu.rendezvous.environment import Demand
from avahi_gpu.rendezvous.messages import NETWORKS_MAX, Attachment
from avahi_gpu.rendezvous.networks import (
    Standing,
    attachments,
    choose_address,
    describe,
    describe_discord,
    find_ways,
    lacks,
)


def at(
    address: str, interface: str = "eth0", *, prefix: int = 24, link: str = "wired", mbit: int = 1000
) -> Attachment:
    return Attachment(interface, address, prefix, link, mbit)


def lan(number: int) -> Attachment:
    return at(f"10.77.0.{number}")


def fast(number: int) -> Attachment:
    return at(f"10.9.0.{number}", "eth1", mbit=10_000)


def docker(_: int) -> Attachment:
    return at("172.17.0.1", "docker0", prefix=16, link="virtual", mbit=0)


def nodes(*kinds: object, count: int = 3) -> list[Standing]:
    """So many nodes, each on all of these networks."""
    return [
        Standing(f"node-{n}", f"10.77.0.{n}", tuple(kind(n) for kind in kinds))  # type: ignore[operator]
        for n in range(1, count + 1)
    ]


def test_an_address_whose_interface_carries_nothing_is_told_with_what_it_lacks() -> None:
    ip = (Address("10.77.0.1", 24, 4, "global"),)
    out = Interface("eth0", 2, "wired", True, False, True, addresses=ip)
    down, fine = replace(out, up=False), replace(out, running=True)
    cable, off = "eth0 of this machine has no carrier: is its cable in?", "eth0 of this machine is down"

    assert [lacks([i]) for i in (out, down, fine)] == [(("10.77.0.1", cable),), (("10.77.0.1", off),), ()]


class TestWays:
    def test_the_fastest_wired_network_that_all_share_comes_first(self) -> None:
        ways = find_ways(nodes(docker, lan, fast))

        assert [way.network for way in ways] == ["10.9.0.0/24", "10.77.0.0/24"]
        assert ways[0].addresses == ("10.9.0.1", "10.9.0.2", "10.9.0.3")
        assert ways[0].why == "the fastest wired one that all 3 nodes share"

    def test_a_direct_link_between_two_of_three_is_not_taken(self) -> None:
        three = nodes(lan, fast)
        three[2] = replace(three[2], networks=(lan(3),))

        assert [way.network for way in find_ways(three)] == ["10.77.0.0/24"]
        assert find_ways(three)[0].why == "the only network that all 3 nodes share"
        assert [way.network for way in find_ways(three[:2])] == ["10.9.0.0/24", "10.77.0.0/24"]

    def test_the_same_address_on_every_host_is_no_network(self) -> None:
        assert all(way.network != "172.17.0.0/16" for way in find_ways(nodes(docker, lan)))

    def test_a_network_is_as_fast_as_its_slowest_member(self) -> None:
        three = nodes(lan, fast)
        slow = at("10.9.0.3", "eth1", mbit=100)
        three[2] = replace(three[2], networks=(lan(3), slow))

        assert [way.network for way in find_ways(three)] == ["10.77.0.0/24", "10.9.0.0/24"]

    @pytest.mark.parametrize("link", ["wireless", "tunnel", "virtual"])
    def test_wired_comes_before_everything_else_however_fast(self, link: str) -> None:
        def other(n: int) -> Attachment:
            return at(f"10.8.0.{n}", "x0", link=link, mbit=100_000)

        ways = find_ways(nodes(other, lan))

        assert [way.network for way in ways] == ["10.77.0.0/24", "10.8.0.0/24"]
        assert ways[0].why == "the only wired one that all 3 nodes share"

    def test_one_wireless_node_makes_the_network_wireless(self) -> None:
        """Wi-Fi and cable are one LAN behind most routers; another one that is all cable is better."""
        three = nodes(lan, lambda n: at(f"10.9.0.{n}", "eth1", mbit=100))
        three[1] = replace(
            three[1], networks=(at("10.77.0.2", "wlan0", link="wireless"), *three[1].networks[1:])
        )

        assert find_ways(three)[0].network == "10.9.0.0/24"

    def test_of_two_cards_in_one_network_the_faster_is_taken_on_each_node(self) -> None:
        two = nodes(lan, count=2)
        two[0] = replace(two[0], networks=(lan(1), at("10.77.0.101", "eth5", mbit=10_000)))

        assert find_ways(two)[0].addresses == ("10.77.0.101", "10.77.0.2")
        assert find_ways(two)[1].addresses == ("10.77.0.1", "10.77.0.2"), "where the control connections run"

    def test_ipv4_comes_before_ipv6(self) -> None:
        ways = find_ways(nodes(lambda n: at(f"fd77::{n}", "eth1", prefix=64), lan))

        assert [way.network for way in ways] == ["10.77.0.0/24", "fd77::/64"]

    def test_what_interfaces_take_without_a_dhcp_server_comes_last(self) -> None:
        ways = find_ways(nodes(lambda n: at(f"169.254.3.{n}", "eth1", prefix=16, mbit=10_000), lan))

        assert [way.network for way in ways] == ["10.77.0.0/24", "169.254.0.0/16"]

    def test_nodes_of_different_networks_meet_where_their_control_connections_run(self) -> None:
        """There is a router between them."""
        two = [
            Standing("node-1", "10.1.0.1", (at("10.1.0.1"),)),
            Standing("node-2", "10.2.0.2", (at("10.2.0.2"),)),
        ]

        (way,) = find_ways(two)

        assert (way.network, way.addresses) == ("", ("10.1.0.1", "10.2.0.2"))

    def test_a_node_of_an_older_version_is_seated_where_it_came_from(self) -> None:
        three = nodes(lan, fast)
        three[1] = replace(three[1], networks=())

        assert [way.addresses for way in find_ways(three)] == [("10.77.0.1", "10.77.0.2", "10.77.0.3")]

    def test_a_seat_is_the_address_that_torch_takes_of_the_interface(self) -> None:
        """A node that has a second address on it may connect from that one."""
        two = nodes(lan, count=2)
        two[1] = replace(two[1], seen="10.77.0.222")

        assert {way.addresses for way in find_ways(two)} == {("10.77.0.1", "10.77.0.2")}

    def test_what_one_user_asks_for_binds_all(self) -> None:
        three = nodes(lan, fast)
        three[1] = replace(three[1], networks=(lan(2),), asked="--interface eth0")

        (way,) = find_ways(three)

        assert way.network == "10.77.0.0/24"
        assert way.why == "as --interface eth0 on node-2 asks"

    def test_users_who_ask_for_different_networks_are_both_named(self) -> None:
        three = nodes(lan, fast)
        three[0] = replace(three[0], networks=(fast(1),), asked="--interface eth1")
        three[1] = replace(three[1], networks=(lan(2),), asked="GLOO_SOCKET_IFNAME=eth0")

        assert find_ways(three) == ()
        said = describe_discord(three)
        assert "node-1 with --interface eth1 (10.9.0.1/24)" in said
        assert "node-2 with GLOO_SOCKET_IFNAME=eth0 (10.77.0.2/24)" in said

    def test_a_node_alone_takes_its_best(self) -> None:
        assert find_ways(nodes(docker, lan, fast, count=1))[0].addresses == ("10.9.0.1",)
        assert find_ways([Standing("node-1", "127.0.0.1")])[0].addresses == ("127.0.0.1",)

    def test_addresses_that_are_none_join_nobody(self) -> None:
        """Nodes may tell what they like."""
        two = nodes(lan, count=2)
        two[1] = replace(
            two[1], networks=(at("::::", prefix=24), at("10.77.0.2", prefix=99), at("999.1.1.1"))
        )

        assert [way.addresses for way in find_ways(two)] == [("10.77.0.1", "10.77.0.2")]


ATTACHMENTS = st.builds(
    lambda net, host, name, link, mbit: at(f"10.{net}.0.{host}", f"if{name}", link=link, mbit=mbit),
    st.integers(0, 3),
    st.integers(1, 4),
    st.integers(0, 5),
    st.sampled_from(["wired", "wireless", "tunnel", "virtual", "what"]),
    st.sampled_from([0, 100, 1000, 10_000]),
)
STANDINGS = st.lists(
    st.builds(
        Standing,
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["10.0.0.9", "10.1.0.3", "192.168.1.1"]),
        st.lists(ATTACHMENTS, max_size=5, unique_by=lambda a: a.interface).map(tuple),
        st.sampled_from(["", "", "--interface x"]),
    ),
    min_size=1,
    max_size=4,
)


@given(STANDINGS)
def test_every_way_seats_everybody_at_an_address_of_his_own(standings: list[Standing]) -> None:
    ways = find_ways(standings)

    assert len({way.addresses for way in ways}) == len(ways)
    for way in ways:
        assert len(way.addresses) == len(standings)
        assert way.why
        for node, address in zip(standings, way.addresses, strict=True):
            known = {a.address for a in node.networks}
            assert address in (known if node.asked and len(standings) > 1 else known | {node.seen})
        if way.network:
            assert len(set(way.addresses)) == len(way.addresses)
            assert all(ipaddress.ip_address(a) in ipaddress.ip_network(way.network) for a in way.addresses)


@given(STANDINGS, st.randoms())
def test_the_choice_does_not_depend_on_the_order_in_which_nodes_list_their_networks(
    standings: list[Standing], chance: object
) -> None:
    def shuffled(node: Standing) -> Standing:
        networks = list(node.networks)
        chance.shuffle(networks)  # type: ignore[attr-defined]
        return replace(node, networks=tuple(networks))

    assert find_ways([shuffled(node) for node in standings]) == find_ways(standings)


# --- one node ----------------------------------------------------------------------------------------------


def card(name: str, *addresses: tuple[str, int], link: str = "wired", **other: object) -> Interface:
    found = tuple(
        Address(ip, prefix, 6 if ":" in ip else 4, "link" if ip.startswith(("fe80", "169.254")) else "global")
        for ip, prefix in addresses
    )
    plain = Interface(name, 2, "wired", up=True, running=True, multicast=True, addresses=found)
    return replace(plain, link=link, **other)  # type: ignore[arg-type]


ETH0 = card("eth0", ("10.77.0.1", 24), ("fe80::1", 64), speed_mbit=1000)
ETH1 = card("eth1", ("10.9.0.1", 24), speed_mbit=10_000)
WG0 = card("wg0", ("10.7.0.1", 24), link="tunnel")
DOCKER0 = card("docker0", ("172.17.0.1", 16), link="virtual")
SIX = card("eth6", ("fe80::6", 64), ("fd77::6", 64))
LINK_LOCAL = card("eth7", ("fe80::7", 64))
DOWN = card("eth8", ("10.5.0.1", 24), up=False, running=False)
PULLED = card("eth9", ("10.6.0.1", 24), running=False)
LO = card("lo", ("127.0.0.1", 8), link="loopback")
ALL = (LO, DOCKER0, WG0, ETH0, ETH1, SIX, LINK_LOCAL, DOWN, PULLED)
NOTHING = Demand()


def test_what_a_node_offers_is_one_address_an_interface_best_first() -> None:
    assert [a.address for a in attachments(ALL, NOTHING)] == [
        "10.9.0.1",
        "10.77.0.1",
        "fd77::6",
        "10.7.0.1",
        "172.17.0.1",
    ]


def test_a_host_with_hundreds_of_containers_offers_its_best_interfaces() -> None:
    crowd = [card(f"br-{n}", (f"10.{n}.0.1", 24), link="virtual") for n in range(1, 200)]

    offered = attachments((*crowd, ETH0), NOTHING)

    assert len(offered) == NETWORKS_MAX
    assert offered[0].interface == "eth0"


def test_the_first_ipv4_address_is_the_one_that_counts() -> None:
    """gloo takes it, whatever the user meant with the others."""
    both = card("eth0", ("fd77::1", 64), ("169.254.9.9", 16), ("10.77.0.1", 24))

    assert [a.address for a in attachments([both], NOTHING)] == ["169.254.9.9"]


def test_the_address_offered_is_the_best_ones() -> None:
    assert choose_address(ALL, NOTHING) == "10.9.0.1"
    assert choose_address(ALL, Demand("wg0")) == "10.7.0.1"
    assert choose_address(ALL, Demand(nccl="^eth")) == "10.7.0.1"
    assert choose_address((LO, SIX), NOTHING) == "fd77::6"


def test_a_job_of_one_node_runs_without_any_network() -> None:
    assert choose_address((LO, DOWN), NOTHING, alone=True) == "127.0.0.1"
    assert choose_address((LO, ETH0), Demand("lo"), alone=True) == "127.0.0.1"


@pytest.mark.parametrize(
    ("interfaces", "demand", "says", "hint"),
    [
        (ALL, Demand("lo"), "lo is this host's loopback, which no other node reaches", "eth0"),
        (ALL, Demand("eth3"), "this host has no interface eth3", "eth0, eth1"),
        (ALL, Demand("eth8"), "--interface eth8 is down", "eth0"),
        (ALL, Demand("eth9"), "--interface eth9 has no carrier", "eth0"),
        (ALL, Demand("eth7"), "--interface eth7 has a link-local IPv6 address alone", "ip -6 addr add"),
        (ALL, Demand(gloo=("eth0", "eth3")), "GLOO_SOCKET_IFNAME names eth3, which is no interface", "eth0"),
        (ALL, Demand(gloo=("eth7",)), "GLOO_SOCKET_IFNAME names eth7, which has no address", "eth0"),
        (
            ALL,
            Demand("eth0", gloo=("eth1",)),
            "--interface eth0 contradicts GLOO_SOCKET_IFNAME=eth1",
            "unset",
        ),
        (ALL, Demand(nccl="=ib0"), "fits NCCL_SOCKET_IFNAME==ib0", "eth0"),
        ((LO, LINK_LOCAL), NOTHING, "eth7 has a link-local IPv6 address alone", "advertise"),
        ((LO, DOWN, PULLED), NOTHING, "no interface of this host has a LAN address", "eth8, eth9"),
        ((LO,), NOTHING, "no interface of this host has a LAN address", "none but lo"),
    ],
)
def test_where_there_is_no_way_a_sentence_says_so_and_what_to_do(
    interfaces: tuple[Interface, ...], demand: Demand, says: str, hint: str
) -> None:
    with pytest.raises(LaunchFailed) as refused:
        choose_address(interfaces, demand)

    assert says in refused.value.message
    assert hint in refused.value.hint


def test_speeds_and_interfaces_in_words() -> None:
    assert [show_speed(n) for n in (100, 1000, 2500, 10_000)] == [
        "100 Mbit/s",
        "1 Gbit/s",
        "2.5 Gbit/s",
        "10 Gbit/s",
    ]
    assert describe(ETH1, "10.9.0.1") == "eth1 (10.9.0.1, wired, 10 Gbit/s)"
    assert describe(WG0, "10.7.0.1") == "wg0 (10.7.0.1, tunnel)"
