"""What `key new` tells people to type: run by a real shell, where ssh and sudo stay on this machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from avahi_gpu.cli.key import bring_own, bring_roots

# as the real one: the words become one line for the shell of a user in their home folder
SSH = """#!/bin/sh
[ "$1" = -t ] && shift
[ "$1" = OTHER.local ] || exit 9
shift
[ -z "$ONLY_HERE" ] || rm "$ONLY_HERE"  # both hosts share this machine's files
cd "$OTHER_HOME" && exec sh -c "$*"
"""
SUDO = """#!/bin/sh
exec "$@"
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for folder in ("bin", "here", "other", "a place"):
        (tmp_path / folder).mkdir()
    for name, script in (("ssh", SSH), ("sudo", SUDO)):
        (tmp_path / "bin" / name).write_text(script)
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def type_in(home: Path, lines: list[str], only_here: str = "") -> None:
    path = f"{home}/bin:{os.environ['PATH']}"
    environ = {"PATH": path, "HOME": f"{home}/here", "OTHER_HOME": f"{home}/other", "ONLY_HERE": only_here}
    subprocess.run(["sh", "-ec", "\n".join(lines)], env=environ, check=True, timeout=10)


def test_a_users_key_comes_to_the_same_place_in_the_home_folder_there(home: Path) -> None:
    here, there = (home / who / ".config/avahi-gpu/key" for who in ("here", "other"))
    here.parent.mkdir(parents=True)
    here.write_text("secret")

    type_in(home, bring_own(str(here), own=True))

    assert there.read_text() == "secret"
    assert there.stat().st_mode & 0o777 == 0o600


def test_a_users_key_elsewhere_keeps_its_path_whatever_that_is(home: Path) -> None:
    key = home / "a place" / "it's a key"
    key.write_text("secret")
    key.chmod(0o644)

    type_in(home, bring_own(str(key), own=False), only_here=str(key))

    assert key.read_text() == "secret"
    assert key.stat().st_mode & 0o777 == 0o600


def test_roots_key_comes_to_its_place_and_leaves_no_copy(home: Path) -> None:
    key = home / "a place" / "it's a key"
    key.write_text("secret")
    copy, place = bring_roots(str(key))

    type_in(home, [copy])
    type_in(home, [place], only_here=str(key))

    assert key.read_text() == "secret"
    assert key.stat().st_mode & 0o777 == 0o600
    assert list((home / "other").iterdir()) == []
