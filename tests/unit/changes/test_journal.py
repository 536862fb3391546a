"""What is changed can be undone, byte for byte, whatever happens in between. On real files under a root."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avahi_gpu.changes import journal
from avahi_gpu.changes.lock import locked
from avahi_gpu.changes.record import CommandRecord, decode_records, encode_record
from avahi_gpu.errors import ChangeFailed
from avahi_gpu.host.system import System
from avahi_gpu.model import Change

STATE = "var/lib/avahi-gpu"


@pytest.fixture
def system(tmp_path: Path) -> System:
    return furnish(tmp_path)


def furnish(root: Path) -> System:
    for folder in ("etc", "run", "var/lib"):
        (root / folder).mkdir(parents=True)
    (root / "etc/x").write_bytes(b"old\n")
    (root / "etc/x").chmod(0o640)
    return System(root)


def snapshot(root: Path) -> dict[str, tuple[int, int, int, bytes | str]]:
    """Return kind and mode, owner and content of everything under ``root``, /run aside."""
    found = {}
    for path in sorted(root.rglob("*")):
        if path.relative_to(root).parts[0] == "run":
            continue
        status = path.lstat()
        content: bytes | str = b""
        if stat.S_ISREG(status.st_mode):
            content = path.read_bytes()
        elif stat.S_ISLNK(status.st_mode):
            content = os.readlink(path)
        found[str(path.relative_to(root))] = (status.st_mode, status.st_uid, status.st_gid, content)
    return found


def change(system: System, path: str, content: bytes | None, mode: int = 0o644) -> Change:
    return Change("file", f"write {path}", path, content, mode, before=system.read(path).content)


def make(system: System, path: str, content: bytes | None, mode: int = 0o644) -> None:
    journal.apply([change(system, path, content, mode)], system)


def undo(system: System) -> journal.Undone:
    return journal.undo(journal.plan_undo(system), system)


def test_undo_brings_back_bytes_mode_and_owner_and_leaves_no_trace(system: System, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(tmp_path / "etc/x", 12, 34)
    before = snapshot(tmp_path)

    make(system, "/etc/x", b"new\n", 0o600)
    make(system, "/etc/avahi/services/new.service", b"<x/>\n")
    make(system, "/etc/x", b"newer\n", 0o644)
    make(system, "/etc/x", None)
    done = undo(system)

    assert snapshot(tmp_path) == before
    assert not done.kept
    assert not done.failed


def test_the_journal_is_roots_alone(system: System, tmp_path: Path) -> None:
    """It holds files of /etc as they were, some of which not everybody may read."""
    make(system, "/etc/x", b"new\n")

    assert stat.S_IMODE((tmp_path / STATE).stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / STATE / "journal").stat().st_mode) == 0o600


def test_an_edit_made_since_is_kept_and_the_rest_put_back(system: System, tmp_path: Path) -> None:
    make(system, "/etc/x", b"new\n")
    make(system, "/etc/y", b"y\n")
    (tmp_path / "etc/x").write_bytes(b"mine\n")

    done = undo(system)

    assert done.kept == ("/etc/x",)
    assert (tmp_path / "etc/x").read_bytes() == b"mine\n"
    assert not (tmp_path / "etc/y").exists()


def test_what_was_kept_comes_back_once_the_edit_is_moved_away(system: System, tmp_path: Path) -> None:
    make(system, "/etc/x", b"new\n")
    make(system, "/etc/y", b"y\n")
    (tmp_path / "etc/x").write_bytes(b"mine\n")
    undo(system)
    (tmp_path / "etc/x").rename(tmp_path / "etc/x.mine")

    done = undo(system)

    assert (tmp_path / "etc/x").read_bytes() == b"old\n"
    assert not done.kept
    assert not (tmp_path / STATE).exists()


def test_an_edit_between_two_changes_is_what_comes_back(system: System, tmp_path: Path) -> None:
    make(system, "/etc/x", b"new\n")
    (tmp_path / "etc/x").write_bytes(b"mine\n")
    make(system, "/etc/x", b"newer\n")

    undo(system)

    assert (tmp_path / "etc/x").read_bytes() == b"mine\n"
    assert not (tmp_path / STATE).exists()


def test_a_file_of_ours_that_somebody_removed_stays_removed(system: System, tmp_path: Path) -> None:
    make(system, "/etc/y", b"y\n")
    (tmp_path / "etc/y").unlink()

    done = undo(system)

    assert not (tmp_path / "etc/y").exists()
    assert not done.kept


def test_a_folder_of_ours_that_somebody_uses_stays(system: System, tmp_path: Path) -> None:
    make(system, "/etc/ours/y", b"y\n")
    (tmp_path / "etc/ours/theirs").write_bytes(b"")

    done = undo(system)

    assert done.left_folders == ("/etc/ours",)
    assert os.listdir(tmp_path / "etc/ours") == ["theirs"]
    assert not (tmp_path / STATE).exists()


def test_a_change_from_an_old_plan_is_refused(system: System, tmp_path: Path) -> None:
    planned = change(system, "/etc/x", b"new\n")
    (tmp_path / "etc/x").write_bytes(b"mine\n")

    with pytest.raises(ChangeFailed, match="/etc/x was edited in the meantime"):
        journal.apply([planned], system)
    assert (tmp_path / "etc/x").read_bytes() == b"mine\n"


def test_undo_goes_on_where_one_file_cannot_be_put_back(system: System, tmp_path: Path) -> None:
    make(system, "/etc/x", b"new\n")
    make(system, "/etc/gone/y", b"y\n")
    make(system, "/etc/gone/y", None)
    (tmp_path / "etc/gone").rmdir()
    make(system, "/etc/z", b"z\n")
    unwinding = journal.plan_undo(system)
    (tmp_path / "etc/x").unlink()
    (tmp_path / "etc/x").mkdir()  # what nobody can write a file over

    done = journal.undo(unwinding, system)

    assert done.kept == ("/etc/x",)
    assert not (tmp_path / "etc/z").exists()


def test_a_link_stays_a_link(system: System, tmp_path: Path) -> None:
    (tmp_path / "etc/link").symlink_to("x")
    before = snapshot(tmp_path)

    make(system, "/etc/link", b"new\n")
    assert (tmp_path / "etc/x").read_bytes() == b"new\n"
    undo(system)

    assert snapshot(tmp_path) == before


def test_a_failure_names_the_change_and_what_was_done(system: System) -> None:
    start = Change("daemon", "start it", argv=("sh", "-c", "echo no licence >&2; exit 1"))

    with pytest.raises(ChangeFailed) as caught:
        journal.apply([change(system, "/etc/x", b"new\n"), start], system)

    assert "could not start it" in caught.value.message
    assert "no licence" in caught.value.message
    assert "write /etc/x" in caught.value.hint


def test_commands_are_remembered_so_that_undo_can_tell(system: System) -> None:
    journal.apply([Change("daemon", "start it", argv=("true",))], system)

    assert journal.plan_undo(system).stays == (CommandRecord("daemon", "start it", ("true",)),)


def test_nothing_to_undo_is_no_error(system: System, tmp_path: Path) -> None:
    before = snapshot(tmp_path)

    assert undo(system).restored == ()
    assert snapshot(tmp_path) == before


def test_two_at_once_exclude_each_other(system: System) -> None:
    with (
        locked(system, wait_s=0.3),
        pytest.raises(ChangeFailed, match="another avahi-gpu"),
        locked(system, wait_s=0.3),
    ):
        pass
    with locked(system, wait_s=0.3):
        pass


def test_a_line_cut_short_by_a_crash_is_left_out(system: System, tmp_path: Path) -> None:
    make(system, "/etc/x", b"new\n")
    file = tmp_path / STATE / "journal"
    file.write_bytes(file.read_bytes() + b'{"kind":"file","pa')
    make(system, "/etc/x", b"newer\n")

    records, broken = journal.read_journal(system)
    undo(system)

    assert (len(records), broken) == (2, [2])
    assert (tmp_path / "etc/x").read_bytes() == b"old\n"


def test_a_record_of_a_later_version_is_not_guessed_at() -> None:
    line = encode_record(CommandRecord("daemon", "start", ("true",))).replace(b'"version":1', b'"version":2')

    assert decode_records(line) == ([], [1])


class Crash(BaseException):
    """The power went."""


class CrashingSystem(System):
    """Loses power before or after the n-th write or removal of a file."""

    def write(self, *arguments: object, **more: object) -> None:
        self._tick()
        super().write(*arguments, **more)  # type: ignore[arg-type]
        self._tick()

    def append(self, *arguments: object, **more: object) -> None:
        self._tick()
        super().append(*arguments, **more)  # type: ignore[arg-type]
        self._tick()

    def remove(self, *arguments: object, **more: object) -> None:
        self._tick()
        super().remove(*arguments, **more)  # type: ignore[arg-type]
        self._tick()

    def _tick(self) -> None:
        left = self.__dict__["left"] = self.__dict__.get("left", 0) - 1
        if left == 0:
            raise Crash


def crashing(root: Path, after: int) -> CrashingSystem:
    system = CrashingSystem(root)
    system.__dict__["left"] = after
    return system


@pytest.mark.parametrize("crash_at", range(1, 14))
def test_a_crash_at_any_point_loses_nothing(tmp_path: Path, crash_at: int) -> None:
    """Setup dies anywhere, is run again to its end, undo dies anywhere, is run again: all is as before."""
    system = furnish(tmp_path)
    before = snapshot(tmp_path)
    wanted = [("/etc/x", b"new\n"), ("/etc/new/y", b"y\n"), ("/etc/x", b"newer\n")]
    with contextlib.suppress(Crash):
        dying = crashing(tmp_path, crash_at)
        for path, content in wanted:
            make(dying, path, content)
    for path, content in wanted[1:]:
        if system.read(path).content != content:
            make(system, path, content)
    assert system.read("/etc/x").content == b"newer\n"

    with contextlib.suppress(Crash):
        undo(crashing(tmp_path, crash_at))
    done = undo(system)

    assert not done.kept
    assert snapshot(tmp_path) == before


contents = st.sampled_from([None, b"", b"a\n", b"b\n", b"c"])
modes = st.sampled_from([0o600, 0o644, 0o755])
steps = st.lists(st.tuples(st.sampled_from(["/etc/x", "/etc/d/y"]), contents, modes), max_size=6)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_any_row_of_changes_is_undone(row: list[tuple[str, bytes | None, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        system = furnish(root)
        before = snapshot(root)
        for path, content, mode in row:
            make(system, path, content, mode)
        done = undo(system)

        assert not done.kept
        assert snapshot(root) == before
