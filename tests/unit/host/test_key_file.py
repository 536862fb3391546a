"""Where the cluster key is looked for, and that a file that cannot be used is never passed over."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from avahi_gpu.errors import ChangeFailed
from avahi_gpu.files.cluster_key import PATH, PATH_VARIABLE, ClusterKey, encode_key
from avahi_gpu.host.key_file import BadKeyFile, find_key, make_key
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
    for number, path in enumerate((PATH, OWN, "/configured", "/variable", "/named"), 1):
        put(tmp_path, path, number)

    def found(environ: dict[str, str], **places: str) -> tuple[str, int]:
        key = find_key(system, {**ENVIRON, **environ}, **places)
        assert key is not None
        return key.path, key.key.secret[0]

    variable = {PATH_VARIABLE: "/variable"}
    assert found(variable, configured="/configured", named="/named") == ("/named", 5)
    assert found(variable, configured="/configured") == ("/variable", 4)
    assert found({}, configured="/configured") == ("/configured", 3)
    assert found({}) == (OWN, 2)
    (tmp_path / OWN.lstrip("/")).unlink()
    assert found({}) == (PATH, 1)


@pytest.mark.parametrize("places", [{"named": "/none"}, {"configured": "/none"}, {}])
def test_a_file_that_somebody_names_has_to_be_there(places: dict[str, str], tmp_path: Path) -> None:
    put(tmp_path, PATH, 1)
    environ = ENVIRON if places else {**ENVIRON, PATH_VARIABLE: "/none"}

    with pytest.raises(BadKeyFile) as caught:
        find_key(System(tmp_path), environ, **places)

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
