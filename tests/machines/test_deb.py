"""The Debian package on a booted Debian: it comes without a network, works, and leaves a working machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from shlex import quote

import pytest

from avahi_gpu import __version__
from release import deb, dist
from tests.lab.pages import read_blocks
from tests.lab.tree import changed, take_picture
from tests.machines import debs
from tests.machines.lab import Lab
from tests.machines.machine import Machine
from tests.machines.test_setup import SERVICE, SETUP, asked

pytestmark = [pytest.mark.machines, pytest.mark.timeout(600)]  # half a minute on a quiet computer

UNIT = "avahi-gpu-facts.service"
SHIPPED = f"/usr/lib/systemd/system/{UNIT}"
WANTS = f"/etc/systemd/system/multi-user.target.wants/{UNIT}"
STATE = "/var/lib/avahi-gpu"
NEXT = "9.0.0"
PAGE = "docs/how-to/install.md"
# as bash completes: the loader of bash-completion finds the script by the command's name
COMPLETE = """. /usr/share/bash-completion/bash_completion
_completion_loader avahi-gpu
COMP_WORDS=(avahi-gpu explain AG10) COMP_CWORD=2 COMP_LINE='avahi-gpu explain AG10' COMP_POINT=22
_avahi_gpu avahi-gpu AG10 explain
printf '%s\\n' "${COMPREPLY[@]}"
"""


def install(machine: Machine, package: Path) -> str:
    """Install a package file as people do, and return what that prints."""
    shutil.copy(package, machine.path(f"/srv/{package.name}"))
    command = ["apt-get", "install", "-y", "-q", "--no-install-recommends", f"/srv/{package.name}"]
    return machine.run(command, timeout=300, check=True).stdout


def apt(machine: Machine, *words: str) -> str:
    return machine.run(["apt-get", "-y", "-q", *words], timeout=300, check=True).stdout


def follow(machine: Machine, page: str, heading: str) -> str:
    """Run the commands under a heading of a page as they are written, on a terminal, and agree to all."""
    blocks = read_blocks(page, (dist.REPOSITORY / page).read_text(encoding="utf-8"))
    (text,) = [b.text for b in blocks if b.heading == heading and b.place == "one-node"]
    # script(1) is a terminal, and ends with the exit code of what it runs; sudo has one of its own, which
    # swallows what is said too early
    on_terminal = f"script --quiet --return --command {quote(f'bash -euc {quote(text)}')} /dev/null"
    command = ["sh", "-c", f"while sleep 1; do echo y || exit; done | {on_terminal}"]
    done = machine.run(command, timeout=300)
    assert done.returncode == 0, done.stdout
    return done.stdout


def resolves(machine: Machine) -> bool:
    return machine.run(["getent", "hosts", f"{machine.name}.local"]).returncode == 0


def facts_unit(machine: Machine) -> dict[str, str]:
    shown = machine.run(["systemctl", "show", UNIT, "-p", "Result,FragmentPath,UnitFileState"]).stdout
    return dict(line.split("=", 1) for line in shown.splitlines())


def live(machine: Machine) -> None:
    """The package's whole life on one machine."""
    apt(machine, "install", "--no-install-recommends", "man-db", "bash-completion", "sudo")
    said = install(machine, debs.package())

    # it is there, and has set up nothing
    assert "sudo avahi-gpu setup" in said
    told = machine.run(["sudo", "avahi-gpu", "--version"], check=True).stdout.splitlines()
    assert told[0] == f"avahi-gpu {__version__}" and told[1].startswith("Avahi     0.8")
    assert "(/usr/bin/python3)" in told[2] and told[3] == "torch     not installed there"
    assert machine.read(SERVICE) is None and not machine.path(STATE).exists()
    assert facts_unit(machine)["UnitFileState"] == "disabled"
    before = take_picture(machine)

    # people read of it, and bash completes it
    page = machine.run(["man", "-P", "cat", "avahi-gpu"], env={"MANWIDTH": "80"}, check=True).stdout
    assert "avahi-gpu - make one PyTorch cluster" in page
    completed = machine.run(["bash", "-c", COMPLETE], check=True).stdout.split()
    assert "AG104" in completed and all(word.startswith("AG10") for word in completed)

    # training is another environment's, and it says so
    machine.write("/root/train.py", "print('hello')\n")
    launched = machine.run(["avahi-gpu", "launch", "--nnodes", "1", "train.py"])
    assert launched.returncode == 125
    assert "torch is not installed in the Python that runs avahi-gpu (/usr/bin/python3)" in launched.stderr
    assert "pip install avahi-gpu" in launched.stderr

    # a node: the unit at boot is the package's, and there is no second one
    machine.run(SETUP, timeout=120, check=True)
    assert (machine.read(SERVICE) or b"").startswith(b"<?xml")
    assert machine.read(f"/etc/systemd/system/{UNIT}") is None
    doctor = {f["id"]: f["verdict"] for f in asked(machine, "doctor")["findings"]}
    assert {doctor[id] for id in ("AG511", "AG512", "AG513", "AG514")} == {"ok"}
    assert "error" not in doctor.values()
    machine.reboot()
    state = facts_unit(machine)
    assert (state["Result"], state["UnitFileState"]) == ("success", "enabled")
    assert state["FragmentPath"] in (SHIPPED, SHIPPED.removeprefix("/usr"))  # Debian 12 names it by the link
    log = machine.run(["journalctl", "-b", "-q", "-o", "cat", "-u", UNIT], check=True).stdout
    assert f"{SERVICE} tells what this machine is" in log

    # a newer one
    install(machine, debs.package(NEXT))
    assert machine.run(["avahi-gpu", "--version"], check=True).stdout.startswith(f"avahi-gpu {NEXT}\n")
    assert machine.run(SETUP, timeout=120, check=True).stdout.startswith("nothing to do\n")
    assert facts_unit(machine)["UnitFileState"] == "enabled"

    # removed: names resolve as before, and its files are gone, but what undo needs
    said = apt(machine, "remove", "avahi-gpu")
    assert "sudo avahi-gpu undo" in said
    assert machine.run(["sh", "-c", "command -v avahi-gpu"]).returncode != 0
    assert not machine.path("/usr/lib/avahi-gpu").exists() and machine.path(f"{STATE}/journal").exists()
    assert resolves(machine) and machine.read(SERVICE) is not None

    # purged while it is set up: no node any more, and what others rely on stays
    machine.write("/etc/avahi-gpu/config.toml", 'cluster = "mine"\n')
    said = apt(machine, "purge", "avahi-gpu")
    assert "stays as it is" in said and "/etc/avahi-gpu" in said
    assert machine.read(SERVICE) is None and not machine.path(WANTS).is_symlink()
    assert resolves(machine) and machine.path(f"{STATE}/journal").exists()
    assert (machine.read("/etc/avahi-gpu/config.toml") or b"").startswith(b"cluster")
    assert machine.run(["systemctl", "is-active", "avahi-daemon"]).stdout == "active\n"
    machine.path("/etc/avahi-gpu/config.toml").unlink()
    machine.path("/etc/avahi-gpu").rmdir()

    # once more as people do it, and undone before it goes: the machine is as before setup
    shutil.copy(debs.package(), machine.path("/root"))
    assert f"{machine.name} is a node" in follow(machine, PAGE, "The Debian package")
    assert machine.read(SERVICE) is not None
    follow(machine, PAGE, "Remove")
    assert not machine.path(STATE).exists() and machine.read(SERVICE) is None
    assert changed(before, take_picture(machine)) == []
    assert resolves(machine)


