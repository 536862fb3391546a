"""The machines themselves: Debians with systemd on a LAN of their own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from tests.lab.cluster import processes_of
from tests.lab.host import REPOSITORY
from tests.machines.lab import Lab
from tests.machines.machine import groups_left

ENDS_WITHIN_S = 60.0  # a blink, on a machine that is not overloaded


def test_machines_boot_keep_their_disk_and_are_reached(make_machines: Callable[..., Lab]) -> None:
    one, two = lab = make_machines(2)

    assert one.run(["systemctl", "is-system-running"]).stdout.strip() == "running"
    assert one.run(["hostname"], check=True).stdout.strip() == "machine-1"
    assert one.run(["sh", "-c", "command -v avahi-daemon ssh avahi-gpu"]).stdout == ""
    assert one.read("/etc/avahi/avahi-daemon.conf") is None

    lab.allow_ssh(one)
    one.write("/root/kept", "as it was")
    started = one.run(["systemctl", "show", "-P", "UserspaceTimestampMonotonic"], check=True).stdout
    one.reboot()

    assert one.run(["systemctl", "show", "-P", "UserspaceTimestampMonotonic"], check=True).stdout != started
    assert one.read("/root/kept") == b"as it was"
    assert two.read("/root/kept") is None
    said = lab.control(["ssh", *lab.ssh_options, f"root@{one.address}", "hostname"], check=True)
    assert said.stdout.strip() == "machine-1"

    two.kill()
    two.power_on()
    assert two.run(["true"]).returncode == 0


@pytest.mark.faults  # test_adding_a_machine.py does that, and more
def test_avahi_gpu_installs_by_apt_and_pip_without_a_network(make_machines: Callable[..., Lab]) -> None:
    machine = make_machines(1)[0]

    machine.install_avahi_gpu(honestly=True)

    assert machine.run(["avahi-gpu", "--version"], check=True).stdout.startswith("avahi-gpu ")


def test_nothing_outlives_its_maker_whatever_way_that_one_ends() -> None:
    maker = subprocess.Popen(
        [sys.executable, "-m", "tests.machines.lab", "1"],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert maker.stdout is not None
    with maker.stdout:
        assert maker.stdout.readline().startswith("machine-1 ")
        token = f"{maker.pid}-m"
        assert processes_of(token)
        maker.kill()
        maker.wait()

    deadline = time.monotonic() + ENDS_WITHIN_S
    while left := processes_of(token) + groups_left(token):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
