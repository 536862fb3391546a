"""Names by Avahi's own rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.files.domain_name import is_host_name, is_service_type, labels_of


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("", ()),
        (".", ()),
        ("a", (b"a",)),
        ("a.", (b"a",)),
        ("a.local", (b"a", b"local")),
        ("a b.local", (b"a b", b"local")),
        (r"a\.b.c", (b"a.b", b"c")),
        (r"a\\b", (b"a\\b",)),
        (r"a\032b", (b"a b",)),
        ("ü", ("ü".encode(),)),
        ("x" * 63, (b"x" * 63,)),
        ("a..b", None),
        ("..", None),
        (".a", None),
        ("a\\", None),
        (r"a\x", None),
        (r"a\000", None),
        (r"a\256", None),
        (r"a\200", None),
        ("x" * 64, None),
        (".".join(["x" * 60] * 20), None),
    ],
)
def test_labels(name: str, labels: tuple[bytes, ...] | None) -> None:
    assert labels_of(name) == labels


def test_types_and_host_names() -> None:
    assert [is_service_type(t) for t in ("_torch._tcp", "_ab._UDP.", "_a._tcp", "torch._tcp", "_torch")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert [is_host_name(h) for h in ("a.local", "a", "10.0.0.1", "a..b")] == [True, False, False, False]


@given(st.text(max_size=80))
def test_any_text_is_judged(text: str) -> None:
    labels = labels_of(text)

    assert labels is None or all(0 < len(label) <= 63 for label in labels)
