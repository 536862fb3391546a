"""The kernel's answers about links and addresses: real ones against ``ip``, and bytes that are none."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import struct
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.host import netlink

MAKE = """
ip link add br0 type bridge
ip link add v0 type veth peer name v1
ip link set v1 master br0
ip link set br0 up
ip address add 192.0.2.7/24 dev br0
ip address add 198.51.100.1 peer 198.51.100.2/32 dev v0
ip address add fd00::7/64 dev v0 nodad
ip -d -j address
"""
ASK = (
    "import json; from avahi_gpu.host.netlink import *; "
    "print(json.dumps([[l.index, l.name, l.kind, l.mtu, l.master] for l in read_links()])); "
    "print(json.dumps([[a.index, str(a.ip), a.prefix] for a in read_addresses()]))"
)


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("ip") is None, reason="needs root and iproute2")
def test_bridges_ports_pairs_and_point_to_point_addresses_are_read_as_ip_reads_them() -> None:
    done = subprocess.run(
        ["unshare", "-n", "sh", "-ec", MAKE + f'{sys.executable} -c "{ASK}"'],
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    told, links, addresses = (json.loads(line) for line in done.stdout.splitlines())

    number = {t["ifname"]: t["ifindex"] for t in told}
    expected = [
        [
            t["ifindex"],
            t["ifname"],
            t.get("linkinfo", {}).get("info_kind", ""),
            t["mtu"],
            number.get(t.get("master"), 0),
        ]
        for t in told
    ]
    assert sorted(links) == sorted(expected)
    assert {"bridge", "veth"} <= {kind for _, _, kind, _, _ in links}
    own = [[t["ifindex"], a["local"], a["prefixlen"]] for t in told for a in t["addr_info"]]
    assert sorted(addresses) == sorted(own)
    assert [number["v0"], "198.51.100.1", 32] in addresses


def test_a_link_is_read_from_its_message() -> None:
    body = struct.pack("=BxHiII", 0, 1, 7, 0x1043, 0)
    words = attribute(3, b"eth0\0") + attribute(4, struct.pack("=I", 1500)) + attribute(10, b"\x02\0\0\0")
    nested = attribute(18 | 0x8000, attribute(1, b"vlan\0"))

    row = netlink.parse_link(body + words + nested)

    assert (row.index, row.name, row.kind, row.flags, row.mtu) == (7, "eth0", "vlan", 0x1043, 1500)


def test_the_wider_flags_of_an_address_win_and_other_families_are_left_out() -> None:
    body = struct.pack("=BBBBI", 2, 24, 0x80, 0, 7)
    address = attribute(1, bytes([192, 0, 2, 7]))

    assert netlink.parse_address(body + address) == netlink.AddressRow(
        7, netlink.ipaddress.ip_address("192.0.2.7"), 24, 0, 0x80
    )
    wide = netlink.parse_address(body + address + attribute(8, struct.pack("=I", 0x280)))
    assert wide is not None
    assert wide.flags == 0x280
    assert netlink.parse_address(body + attribute(1, b"\0" * 8)) is None


@given(st.binary(max_size=200))
def test_bytes_that_are_no_answer_are_an_error_and_never_a_hang(data: bytes) -> None:
    for read in (lambda d: list(netlink.split_messages(d)), netlink.parse_link, netlink.parse_address):
        with contextlib.suppress(OSError):
            read(data)
