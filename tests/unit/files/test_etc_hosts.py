"""/etc/hosts: what the machine's own name means, and which .local names are pinned there."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.files.etc_hosts import (
    find,
    find_malformed,
    find_pinned,
    find_stale,
    judge_own_name,
    loopback_trap,
    parse,
)

DEBIAN = "127.0.0.1\tlocalhost\n127.0.1.1\tgpu-node-1\n\n::1 localhost ip6-localhost\n"


def test_lines_that_glibc_skips_are_skipped() -> None:
    text = "# 10.0.0.9 a\n10.0.0.1\n10.0.0.300 a\nhost 10.0.0.1\n \n10.0.0.2 a # b\r\nfe80::1%eth0 a\n"
    text += "::FFFF:10.0.0.3 a\n"

    assert [(e.line, e.address, e.names) for e in parse(text)] == [
        (6, "10.0.0.2", ("a",)),
        (8, "10.0.0.3", ("a",)),
    ]


def test_all_lines_of_a_name_count_in_any_spelling() -> None:
    assert [e.address for e in find(parse("10.0.0.1 A\n10.0.0.2 x a\n"), "a")] == ["10.0.0.1", "10.0.0.2"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (DEBIAN, "loopback"),
        ("::1 gpu-node-1\n", "loopback"),
        ("127.0.0.1 localhost GPU-NODE-1\n", "loopback"),
        ("127.0.1.1 gpu-node-1\n10.0.0.1 gpu-node-1\n", "loopback"),
        ("10.0.0.1 gpu-node-1\n127.0.1.1 gpu-node-1\n", "loopback"),
        ("10.0.0.1 gpu-node-1\n", "lan"),
        ("10.0.0.1 gpu-node-1\n10.9.9.9 gpu-node-1-mgmt\n", "lan"),
        ("127.0.0.1 localhost\n", "missing"),
        ("127.0.1.1 old-name\n", "missing"),
        ("", "missing"),
        ("172.17.0.2 gpu-node-1\n", "foreign"),
    ],
)
def test_what_the_own_name_means(text: str, kind: str) -> None:
    own = judge_own_name(text, "gpu-node-1", ["10.0.0.1", "fe80::1"])

    assert own.kind == kind
    assert own.hint or kind == "lan"


def test_the_trap_comes_with_its_evidence() -> None:
    trap = loopback_trap(DEBIAN, "gpu-node-1")

    assert trap is not None
    assert trap.evidence == ("/etc/hosts:2: 127.0.1.1 gpu-node-1",)
    assert "127.0.1.1" in trap.says
    assert loopback_trap("10.0.0.1 gpu-node-1\n", "gpu-node-1") is None


def test_a_file_that_cloud_init_writes_is_changed_elsewhere() -> None:
    trap = loopback_trap("# Your system has 'manage_etc_hosts' set\n127.0.1.1 a\n", "a")

    assert trap is not None
    assert "cloud-init" in trap.hint


def test_names_in_local_are_pinned_and_longer_ones_are_not() -> None:
    text = "10.0.0.1 a.local\n10.0.0.2 a.b.local\n10.0.0.3 x A.Local.\n10.0.0.4 local a.lan\n"

    assert [e.line for e in find_pinned(text)] == [1, 3]


def test_an_address_that_a_name_no_longer_has_is_stale() -> None:
    text = "10.0.0.1 a.local\n10.0.0.77 a.local\n"

    assert [e.address for e in find_stale(text, "a.local", ["10.0.0.1"])] == ["10.0.0.77"]


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    for entry in parse(text):
        assert entry.names
    judge_own_name(text, "a", [])
    find_pinned(text)


def test_a_list_of_a_hundred_thousand_blocked_names_is_read_once() -> None:
    text = (
        "127.0.0.1 localhost\n" + "".join(f"0.0.0.0 ads{n}.example\n" for n in range(100_000)) + "bad line\n"
    )
    began = time.monotonic()

    for _ in range(20):
        assert len(parse(text)) == 100_001
        assert find_malformed(text) == ((100_002, "bad line"),)

    assert time.monotonic() - began < 20  # 0.3 s on an idle machine; once a question would be 60 times that
