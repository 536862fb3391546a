"""Who may change a program that root runs, and what the unit at boot runs then."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from avahi_gpu.host.boot_unit import SHIPPED_PATHS, UNIT_PATH, describe
from avahi_gpu.host.exposure import find_exposure, lower
from avahi_gpu.host.system import System

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")

OPT, HOME = "/opt/avahi-gpu/bin/avahi-gpu", "/home/u/.local/bin/avahi-gpu"


@pytest.fixture
def system(tmp_path: Path) -> System:
    """A machine with avahi-gpu in /opt and, by way of a link, in somebody's home."""
    for folder in (tmp_path, *(tmp_path / name for name in ("opt", "home", "tmp", "etc"))):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
    for path in (OPT, "/home/u/venv/bin/avahi-gpu"):
        file = tmp_path / path.lstrip("/")
        file.parent.mkdir(parents=True)
        file.write_text("#!/bin/sh\n")
        for place in (file, *file.parents[: len(Path(path).parents) - 1]):
            place.chmod(0o755)
    (tmp_path / "home/u/.local/bin").mkdir(parents=True)
    (tmp_path / HOME.lstrip("/")).symlink_to("/home/u/venv/bin/avahi-gpu")
    for place in (tmp_path / "home/u").rglob("*"):
        os.lchown(place, 1000, 1000)
    os.chown(tmp_path / "home/u", 1000, 1000)
    return System(root=tmp_path)


def test_roots_own_is_nobody_elses(system: System) -> None:
    assert find_exposure(system, OPT) == ""
    assert find_exposure(system, "/opt/nothing/there") == ""


@pytest.mark.parametrize(
    ("place", "owner", "mode", "word"),
    [
        (OPT, (1000, 0), 0o755, f"{OPT} belongs to user 1000"),
        ("/opt", (1000, 0), 0o755, "/opt belongs to user 1000"),
        ("/opt/avahi-gpu/bin", (0, 0), 0o777, "everybody may write /opt/avahi-gpu/bin"),
        (OPT, (0, 100), 0o775, f"group 100 may write {OPT}"),
        (OPT, (0, 0), 0o775, ""),  # root's group
        ("/opt", (0, 0), 0o1777, ""),  # names in it stay their owners'
        (OPT, (0, 0), 0o1777, f"everybody may write {OPT}"),  # on files that bit says nothing
    ],
)
def test_each_step_of_the_way_counts(
    system: System, place: str, owner: tuple[int, int], mode: int, word: str
) -> None:
    real = system.root / place.lstrip("/")
    os.chown(real, *owner)
    real.chmod(mode)

    assert find_exposure(system, OPT) == word


def test_a_link_is_as_safe_as_its_owner_and_its_target(system: System) -> None:
    link = system.root / "opt/link"
    link.symlink_to("/home/u/venv/bin/avahi-gpu")
    around = system.root / "opt/around"
    around.symlink_to("around")

    assert find_exposure(system, "/opt/link") == "/home/u belongs to user 1000"
    assert find_exposure(system, "/opt/around") == ""  # leads nowhere
    os.lchown(link, 1000, 1000)
    assert find_exposure(system, "/opt/link") == "/opt/link belongs to user 1000"


def test_root_is_given_no_unit_that_runs_somebodys_program(system: System) -> None:
    good = describe(system, (OPT, "refresh"), enabled=False)
    bad = describe(system, (HOME, "refresh"), enabled=False)

    assert good.wanted is not None and f"ExecStart={OPT} refresh\n".encode() in good.wanted
    assert good.exposed == "" and bad.wanted is None and "user 1000" in bad.exposed

    unit = system.root / UNIT_PATH.lstrip("/")
    unit.parent.mkdir(parents=True)
    unit.write_bytes(good.wanted)
    kept = describe(system, (HOME, "refresh"), enabled=True)
    assert (kept.wanted, kept.program, kept.exposed) == (good.wanted, OPT, "")

    unit.write_text(f"[Service]\nExecStart={HOME} refresh\n")
    worse = describe(system, (HOME, "refresh"), enabled=True)
    assert worse.wanted is None and "user 1000" in worse.present_exposed


def test_a_packages_unit_is_taken_as_it_is(system: System) -> None:
    shipped = system.root / SHIPPED_PATHS[0].lstrip("/")
    shipped.parent.mkdir(parents=True)
    shipped.write_text(f"[Service]\nExecStart={OPT} refresh\n")

    for program in (OPT, HOME):
        unit = describe(system, (program, "refresh"), enabled=False)
        assert (unit.file.path, unit.wanted, unit.program) == (SHIPPED_PATHS[0], unit.file.content, OPT)
        assert (unit.exposed, unit.present_exposed) == ("", "")


GROUPS = subprocess.run(["id", "-G"], capture_output=True, text=True, check=True).stdout.strip()
TELLS = """#!/bin/sh
echo "$(id -u) $(id -g) $(id -G) $HOME $1"
"""


@pytest.mark.parametrize(
    ("owner", "mode", "who"),
    [
        ((1234, 1234), 0o755, "1234 1234 1234 / -V"),
        ((1234, 0), 0o755, "1234 65534 65534 / -V"),
        ((0, 1234), 0o775, "65534 1234 1234 / -V"),
        ((0, 0), 0o757, "65534 65534 65534 / -V"),
        ((0, 0), 0o755, f"0 {os.getgid()} {GROUPS} {os.environ.get('HOME', '')} -V"),
    ],
    ids=["a user's", "of root's group", "a group's", "everybody's", "root's"],
)
def test_what_others_may_change_is_not_run_as_root(
    owner: tuple[int, int], mode: int, who: str, shared_folder: Path
) -> None:
    program = shared_folder / "python"
    program.write_text(TELLS)
    os.chown(program, *owner)
    program.chmod(mode)
    system = System()

    done = system.run(lower(system, [str(program), "-V"]), 20.0)

    assert done.stdout.strip() == who, done.stderr


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder of root's that everybody can read, which pytest's own is not."""
    with tempfile.TemporaryDirectory(dir="/var/lib") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_what_was_not_there_is_not_run_as_root_either(shared_folder: Path) -> None:
    missing = shared_folder / "python"

    argv = lower(System(), [str(missing), "-V"])  # somebody puts it there now
    missing.write_text(TELLS)
    missing.chmod(0o755)

    assert System().run(argv, 20.0).stdout.split()[:2] == ["65534", "65534"]


def test_a_folder_of_anothers_counts_before_anything_is_in_it(system: System) -> None:
    assert find_exposure(system, "/home/u/later/python") == "/home/u belongs to user 1000"
