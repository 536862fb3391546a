"""What ``make demo`` runs: it works from end to end, and ends cleanly when it is interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from tests.lab.cluster import processes_of
from tests.lab.host import REPOSITORY

DEMO = [sys.executable, "-m", "bench.demo"]


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_the_demo_shows_three_hosts_and_their_job() -> None:
    demo = subprocess.run(DEMO, cwd=REPOSITORY, capture_output=True, text=True, timeout=170, check=False)

    assert demo.returncode == 0, demo.stdout + demo.stderr
    for name in ("gpu-node-1", "gpu-node-2", "gpu-node-3"):
        assert f"{name} $ avahi-gpu setup --yes\n" in demo.stdout
        assert f"{name} $ avahi-gpu launch --nnodes 3 examples/allreduce.py\n" in demo.stdout
        assert f"gpu-node-1 | {name} " in demo.stdout  # a row of the table
    assert demo.stdout.count("sum 6 is right") == 3
    assert "gpu-node-2 | error   AG104  the hosts line does not ask mDNS before DNS" in demo.stdout
    assert "gpu-node-2 $ avahi-gpu doctor --only AG104 --fix --yes\n" in demo.stdout


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["avahi-gpu setup", "avahi-gpu launch"])
def test_ctrl_c_ends_the_demo_and_everything_in_it(moment: str) -> None:
    demo = subprocess.Popen(
        DEMO,
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert demo.stdout is not None
    for line in demo.stdout:
        if moment in line:
            break
    time.sleep(0.5)
    assert processes_of(f"{demo.pid}-")
    demo.send_signal(signal.SIGINT)
    out, err = demo.communicate(timeout=20)

    assert demo.returncode == 130
    assert "Interrupted" in out
    assert "Traceback" not in out + err
    assert processes_of(f"{demo.pid}-") == []
