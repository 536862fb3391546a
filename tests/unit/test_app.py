"""The command line where its output cannot be written."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = f"{sys.executable} -m avahi_gpu.cli.app"


@pytest.mark.parametrize("command", ["explain AG104", "doctor --list", "doctor --json --only AG101"])
@pytest.mark.parametrize("where", [">/dev/full", ">&-", ">&- 2>&-"])
def test_an_output_that_cannot_be_written_ends_without_a_traceback(command: str, where: str) -> None:
    ended = subprocess.run(
        ["sh", "-c", f"{PROGRAM} {command} {where}"], check=False, capture_output=True, text=True, timeout=60
    )

    assert "Traceback" not in ended.stderr
    if where == ">/dev/full":
        assert ended.returncode == 1
        assert "cannot be written" in ended.stderr
