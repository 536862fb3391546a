"""/etc/mdns.allow by nss-mdns's rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.files.mdns_allow import allows, is_plain_local, parse, with_local, without_everything


@pytest.mark.parametrize(
    ("content", "suffixes"),
    [
        (b"", ()),
        (b"# nothing\n\n", ()),
        (b".local\n.local.\n", (".local", ".local.")),
        (b"lan # ours\n.home\tx\n", (".lan", ".home")),
        (b"*", ("*",)),
        (b" .local\n", ()),  # a leading blank ends the word before it begins
    ],
)
def test_lines_are_suffixes(content: bytes, suffixes: tuple[str, ...]) -> None:
    assert parse(content) == suffixes


def test_a_suffix_allows_what_ends_in_it_and_not_the_absolute_form() -> None:
    assert allows((".local",), "Host.Local")
    assert not allows((".local",), "host.local.")
    assert not allows((".host.local",), "host.local")
    assert allows(("*",), "example.com")
    assert not allows((), "host.local")


def test_minimal_modules_ask_for_two_labels() -> None:
    assert is_plain_local("gpu-node-1.LOCAL.")
    assert not any(map(is_plain_local, ("local", ".local", "a.b.local", "host.lan", "host")))


@given(st.binary(max_size=300))
def test_any_file_can_be_made_to_allow_local_and_keeps_its_lines(content: bytes) -> None:
    new = with_local(content)

    assert new.startswith(content)
    assert allows(parse(new), "x.local") and allows(parse(new), "x.local.")
    assert with_local(new) == new
    assert set(parse(content)) <= set(parse(new))


def test_everything_gives_way_to_local() -> None:
    assert without_everything(b"# all\n* # yes\n.lan\n") == b"# all\n.lan\n.local\n.local.\n"