def test_a_package_comes_works_and_goes(make_machines: Callable[..., Lab]) -> None:
    live(make_machines(1)[0])


@pytest.mark.faults  # another root file system takes CI a minute
def test_the_same_package_serves_another_debian(make_machines: Callable[..., Lab]) -> None:
    live(make_machines(1, "trixie")[0])


def test_the_package_is_the_same_wherever_it_is_built(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        copy = debs.source(tmp_path / "elsewhere/b")
    finally:
        os.umask(before)
    for path in copy.rglob("*"):
        os.utime(path, (1e9, 1e9))
    (copy / "avahi_gpu/notes.txt").write_text("a stray")

    again = deb.build(copy, debs.libraries(), tmp_path, debs.architecture(), debs.EPOCH, debs.QUICK)

    assert again.read_bytes() == debs.package().read_bytes()
    listed = [line.split() for line in dist.run(["dpkg-deb", "--contents", str(again)]).splitlines()]
    assert {line[1] for line in listed} == {"root/root"}
    assert {line[0] for line in listed} == {"drwxr-xr-x", "-rw-r--r--", "-rwxr-xr-x"}
    executable = {line[5] for line in listed if line[0] == "-rwxr-xr-x"}
    assert executable == {"./usr/bin/avahi-gpu", "./usr/share/python3/runtime.d/avahi-gpu.rtupdate"}
    assert not [line[5] for line in listed if "notes" in line[5] or line[5].startswith("./etc")]
