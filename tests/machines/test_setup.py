"""setup on booted machines as a fresh Debian leaves them: apt, systemd, a reboot, and the way back."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.lab.tree import Picture, changed, take_picture
from tests.machines.lab import Lab
from tests.machines.machine import Machine

SETUP = ["avahi-gpu", "setup", "--yes"]
PACKAGES = ["avahi-daemon", "libnss-mdns"]
SERVICE = "/etc/avahi/services/torch.service"
OWN = {"/hostname", "/hosts", "/machine-id"}  # what machines differ in from the beginning
STARTED = "39f53479d3a045ac8e11786248231fbf"  # systemd's message: a start job of a unit is done


def installed(*machines: Machine) -> None:
    """Put avahi-gpu into machines, side by side."""
    with ThreadPoolExecutor(len(machines)) as together:
        list(together.map(lambda machine: machine.install_avahi_gpu(), machines))


def asked(machine: Machine, *argv: str, code: int = 0) -> Any:
    """Return the data of a command's JSON answer."""
    done = machine.run(["avahi-gpu", *argv, "--json"], timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)["data"]


def names(changes: list[dict[str, Any]]) -> list[str]:
    """Return what each change is about."""
    return [change.get("path") or " ".join(change["argv"]) for change in changes]


def daemon_starts(machine: Machine) -> int:
    """Return how often systemd has started avahi-daemon since the machine booted."""
    ask = ["journalctl", "-q", "-b", "-o", "cat", f"MESSAGE_ID={STARTED}", "UNIT=avahi-daemon.service"]
    return len(machine.run(ask, check=True).stdout.splitlines())


def unit(machine: Machine) -> dict[str, str]:
    """Return what systemd knows of avahi-daemon."""
    wanted = "ActiveState,UnitFileState,InvocationID,NRestarts"
    shown = machine.run(["systemctl", "show", "avahi-daemon.service", "-p", wanted], check=True).stdout
    return dict(line.split("=", 1) for line in shown.splitlines())


def assert_sees(one: Machine, other: Machine) -> None:
    """``one`` sees ``other`` as a node that lives, and resolves its name by glibc."""
    told = asked(one, "peers", "--expect", "2", "--timeout", "30")["peers"]
    assert {peer["name"]: peer["alive"] for peer in told} == {one.name: True, other.name: True}
    assert one.run(["getent", "hosts", f"{other.name}.local"]).stdout.split() == [
        other.address,
        f"{other.name}.local",
    ]


def test_a_bare_debian_becomes_a_node_stays_one_and_goes_back(make_machines: Callable[..., Lab]) -> None:
    one, twin = make_machines(2)
    installed(one, twin)

    # what it would do is what it does
    told = asked(one, "setup", "--check", code=5)["changes"]
    assert one.read("/usr/sbin/avahi-daemon") is None
    made = asked(one, "setup", "--yes")["changes"]
    assert names(made)[0].startswith("apt-get install ")
    assert set(names(made)) <= set(names(told))
    for change in told:
        wanted = [line[1:] for line in change.get("diff", "").splitlines() if line.startswith("+")]
        if change["kind"] == "file":
            content = (one.read(change["path"]) or b"").decode()
            assert set(wanted[1:]) <= set(content.splitlines())

    state = unit(one)
    assert (state["ActiveState"], state["UnitFileState"]) == ("active", "enabled")
    assert state["NRestarts"] == "0"
    assert daemon_starts(one) <= 2  # the package's own start, and one restart at most

    # the twin has the same packages, and nothing of ours
    twin.apt_install(*PACKAGES)
    packages_alone = own_aside(take_picture(twin))
    twin.run(SETUP, timeout=120, check=True)
    assert_sees(twin, one)
    assert_sees(one, twin)

    # again: nothing
    before = take_picture(one)
    again = one.run(SETUP, timeout=120, check=True)
    assert again.stdout.startswith("nothing to do\n")
    assert changed(before, take_picture(one)) == []
    assert unit(one)["InvocationID"] == state["InvocationID"]

    one.reboot()
    assert unit(one)["ActiveState"] == "active"
    assert_sees(one, twin)
    assert_sees(twin, one)
    doctor = one.run(["avahi-gpu", "doctor"], timeout=120)
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    assert one.run(SETUP, timeout=120, check=True).stdout.startswith("nothing to do\n")

    one.run(["avahi-gpu", "undo", "--yes"], timeout=120, check=True)
    assert changed(packages_alone, own_aside(take_picture(one))) == []
    assert one.read(SERVICE) is None


def own_aside(picture: Picture) -> Picture:
    """Return the picture without what each machine has of its own."""
    return {path: what for path, what in picture.items() if path not in OWN}


@pytest.mark.faults  # another root file system takes CI a minute
@pytest.mark.parametrize("release", ["trixie"])
def test_another_release_becomes_a_node(make_machines: Callable[..., Lab], release: str) -> None:
    one, two = make_machines(2, release)
    installed(one, two)

    for machine in (one, two):
        machine.run(SETUP, timeout=120, check=True)
    assert_sees(one, two)
    one.reboot()
    assert_sees(two, one)
    doctor = one.run(["avahi-gpu", "doctor"], timeout=120)
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    one.run(["avahi-gpu", "undo", "--yes"], timeout=120, check=True)
    assert one.read(SERVICE) is None
