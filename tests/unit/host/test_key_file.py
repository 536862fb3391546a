"""Where the cluster key is looked for, and that a file that cannot be used is never passed over."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from avahi_gpu.errors import ChangeFailed, Misuse
from avahi_gpu.files.cluster_key import PATH, ClusterKey, encode_key
from avahi_gpu.host.atomic import Wanted, _fill
from avahi_gpu.host.key_file import BadKeyFile, absolute, find_key, make_key, name_owner
from avahi_gpu.host.system import System

HOME = "/home/ada"
OWN = f"{HOME}/.config/avahi-gpu/key"
ENVIRON = {"HOME": HOME}


def put(root: Path, path: str, number: int, mode: int = 0o600) -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(encode_key(ClusterKey(bytes([number]) * 32)))
    file.chmod(mode)


def test_the_first_place_that_says_something_counts(tmp_path: Path) -> None:
    system = System(tmp_path)
    assert find_key(system, ENVIRON) is None
    for number, path in enumerate((PATH, OWN, "/named"), 1):
        put(tmp_path, path, number)

    def found(named: str | None = None) -> tuple[str, int]:
        key = find_key(system, ENVIRON, named)
        assert key is not None
        return key.path, key.key.secret[0]

    assert found("/named") == ("/named", 3)
    assert found() == (OWN, 2)
    (tmp_path / OWN.lstrip("/")).unlink()
    assert found() == (PATH, 1)


def test_a_file_that_somebody_names_has_to_be_there(tmp_path: Path) -> None:
    put(tmp_path, PATH, 1)

    with pytest.raises(BadKeyFile) as caught:
        find_key(System(tmp_path), ENVIRON, "/none")

    assert "/none" in caught.value.message
    assert "key new" in caught.value.hint


@pytest.mark.parametrize("path", [PATH, OWN])
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o602])
def test_a_file_that_others_may_touch_is_no_secret(mode: int, path: str, tmp_path: Path) -> None:
    put(tmp_path, PATH, 1)
    put(tmp_path, path, 2, mode)

    with pytest.raises(BadKeyFile) as caught:
        find_key(System(tmp_path), ENVIRON)

    assert path in caught.value.message
    assert f"chmod 600 {path}" in caught.value.hint


@pytest.mark.parametrize("path", [PATH, OWN])
@pytest.mark.parametrize("content", [b"", b"0123", b"\0" * 64, b"x" * 100_000])
def test_a_malformed_file_is_an_error_and_not_shown(content: bytes, path: str, tmp_path: Path) -> None:
    put(tmp_path, PATH, 1)
    put(tmp_path, path, 2)
    (tmp_path / path.lstrip("/")).write_bytes(content)

    with pytest.raises(BadKeyFile) as caught:
        find_key(System(tmp_path), ENVIRON)

    assert path in caught.value.message
    assert "0123" not in caught.value.message


@pytest.mark.parametrize("path", [PATH, OWN])
def test_something_else_in_its_place_is_an_error(path: str, tmp_path: Path) -> None:
    (tmp_path / path.lstrip("/")).mkdir(parents=True)

    with pytest.raises(BadKeyFile):
        find_key(System(tmp_path), ENVIRON)


def test_a_home_that_is_no_folder_holds_no_key(tmp_path: Path) -> None:
    put(tmp_path, PATH, 1)
    (tmp_path / "null").touch()

    found = find_key(System(tmp_path), {"HOME": "/null"})

    assert found is not None
    assert found.path == PATH


def test_a_new_key_is_random_secret_and_whole(tmp_path: Path) -> None:
    system = System(tmp_path)

    one = make_key(system, "/etc/avahi-gpu/key", force=False)
    other = make_key(system, "/home/ada/.config/avahi-gpu/key", force=False)

    assert one.key != other.key
    file = tmp_path / "etc/avahi-gpu/key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_bytes() == encode_key(one.key)
    assert [p.name for p in file.parent.iterdir()] == ["key"]
    assert stat.S_IMODE((tmp_path / "home/ada/.config/avahi-gpu").stat().st_mode) == 0o700


def test_a_key_is_never_replaced_unless_that_is_asked_for(tmp_path: Path) -> None:
    system = System(tmp_path)
    old = make_key(system, PATH, force=False)

    with pytest.raises(ChangeFailed):
        make_key(system, PATH, force=False)

    found = find_key(system, ENVIRON)
    assert found is not None
    assert found.key == old.key
    (tmp_path / PATH.lstrip("/")).chmod(0o644)
    new = make_key(system, PATH, force=True)
    found = find_key(system, ENVIRON)
    assert found is not None
    assert found.key == new.key != old.key


@pytest.mark.parametrize("path", [PATH, OWN])
@pytest.mark.parametrize("folder", [False, True])
def test_a_link_that_leads_nowhere_is_an_error(folder: bool, path: str, tmp_path: Path) -> None:
    """The disk or the container's mount that holds the key is not there: no reason to train without it."""
    link = tmp_path / path.lstrip("/")
    link = link.parent if folder else link
    link.parent.mkdir(parents=True)
    link.symlink_to("/mnt/secrets/none")

    with pytest.raises(BadKeyFile) as caught:
        find_key(System(tmp_path), ENVIRON)

    assert path in caught.value.message
    assert "link" in caught.value.message


