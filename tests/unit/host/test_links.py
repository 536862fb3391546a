"""What the kernel says about a link, and what that makes of it."""

from __future__ import annotations

import pytest

from avahi_gpu.host.links import bridges_of_cards, classify, read_mdns_members

UP, LOOPBACK, POINT = 0x1043, 0x8, 0x10


@pytest.mark.parametrize(
    ("name", "kind", "flags", "link"),
    [
        ("lo", "", LOOPBACK, "loopback"),
        ("enp5s0", "", UP, "wired"),
        ("eno1np0", "", UP, "wired"),
        ("lan", "", UP, "wired"),  # a card that somebody has renamed
        ("eth0", "veth", UP, "wired"),  # a container's own end is its LAN
        ("eth0", "macvlan", UP, "wired"),
        ("bond0", "bond", UP, "wired"),
        ("enp5s0.7", "vlan", UP, "wired"),
        ("ibs5", "ipoib", UP, "wired"),
        ("wlp3s0", "", UP, "wireless"),
        ("wlan0", "", UP, "wireless"),
        ("docker0", "bridge", UP, "virtual"),
        ("br-1a2b3c4d5e6f", "bridge", UP, "virtual"),
        ("br0", "bridge", UP, "virtual"),
        ("virbr0", "bridge", UP, "virtual"),
        ("veth12ab", "veth", UP, "virtual"),
        ("vnet3", "tun", UP, "virtual"),
        ("lxcbr0", "bridge", UP, "virtual"),
        ("cni0", "bridge", UP, "virtual"),
        ("dummy0", "dummy", UP, "virtual"),
        ("ifb0", "ifb", UP, "virtual"),
        ("tap0", "tun", UP, "virtual"),
        ("tailscale0", "tun", UP | POINT, "tunnel"),
        ("wg0", "wireguard", UP, "tunnel"),
        ("tun0", "tun", UP | POINT, "tunnel"),
        ("office", "wireguard", UP, "tunnel"),
        ("ztabcdef12", "tun", UP, "tunnel"),
        ("ppp0", "ppp", UP | POINT, "tunnel"),
    ],
)
def test_a_link_is_what_its_name_and_kind_say(name: str, kind: str, flags: int, link: str) -> None:
    assert classify(name, kind, flags, wireless=False) == link


def test_the_kernel_knows_wireless_cards_of_any_name() -> None:
    assert classify("lan", "", UP, wireless=True) == "wireless"


def test_a_bridge_with_a_card_in_it_is_the_lan() -> None:
    """As on hosts of virtual machines, where the address lies on the bridge."""
    links = {
        2: ("enp5s0", "", UP, False),
        3: ("vmbr0", "bridge", UP, False),
        4: ("br7", "bridge", UP, False),
        5: ("veth99", "veth", UP, False),
        6: ("eth7", "veth", UP, False),
    }

    bridges = bridges_of_cards(links, masters={2: 3, 5: 4, 6: 4})

    assert bridges == {3}
    assert classify("vmbr0", "bridge", UP, wireless=False, has_wired_port=True) == "wired"


IGMP = """Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter
1\tlo        :     1      V3
\t\t\t\t010000E0     1 0:00000000\t\t0
2\teth0      :     2      V3
\t\t\t\tFB0000E0     1 0:00000000\t\t0
\t\t\t\t010000E0     1 0:00000000\t\t0
12\tbr-1a2b:   1      V2
\t\t\t\tfb0000e0     1 0:00000000\t\t0
"""


def test_members_of_the_mdns_group_are_read() -> None:
    assert read_mdns_members(IGMP, byteorder="little") == {2, 12}


IGMP6 = """\
1    lo              ff020000000000000000000000000001     1 0000000C 0
2    eth0            ff0200000000000000000000000000fb     2 00000004 0
2    eth0            ff020000000000000000000000000001     1 0000000C 0
7    wlan0           ff0200000000000000000001ffb8c8dd     1 00000004 0
x
"""


def test_members_over_ipv6_are_members() -> None:
    assert read_mdns_members("", IGMP6) == {2}
    assert read_mdns_members(IGMP, IGMP6.replace("2    eth0", "9    eth0"), byteorder="little") == {2, 9, 12}


def test_a_big_machine_end_writes_the_group_the_other_way_round() -> None:
    assert read_mdns_members(IGMP.replace("FB0000E0", "E00000FB"), byteorder="big") == {2}


@pytest.mark.parametrize("text", ["", "nonsense", "\t\tFB0000E0\n", "x\ty\n\tFB0000E0\n"])
def test_a_table_of_another_form_has_no_members(text: str) -> None:
    assert read_mdns_members(text, byteorder="little") == frozenset()
