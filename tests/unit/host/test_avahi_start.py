"""What a start of avahi-daemon would find."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.host.avahi_start import parse_pid, read_ground
from avahi_gpu.host.system import System


def put(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize(("comm", "stale"), [("sleep\n", True), ("avahi-daemon\n", False), (None, False)])
def test_a_pid_file_is_stale_where_its_process_is_another_program(
    comm: str | None, stale: bool, tmp_path: Path
) -> None:
    put(tmp_path, "run/avahi-daemon/pid", "8\n")
    if comm is not None:
        put(tmp_path, "proc/8/comm", comm)

    ground = read_ground(System(tmp_path))

    assert (ground.pid_file is not None, ground.holder, ground.program) == (
        (True, 8, "sleep") if stale else (False, None, "")
    )


@pytest.mark.parametrize(
    ("content", "number"), [(b"8\n", 8), (b"", None), (b"0", None), (b"-3", None), (b"9" * 5000, None)]
)
def test_a_pid_file_holds_one_number(content: bytes, number: int | None) -> None:
    assert parse_pid(content) == number


@given(st.binary())
def test_no_pid_file_makes_it_fail(content: bytes) -> None:
    assert parse_pid(content) is None or content.strip().isdigit()