@pytest.mark.skipif(os.geteuid() != 0, reason="a folder that its user may not enter is root's to make")
def test_a_folder_that_is_not_ours_to_enter_is_an_error(tmp_path: Path) -> None:
    put(tmp_path, PATH, 1)
    put(tmp_path, OWN, 2)
    (tmp_path / OWN.lstrip("/")).parent.chmod(0o700)
    code = f"""
import os, pathlib
from avahi_gpu.host.key_file import find_key
from avahi_gpu.host.system import System
os.chroot({str(tmp_path)!r}); os.chdir("/")
os.setgid(54321); os.setuid(54321)
find_key(System(), {ENVIRON!r})
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )

    assert f"UnreadableKey: whether there is a cluster key at {OWN} cannot be told" in done.stderr


@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_path_is_a_mistake_and_not_no_key(empty: str, tmp_path: Path) -> None:
    put(tmp_path, PATH, 1)
    system = System(tmp_path)

    with pytest.raises(Misuse):
        find_key(system, ENVIRON, empty)


def test_the_owner_of_a_key_is_root_or_somebody_with_a_name(tmp_path: Path) -> None:
    put(tmp_path, PATH, 1)
    found = find_key(System(tmp_path), {"HOME": "/none"})
    assert found is not None

    assert name_owner(replace(found, uid=0)) == ""
    assert name_owner(replace(found, uid=65534)) == "nobody"
    with pytest.raises(BadKeyFile, match="belongs to user 4000000"):
        name_owner(replace(found, uid=4000000))


def test_the_home_of_nobody_is_a_mistake() -> None:
    with pytest.raises(Misuse, match="~nosuchuser/key"):
        absolute("~nosuchuser/key")


def test_a_current_folder_that_has_gone_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    assert absolute("/full/path") == "/full/path"
    with pytest.raises(Misuse, match="current folder"):
        absolute("key")


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming a user whom nobody knows is root's")
def test_a_user_without_a_home_has_no_key_of_his_own() -> None:
    """A container that was started with just any number for its user, and no HOME."""
    code = "import os; from avahi_gpu.host.key_file import own_path; os.setuid(54321); print(own_path({}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )

    assert done.stdout == "None\n"


def test_a_key_file_that_is_open_to_others_is_closed_before_the_new_key_is_in_it(tmp_path: Path) -> None:
    """A file that is a mount of its own is written in place."""
    file = tmp_path / "key"
    file.write_bytes(b"old")
    file.chmod(0o644)
    modes = []
    handle = os.open(file, os.O_WRONLY)
    watched = os.pwrite

    def write(descriptor: int, data: bytes, at: int) -> int:
        modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return watched(descriptor, data, at)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "pwrite", write)
        _fill(handle, Wanted(b"new", 0o600, os.getuid(), os.getgid(), None), b"new")
    os.close(handle)

    assert modes == [0o600]
    assert file.read_bytes() == b"new"
