"""Records in wire format, read back by a reader of our own."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.avahi import records
from avahi_gpu.errors import MalformedInput


def read_name(wire: bytes) -> tuple[list[str], bytes]:
    """Return the labels of a name and what follows it (RFC 1035 section 3.1)."""
    labels = []
    while wire[0]:
        size = wire[0]
        labels.append(wire[1 : 1 + size].decode())
        wire = wire[1 + size :]
    return labels, wire[1:]


labels = st.text(st.characters(codec="utf-8"), min_size=1).map(records.fit_label).filter(bool)


@given(st.lists(labels, min_size=1, max_size=3))
def test_a_name_comes_back_label_by_label(name: list[str]) -> None:
    assert read_name(records.encode_name(name)) == (name, b"")


@given(st.text())
def test_a_label_is_cut_between_characters(text: str) -> None:
    label = records.fit_label(text)

    assert len(label.encode()) <= 63
    assert text.encode("utf-8", "replace").decode().startswith(label)


@given(labels)
def test_an_escaped_label_is_one_label_of_harmless_characters(label: str) -> None:
    escaped = records.escape_label(label)

    assert re.fullmatch(r"(?:[A-Za-z0-9_-]|\\[.\\]|\\[0-9]{3})+", escaped)
    raw = re.sub(
        r"\\([0-9]{3})|\\(.)|(.)", lambda m: chr(int(m[1])) if m[1] else m[2] or m[3], escaped
    ).encode("latin-1")
    assert raw.decode() == label


def test_a_service_record_holds_port_and_target() -> None:
    wire = records.encode_srv(29500, "gpu-node-1.local")

    assert wire[:6] == bytes([0, 0, 0, 0, 0x73, 0x3C])
    assert read_name(wire[6:]) == (["gpu-node-1", "local"], b"")


def test_items_come_one_behind_the_other_with_their_length() -> None:
    assert records.encode_txt([b"a=1", b"bb=22"]) == b"\x03a=1\x05bb=22"


def test_no_items_are_one_empty_string() -> None:
    assert records.encode_txt([]) == b"\0"


@pytest.mark.parametrize("items", [[b""], [b"x" * 256], [b"x" * 200] * 5], ids=["empty", "long", "many"])
def test_txt_beyond_the_limits_is_refused(items: list[bytes]) -> None:
    with pytest.raises(MalformedInput):
        records.encode_txt(items)


@pytest.mark.parametrize(
    "name", [["x" * 64], ["ü" * 32], [""], ["x" * 60] * 5], ids=["64", "utf8", "empty", "whole"]
)
def test_names_beyond_the_limits_are_refused(name: list[str]) -> None:
    with pytest.raises(MalformedInput):
        records.encode_name(name)
