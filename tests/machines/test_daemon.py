"""setup and avahi-daemon's units on booted machines: bridges, masks, refused starts, and systemd-resolved."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.lab.tree import changed, take_picture
from tests.machines.lab import Lab
from tests.machines.machine import Machine
from tests.machines.test_setup import PACKAGES, SETUP, daemon_starts, unit

CONF = "/etc/avahi/avahi-daemon.conf"
UNITS = ["avahi-daemon.service", "avahi-daemon.socket"]
REFUSES = "/etc/systemd/system/avahi-daemon.service.d/refuses.conf"
RESOLVED = "/etc/systemd/resolved.conf.d/95-avahi-gpu.conf"
UNDO = ["avahi-gpu", "undo", "--yes"]


def add_bridge(machine: Machine) -> None:
    """Give the machine what Docker makes."""
    for words in (
        "link add docker0 type bridge",
        "addr add 172.17.0.1/16 dev docker0",
        "link set docker0 up",
    ):
        machine.run(["ip", *words.split()], check=True)


def own_address(machine: Machine) -> str:
    return machine.run(["getent", "ahostsv4", f"{machine.name}.local"]).stdout.partition(" ")[0]


def set_up(machine: Machine, *more: str) -> str:
    done = machine.run([*SETUP, *more], timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_bridge_costs_one_restart_and_a_refused_configuration_nothing(
    make_machines: Callable[..., Lab],
) -> None:
    machine = make_machines(1)[0]
    machine.install_avahi_gpu()
    machine.apt_install(*PACKAGES)
    assert daemon_starts(machine) == 1
    add_bridge(machine)
    etc = take_picture(machine)

    # a bridge beside the LAN: one restart
    set_up(machine)
    assert daemon_starts(machine) == 2
    assert own_address(machine) == machine.address
    kept = unit(machine)["InvocationID"]
    assert set_up(machine).startswith("nothing to do\n")
    assert unit(machine)["InvocationID"] == kept
    machine.run(UNDO, check=True, timeout=120)
    assert changed(etc, take_picture(machine)) == []
    assert daemon_starts(machine) == 3  # what is undone is out of force as well

    # our rules take the new file, and the daemon does not come up with it
    machine.run(["mkdir", "-p", REFUSES.rpartition("/")[0]], check=True)
    machine.write(REFUSES, f"[Service]\nExecStartPre=/bin/sh -c '! grep ^allow-interfaces {CONF}'\n")
    machine.run(["systemctl", "daemon-reload"], check=True)
    conf = machine.read(CONF)
    done = machine.run(SETUP, timeout=180)
    assert done.returncode == 1, done.stdout
    assert "does not come up with the new" in done.stderr
    assert "status=1/FAILURE" in done.stderr  # the line of its log
    assert machine.read(CONF) == conf
    assert unit(machine)["ActiveState"] == "active"
    machine.run(["rm", "-r", REFUSES.rpartition("/")[0]], check=True)
    machine.run(["systemctl", "daemon-reload"], check=True)
    machine.run(UNDO, check=True, timeout=120)
    assert changed(etc, take_picture(machine)) == []


@pytest.mark.faults  # how systemctl is told is tried by unit tests
def test_units_that_were_disabled_or_masked_are_so_again_after_undo(
    make_machines: Callable[..., Lab],
) -> None:
    machine = make_machines(1)[0]
    machine.install_avahi_gpu()
    machine.apt_install(*PACKAGES)
    for words in (["disable", "--now"], ["mask", "--now"], ["mask", "--now", "--runtime"]):
        machine.run(["systemctl", *words, *UNITS], check=True)
        before, state_before = take_picture(machine), unit(machine)["UnitFileState"]
        told = set_up(machine)
        assert ("unmask avahi-daemon" in told) == (words[0] == "mask")
        state = unit(machine)
        assert (state["ActiveState"], state["UnitFileState"]) == ("active", "enabled")
        machine.run(UNDO, check=True, timeout=120)
        assert changed(before, take_picture(machine)) == [], words
        assert unit(machine)["UnitFileState"] == state_before
        machine.run(["systemctl", "unmask", *UNITS], check=True)


@pytest.mark.faults  # what --resolved does beside that is tried on virtual hosts
def test_systemd_resolved_leaves_mdns_to_avahi_on_request_alone(make_machines: Callable[..., Lab]) -> None:
    machine = make_machines(1)[0]
    machine.install_avahi_gpu()
    machine.apt_install(*PACKAGES, "systemd-resolved")
    machine.run(["mkdir", "-p", "/etc/systemd/resolved.conf.d"], check=True)
    machine.write("/etc/systemd/resolved.conf.d/90-mine.conf", "[Resolve]\nMulticastDNS=yes\n")
    machine.run(["systemctl", "restart", "systemd-resolved"], check=True)
    machine.run(["resolvectl", "mdns", "eth0", "yes"], check=True)
    etc = take_picture(machine)

    told = set_up(machine)
    assert "avahi-gpu setup --resolved" in told
    assert machine.read(RESOLVED) is None
    kept = unit(machine)["InvocationID"]
    done = set_up(machine, "--resolved")
    assert "restart systemd-resolved" in done and "--resolved" not in done
    assert unit(machine)["InvocationID"] == kept
    found = machine.run(["avahi-gpu", "doctor", "--only", "AG209"], timeout=120)
    assert found.returncode == 0, found.stdout
    assert set_up(machine, "--resolved").startswith("nothing to do\n")

    machine.run(UNDO, check=True, timeout=120)
    assert changed(etc, take_picture(machine)) == []
    assert "Global: yes" in machine.run(["resolvectl", "mdns"], check=True).stdout
