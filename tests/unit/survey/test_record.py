"""The record of a doctor, as it is published and as anybody may forge it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.model import DOCTOR_SERVICE, Service
from avahi_gpu.survey.record import decode_doctor, encode_doctor, label_of

ID = "0123456789abcdef"


def service(*txt: bytes) -> Service:
    return Service("x", DOCTOR_SERVICE, 2, 4, "a.local", "10.0.0.2", 29420, txt)


@pytest.mark.parametrize("role", ["asks", "answers"])
def test_what_is_published_is_read(role: str) -> None:
    read = decode_doctor(service(*reversed(encode_doctor(ID, role))))  # type: ignore[arg-type]

    assert read is not None
    assert (read.id, read.role, read.host, read.address, read.port) == (
        ID,
        role,
        "a.local",
        "10.0.0.2",
        29420,
    )


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_any_record_is_read_or_passed_over(items: list[bytes]) -> None:
    assert decode_doctor(service(*items)) is None


@given(st.text(min_size=1, max_size=80))
def test_a_label_fits(host: str) -> None:
    label = label_of(host, ID)

    assert len(label.encode()) <= 63 and label.endswith(ID)
