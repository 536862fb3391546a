"""setup killed on a booted machine while real dpkg unpacks and configures, alone and with it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.lab.tree import changed, take_picture
from tests.machines.lab import Lab

pytestmark = pytest.mark.faults

SETUP = ["avahi-gpu", "setup", "--yes"]
# starts setup, waits until dpkg has unpacked the daemon, kills setup and what is named
KILL = """
import os, signal, subprocess, sys
from pathlib import Path
def find(name):
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and (folder / "comm").read_text().strip() == name:
                found.append(int(folder.name))
        except OSError:
            pass
    return found
setup = subprocess.Popen(["avahi-gpu", "setup", "--yes"], stdout=subprocess.DEVNULL)
while not Path("/usr/sbin/avahi-daemon").exists():
    assert setup.poll() is None, "setup ended before dpkg began"
os.kill(setup.pid, signal.SIGKILL)
setup.wait()
for name in sys.argv[1:]:
    for pid in find(name):
        os.kill(pid, signal.SIGKILL)
print("killed")
"""


@pytest.mark.parametrize("others", [[], ["apt-get", "dpkg", "dpkg-deb"]], ids=["setup", "dpkg"])
def test_killed_while_packages_are_installed(make_machines: Callable[..., Lab], others: list[str]) -> None:
    """apt goes on by itself and is waited for; where dpkg was cut off too, setup puts it right first."""
    (machine,) = make_machines(1)
    machine.install_avahi_gpu()
    before = take_picture(machine)  # type: ignore[arg-type]

    killed = machine.run(["python3", "-c", KILL, *others], timeout=120)

    assert killed.stdout.startswith("killed"), killed.stderr
    done = machine.run(SETUP, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{machine.name} is a node" in done.stdout
    assert ("dpkg --force-confdef --force-confold --configure -a" in done.stdout) is bool(others)
    audit = machine.run(["dpkg", "--audit"], check=True)
    assert audit.stdout == ""
    again = machine.run([*SETUP], timeout=120)
    assert again.stdout.startswith("nothing to do"), again.stdout
    machine.run(["avahi-gpu", "undo", "--yes"], check=True)
    left = changed(before, take_picture(machine))  # type: ignore[arg-type]
    assert not [path for path in left if "torch.service" in path or "avahi-gpu" in path]
