"""Edits of /etc/hosts change what they are asked to and no other byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.files.etc_hosts import find, parse
from avahi_gpu.files.etc_hosts_edit import add_entry, is_localhost, remove_names

addresses = st.sampled_from(["127.0.0.1", "127.0.1.1", "::1", "10.0.0.1", "fe80::1%eth0", "10.0.0.300", "#"])
names = st.sampled_from(["localhost", "a", "A", "b.local", "ip6-localhost", "a.b", "\xa0", "é"])
blanks = st.sampled_from([" ", "\t", "  ", " \t"])
rows = st.builds(
    lambda lead, address, words, tail: lead + address + "".join(b + n for b, n in words) + tail,
    st.sampled_from(["", " "]),
    addresses,
    st.lists(st.tuples(blanks, names), max_size=4),
    st.sampled_from(["", " ", " # a", "#a b", "\r", "\t"]),
)
files = st.one_of(
    st.lists(rows, max_size=6).map(lambda lines: "\n".join(lines).encode()),
    st.lists(rows, max_size=6).map(lambda lines: ("\n".join(lines) + "\n").encode()),
    st.binary(max_size=80),
)


def text_of(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def test_a_name_goes_with_the_blanks_before_it() -> None:
    before = b"127.0.1.1\tnode.local  node # Debian\r\n10.0.0.1 node.local\n"

    assert remove_names(before, ["NODE.local"], [1]) == b"127.0.1.1  node # Debian\r\n10.0.0.1 node.local\n"
    assert remove_names(before, ["node.local"], [1, 2]) == b"127.0.1.1  node # Debian\r\n"


def test_localhost_stays_whoever_asks() -> None:
    before = b"127.0.0.1 localhost node\n::1 localhost.localdomain ip6-loopback\n"

    asked = ["localhost", "node", "localhost.localdomain", "ip6-loopback"]
    assert remove_names(before, asked, [1, 2]) == before.replace(b" node", b"")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b"10.0.0.1\tnode\n"),
        (b"127.0.0.1 localhost\n::1 localhost\n", b"127.0.0.1 localhost\n10.0.0.1\tnode\n::1 localhost\n"),
        (b"127.0.0.1 localhost", b"127.0.0.1 localhost\n10.0.0.1\tnode"),
        (b"# mine\n", b"10.0.0.1\tnode\n# mine\n"),
        (b"127.0.0.1 localhost\r\n", b"127.0.0.1 localhost\r\n10.0.0.1\tnode\r\n"),
    ],
)
def test_an_entry_comes_behind_loopback(before: bytes, after: bytes) -> None:
    assert add_entry(before, "10.0.0.1", ["node"]) == after


@given(files, st.sets(names, min_size=1, max_size=3), st.sets(st.integers(1, 7)))
def test_only_the_asked_for_names_of_the_asked_for_lines_go(
    content: bytes, unwanted: set[str], lines: set[int]
) -> None:
    after = remove_names(content, unwanted, lines)

    gone = {n.lower() for n in unwanted if not is_localhost(n)}
    old, new = parse(text_of(content)), parse(text_of(after))
    expected = [
        (e.address, tuple(n for n in e.names if e.line not in lines or n.lower() not in gone)) for e in old
    ]
    assert [(e.address, e.names) for e in new] == [(a, n) for a, n in expected if n]
    touched = {e.line for e in old if e.line in lines and any(n.lower() in gone for n in e.names)}
    untouched = [line for n, line in enumerate(content.split(b"\n"), 1) if n not in touched]
    remaining = after.split(b"\n")
    assert all(line in remaining for line in untouched) or not untouched
    assert len(remaining) >= len(untouched) or after == b""
    if not touched:
        assert after == content


@given(files)
def test_an_added_entry_is_found_and_all_others_stay(content: bytes) -> None:
    after = add_entry(content, "10.9.9.9", ["new-node", "x"])

    assert [e.address for e in find(parse(text_of(after)), "new-node")] == ["10.9.9.9"]
    assert [(e.address, e.names) for e in parse(text_of(after)) if e.address != "10.9.9.9"] == [
        (e.address, e.names) for e in parse(text_of(content))
    ]
