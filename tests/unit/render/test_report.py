"""What a report tells, and what it must not tell."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.render.report import scrub


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("ether 02:42:ac:11:00:02 up", "ether MAC up"),
        ("02-42-AC-11-00-02", "MAC"),
        ("/home/ada/venv/bin/python", "/home/USER/venv/bin/python"),
        ("/root/.cache", "/home/USER/.cache"),
        ("/usr/root/x", "/usr/root/x"),
        ("ada: adaptive, ada's", "USER: adaptive, USER's"),
        ("root owns it", "root owns it"),
        ("fe80::1 and 10.77.0.1 stay", "fe80::1 and 10.77.0.1 stay"),
    ],
)
def test_what_tells_of_people_is_taken_out(text: str, scrubbed: str) -> None:
    assert scrub(text, ["ada", "root"]) == scrubbed


@given(st.binary(min_size=6, max_size=6), st.sampled_from(":-"), st.text(" \n,;()", max_size=3))
def test_no_mac_survives(octets: bytes, separator: str, around: str) -> None:
    mac = octets.hex(separator)

    assert mac not in scrub(f"{around}{mac}{around}")
