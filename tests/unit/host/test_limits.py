"""A process that may open few files looks at nothing, as it would make causes up."""

from __future__ import annotations

import subprocess
import sys

import pytest

ASK = """
import resource
from avahi_gpu.host.limits import make_room
make_room()
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


def run(limit: str) -> subprocess.CompletedProcess[str]:
    line = f'ulimit {limit}; exec "$0" -c "$1"'
    return subprocess.run(
        ["sh", "-c", line, sys.executable, ASK], capture_output=True, text=True, check=False, timeout=60
    )


def test_a_low_limit_is_raised_as_far_as_it_may_be() -> None:
    assert run("-Sn 40").stdout.strip() == "1024"
    assert run("-n 100").stdout.strip() == "100"


@pytest.mark.parametrize("limit", ["-n 24", "-n 63"])
def test_too_few_open_files_are_said(limit: str) -> None:
    done = run(limit)

    assert done.returncode != 0 and f"may open {limit[3:]} files only" in done.stderr
