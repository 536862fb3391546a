"""pipx and uv put avahi-gpu into a home folder: all of setup works from there but what root must not run."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from release import dist
from tests.lab.pages import read_blocks
from tests.machines import wheels
from tests.machines.cache import key_of, made, step
from tests.machines.lab import Lab
from tests.machines.machine import Machine
from tests.machines.test_setup import SERVICE, asked

pytestmark = [pytest.mark.machines, pytest.mark.faults]  # fetches two programs that nothing else needs

PAGE = "docs/how-to/install.md"
UNIT = "/etc/systemd/system/avahi-gpu-facts.service"
TOOLS = ("pipx", "uv", "pip")
INDEX = "[global]\nno-index = true\nfind-links = /srv/wheels /srv/tools\n"


def tools() -> Path:
    """Return a folder with the wheels of pipx, uv and a newer pip than Debian's."""

    def fetch(folder: Path) -> None:
        options = wheels._for_release("bookworm")
        step([*wheels.PIP, "download", "-q", "-d", folder, *options, *TOOLS], "fetching pipx and uv")

    return made("tools-for-users", key_of(*TOOLS), fetch)


def commands(heading: str) -> list[str]:
    text = (dist.REPOSITORY / PAGE).read_text(encoding="utf-8")
    return [b.text for b in read_blocks(PAGE, text) if b.heading == heading and b.place == "one-node"]


def as_user(machine: Machine, text: str) -> subprocess.CompletedProcess[str]:
    """Run commands as ada would; what stands for the index is a folder, and the answer to setup is yes."""
    environment = {
        "UV_OFFLINE": "1",
        "UV_NO_INDEX": "1",
        "UV_FIND_LINKS": "/srv/wheels",
        "UV_PYTHON": "/usr/bin/python3",
        "PATH": "/home/ada/.local/bin:/home/ada/tools/bin:/usr/bin:/bin",
    }
    words = [f"{name}={value}" for name, value in environment.items()]
    command = ["runuser", "-u", "ada", "--", "env", "HOME=/home/ada", *words, "bash", "-euc", text]
    done = machine.run(command, timeout=300, cwd="/home/ada")
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
    return done


def test_setup_from_a_home_folder_gives_root_nothing_of_it_to_run(make_machines: Callable[..., Lab]) -> None:
    machine = make_machines(1, binds=[f"{tools()}:/srv/tools"])[0]
    machine.apt_install("python3-venv", "sudo")
    machine.run(["useradd", "--create-home", "--shell", "/bin/bash", "ada"], check=True)
    machine.write("/etc/sudoers.d/ada", "ada ALL=(ALL) NOPASSWD: ALL\n", mode=0o440)
    machine.write("/etc/pip.conf", INDEX)
    as_user(machine, "python3 -m venv ~/tools && ~/tools/bin/pip install -q pipx uv")
    by_pipx, by_uv, setup = commands("pipx or uv")
    (beside_torch,) = commands("Beside torch")
    (in_opt,) = commands("A virtual environment in /opt")
    (offline,) = commands("Without a network")

    for install, remove in ((by_pipx, "pipx uninstall avahi-gpu"), (by_uv, "uv tool uninstall avahi-gpu")):
        as_user(machine, install)
        done = as_user(machine, f"{setup} --yes")
        assert machine.run(["find", "/home/ada", "-user", "root"]).stdout == ""  # ada could not remove that
        told = as_user(machine, "avahi-gpu --version").stdout
        assert told.startswith("avahi-gpu ") and "(/home/ada/.local/" in told
        assert machine.read(SERVICE) is not None and machine.read(UNIT) is None
        assert "root would run what others may change" in done.stdout, done.stdout
        again = as_user(machine, f"{setup} --yes").stdout
        assert again.startswith("nothing to do\n")
        doctor = as_user(machine, "avahi-gpu doctor --verbose").stdout
        assert "AG511" in doctor
        as_user(machine, remove)

    # one in a better place gives root its unit, which a setup from a home folder leaves alone
    machine.run(
        ["bash", "-euc", f"{in_opt} --yes"], env={"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/srv/wheels"}
    )
    unit = machine.read(UNIT) or b""
    assert b"ExecStart=/opt/avahi-gpu/bin/avahi-gpu refresh" in unit
    assert {f["verdict"] for f in asked(machine, "doctor")["findings"] if f["id"] == "AG511"} == {"ok"}
    as_user(machine, by_pipx)
    assert as_user(machine, f"{setup} --yes").stdout.startswith("nothing to do\n")
    assert machine.read(UNIT) == unit

    as_user(machine, beside_torch)
    as_user(machine, f"cp -r /srv/wheels wheels; {offline}; ~/offline/bin/avahi-gpu --version")
