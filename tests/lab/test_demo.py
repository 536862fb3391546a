"""What ``make demo`` runs: it works from end to end, and ends cleanly when it is interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from avahi_gpu.errors import AS_ROOT
from bench import demo
from tests.lab.cluster import processes_of
from tests.lab.host import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
DEMO = [sys.executable, "-m", "bench.demo"]


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_the_demo_shows_three_hosts_and_their_job() -> None:
    played = subprocess.run(DEMO, cwd=REPOSITORY, capture_output=True, text=True, timeout=170, check=False)

    assert played.returncode == 0, played.stdout + played.stderr
    for name in ("gpu-node-1", "gpu-node-2", "gpu-node-3"):
        assert f"{name} $ avahi-gpu setup --yes\n" in played.stdout
        assert f"{name} $ avahi-gpu launch --nnodes 3 examples/allreduce.py\n" in played.stdout
        assert f"gpu-node-1 | {name} " in played.stdout  # a row of the table
    assert played.stdout.count("sum 6 is right") == 3
    assert "gpu-node-2 | error   AG104  the hosts line does not ask mDNS before DNS" in played.stdout
    assert "gpu-node-2 $ avahi-gpu doctor --only AG104 --fix --yes\n" in played.stdout


def test_the_demo_types_what_the_readme_says() -> None:
    """So what stands there is seen to work; ``setup`` asks nobody here, and needs no sudo."""
    lines = [line.partition("#")[0].strip().removeprefix("$ ") for line in README.splitlines()]

    assert all(" ".join(command) in lines for command in (demo.PEERS, demo.LAUNCH, demo.DOCTOR))
    assert f"{AS_ROOT} setup" in lines and demo.SETUP == ["avahi-gpu", "setup", "--yes"]
    assert f"{AS_ROOT} doctor --fix" in lines and {"doctor", "--fix"} <= set(demo.FIX)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["avahi-gpu setup", "avahi-gpu launch"])
def test_ctrl_c_ends_the_demo_and_everything_in_it(moment: str) -> None:
    played = subprocess.Popen(
        DEMO,
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert played.stdout is not None
    for line in played.stdout:
        if moment in line:
            break
    time.sleep(0.5)
    assert processes_of(f"{played.pid}-")
    played.send_signal(signal.SIGINT)
    out, err = played.communicate(timeout=20)

    assert played.returncode == 130
    assert "Interrupted" in out
    assert "Traceback" not in out + err
    assert processes_of(f"{played.pid}-") == []
