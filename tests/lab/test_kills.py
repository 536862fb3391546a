"""Killed at any system call of setup or undo, a host resolves names as before, and either can be finished.

Each point is a process killed by SIGKILL just before that call, on a host with a real avahi-daemon, glibc and
a peer; ``getent hosts`` asks for the peer then, and setup and undo are run to their ends.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import pytest

from tests.lab.cluster import Cluster

SETUPS = ["mend", "improve", "folder", "mount"]
UNDOS = [f"undo-{name}" for name in SETUPS]
RUNS_WITHIN_S = 300.0  # ten seconds alone


@pytest.mark.timeout(360)
@pytest.mark.parametrize(("names", "at_least"), [(SETUPS, 140), (UNDOS, 100)], ids=["setup", "undo"])
def test_killed_at_any_call(make_cluster: Callable[..., Cluster], names: list[str], at_least: int) -> None:
    lab = make_cluster(2)
    argv = [sys.executable, "-m", "tests.lab.kill_driver", "gpu-node-2.local", "1", *names]

    done = lab[0].run(argv, timeout=RUNS_WITHIN_S, check=True)

    found = json.loads(done.stdout)
    assert [line for one in found.values() for line in one["wrong"]] == []
    points = sum(len(one["tried"]) for one in found.values())
    print(f"{points} kill points, nothing lost")
    assert points >= at_least
