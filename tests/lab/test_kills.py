"""Killed at any system call of setup or undo, a host resolves names as before, and either can be finished.

Each point is a process killed by SIGKILL just before that call, on a host with a real avahi-daemon, glibc and
a peer; ``getent hosts`` asks for the peer then, and setup and undo are run to their ends.
"""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Callable

import pytest

from tests.lab.cluster import Cluster
from tests.lab.kill_point import CAN_FAIL_CALLS

PEER = "gpu-node-2.local"
SETUPS = ["mend", "improve", "folder", "mount"]
RESTARTS = ["restart", "undo-restart"]  # a point takes a second: the daemon claims its name anew
UNDOS = [f"undo-{name}" for name in SETUPS]
PROGRAMS = [
    "program",
    "undo-program",
    "firewall",
    "undo-firewall",
]  # the command itself, with all that it reads and proves
RUNS_WITHIN_S = 400.0  # a tenth of it alone

KINDS = pytest.mark.parametrize("names", [SETUPS, UNDOS], ids=["setup", "undo"])


def try_points(lab: Cluster, names: list[str], *, every: int = 1, fails_with: int = 0) -> int:
    """Try every ``every``-th point of the scenarios; return how many that were."""
    argv = [sys.executable, "-m", "tests.lab.kill_driver", PEER, str(every), str(fails_with), *names]
    done = lab[0].run(argv, timeout=RUNS_WITHIN_S, check=True)
    found = json.loads(done.stdout)
    assert [line for one in found.values() for line in one["wrong"]] == []
    points = sum(len(one["tried"]) for one in found.values())
    print(f"{points} points of {', '.join(names)}: nothing lost")
    return points


@pytest.mark.timeout(500)
@KINDS
def test_killed_at_any_call(make_cluster: Callable[..., Cluster], names: list[str]) -> None:
    """All points of both are 264; an exact number would be one of the code's, not of its promise."""
    assert try_points(make_cluster(2), names) >= 100


@pytest.mark.timeout(500)
@pytest.mark.skipif(not CAN_FAIL_CALLS, reason="lets calls fail by the registers of x86_64")
@pytest.mark.parametrize(
    "every", [pytest.param(10, id="some"), pytest.param(1, id="all", marks=pytest.mark.faults)]
)
def test_the_disk_is_full_at_any_call(make_cluster: Callable[..., Cluster], every: int) -> None:
    """It ends with a sentence, and can be finished or undone once there is room."""
    points = try_points(make_cluster(2), [*SETUPS, *UNDOS], every=every, fails_with=errno.ENOSPC)
    assert points >= 200 / every


@pytest.mark.timeout(500)
@pytest.mark.faults
@pytest.mark.skipif(not CAN_FAIL_CALLS, reason="lets calls fail by the registers of x86_64")
@pytest.mark.parametrize(
    "code", [errno.EROFS, errno.EIO, errno.EDQUOT], ids=lambda code: errno.errorcode[code]
)
def test_any_call_fails(make_cluster: Callable[..., Cluster], code: int) -> None:
    assert try_points(make_cluster(2), [*SETUPS, *UNDOS], fails_with=code) >= 200


@pytest.mark.timeout(500)
@pytest.mark.parametrize(
    "every", [pytest.param(8, id="some"), pytest.param(1, id="all", marks=pytest.mark.faults)]
)
def test_killed_between_a_file_and_the_restart_that_it_needs(
    make_cluster: Callable[..., Cluster], every: int
) -> None:
    """The next setup still restarts the daemon, although the file is right already."""
    assert try_points(make_cluster(2), RESTARTS, every=every) >= 80 / every - 2


@pytest.mark.timeout(500)
@pytest.mark.parametrize(
    "every",
    [
        pytest.param(32, id="some"),
        pytest.param(1, id="all", marks=pytest.mark.faults),
    ],
)
def test_the_command_is_killed_at_any_call(make_cluster: Callable[..., Cluster], every: int) -> None:
    assert try_points(make_cluster(2), PROGRAMS, every=every) >= 120 / every - 3
