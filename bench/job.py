"""Training jobs on the lab's hosts, started at the same moment and ended whatever happens."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.lab.cluster import Cluster
from tests.lab.host import Command, Host
from tests.lab.runs import Runs

# the command for a host of a lab, and what is added to its environment
Way = Callable[[Cluster, Host], tuple[Command, Mapping[str, str]]]

BY_HAND = {"GLOO_SOCKET_IFNAME": "eth0"}  # without it gloo takes the address of the host's name: 127.0.1.1


@contextmanager
def running(lab: Cluster, way: Way) -> Iterator[Runs]:
    """Run a job on all hosts of the lab; nothing of it is left afterwards."""
    commands = [(host, *way(lab, host)) for host in lab]
    job = Runs([(host, command) for host, command, _ in commands], env=commands[0][2])
    try:
        yield job
    finally:
        for follower in job.followers:
            follower.end()


def note_down(what: str, transcript: str) -> None:
    """Keep what a job printed that did not do what was measured, and say where."""
    with tempfile.NamedTemporaryFile("w", prefix="avahi-gpu-bench-", suffix=".log", delete=False) as file:
        file.write(f"{what}\n{transcript}\n")
    sys.stderr.write(f"  {what}: {Path(file.name)} has what it printed\n")
    sys.stderr.flush()
