"""The door to files and processes, on real files and real processes."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from avahi_gpu.errors import ChangeFailed
from avahi_gpu.host.system import Completed, System


@pytest.fixture
def system(tmp_path: Path) -> System:
    (tmp_path / "etc").mkdir()
    return System(tmp_path)


def in_mount_namespace(code: str) -> Completed:
    """Run ``code`` in a process that may mount without anybody seeing it."""
    ahead = """
import ctypes, os
from pathlib import Path
from avahi_gpu.host.system import System
libc = ctypes.CDLL(None, use_errno=True)
def mount(source, target, kind, flags):
    encoded = [None if x is None else x.encode() for x in (source, target, kind)]
    assert libc.mount(*encoded, flags, None) == 0, os.strerror(ctypes.get_errno())
assert libc.unshare(0x20000) == 0
mount("none", "/", None, 0x44000)
"""
    return System().run([sys.executable, "-c", ahead + code], 20, {"PYTHONPATH": str(Path.cwd())})


def test_write_then_read_gives_the_bytes_and_the_mode(system: System, tmp_path: Path) -> None:
    system.write("/etc/new", b"\x00\xffline\r\n", 0o640)

    state = system.read("/etc/new")

    assert (state.content, state.mode, state.error) == (b"\x00\xffline\r\n", 0o640, "")
    assert os.listdir(tmp_path / "etc") == ["new"]


def test_another_folder_is_read_in_the_place_of_our_configuration(system: System, tmp_path: Path) -> None:
    (tmp_path / "etc" / "avahi-gpu").mkdir()
    (tmp_path / "etc" / "avahi-gpu" / "config.toml").write_bytes(b"old")
    (tmp_path / "wanted" / "templates").mkdir(parents=True)
    (tmp_path / "wanted" / "templates" / "torch.service.j2").write_bytes(b"new")
    judged = replace(system, stand_in=Path("/wanted"))

    read = judged.read("/etc/avahi-gpu/templates/torch.service.j2")

    assert (read.path, read.content) == ("/etc/avahi-gpu/templates/torch.service.j2", b"new")
    assert judged.read("/etc/avahi-gpu/config.toml").content is None
    assert judged.is_absent("/etc/avahi-gpu/config.toml")
    assert not judged.is_absent("/etc/avahi-gpu/templates/torch.service.j2")
    assert judged.until(0.0).read("/etc/avahi-gpu/config.toml").content is None
    assert system.read("/etc/avahi-gpu/config.toml").content == b"old"


def test_a_new_file_is_readable_by_all_whatever_the_umask(system: System) -> None:
    """avahi-daemon reads its services as user avahi."""
    old = os.umask(0o077)
    try:
        system.write("/etc/new", b"x")
    finally:
        os.umask(old)

    assert system.read("/etc/new").mode == 0o644


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_replaced_file_keeps_its_mode_and_owner(system: System, tmp_path: Path) -> None:
    (tmp_path / "etc/kept").write_bytes(b"old")
    os.chown(tmp_path / "etc/kept", 12, 34)
    (tmp_path / "etc/kept").chmod(0o604)

    system.write("/etc/kept", b"new")

    state = system.read("/etc/kept")
    assert (state.content, state.mode, state.uid, state.gid) == (b"new", 0o604, 12, 34)


def test_every_write_has_a_later_whole_second(system: System, tmp_path: Path) -> None:
    """Else avahi-daemon would not load the second of two replacements within one second."""
    seconds = []
    for number in range(4):
        system.write("/etc/x.service", b"%d" % number)
        seconds.append(int((tmp_path / "etc/x.service").stat().st_mtime))

    assert sorted(set(seconds)) == seconds


def test_a_reader_never_sees_half_a_file(system: System) -> None:
    system.write("/etc/x", b"a" * 100_000)
    seen: set[bytes | None] = set()
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            content = system.read("/etc/x").content
            seen.add(content[:1] + b"%d" % len(set(content)) if content else content)

    reader = threading.Thread(target=look)
    reader.start()
    for letter in b"bcdefgh":
        system.write("/etc/x", bytes([letter]) * 100_000)
    stop.set()
    reader.join()

    assert None not in seen
    assert all(s is not None and s.endswith(b"1") for s in seen)


def test_a_missing_file_says_so(system: System) -> None:
    state = system.read("/etc/none")

    assert (state.content, state.exists, state.error) == (None, False, "No such file or directory")


def test_a_fifo_does_not_hang_a_read(system: System, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "etc/fifo")

    state = system.read("/etc/fifo")

    assert (state.content, state.error, state.exists) == (None, "not a regular file", True)


def test_a_folder_in_a_files_place_is_told(system: System, tmp_path: Path) -> None:
    (tmp_path / "etc/folder").mkdir()

    assert system.read("/etc/folder").error
    with pytest.raises(ChangeFailed, match="/etc/folder is not a regular file"):
        system.write("/etc/folder", b"x")


def test_a_link_is_told_and_its_target_written(system: System, tmp_path: Path) -> None:
    (tmp_path / "etc/real").write_bytes(b"old")
    (tmp_path / "etc/link").symlink_to("/etc/real")

    system.write("/etc/link", b"new")

    assert system.read("/etc/link").link_target == "/etc/real"
    assert (tmp_path / "etc/real").read_bytes() == b"new"
    assert (tmp_path / "etc/link").is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may lock a file")
def test_a_locked_file_is_told_from_one_that_is_read_only(system: System, tmp_path: Path) -> None:
    file = tmp_path / "etc/locked"
    file.write_bytes(b"x")
    if subprocess.run(["chattr", "+i", str(file)], capture_output=True, check=False).returncode:
        pytest.skip("this file system knows no attributes")
    try:
        state = system.read("/etc/locked")
    finally:
        subprocess.run(["chattr", "-i", str(file)], check=True)

    assert (state.writable, state.immutable, state.content) == (False, True, b"x")
    assert system.read("/etc/locked").immutable is False


def test_a_link_never_leads_out_of_the_root(system: System, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.write_bytes(b"secret")
    (tmp_path / "etc/link").symlink_to("../../../../../" + str(outside))

    assert system.read("/etc/link").content is None
    assert not system.exists(str(outside))


def test_a_circle_of_links_is_an_error_not_a_hang(system: System, tmp_path: Path) -> None:
    (tmp_path / "etc/a").symlink_to("b")
    (tmp_path / "etc/b").symlink_to("a")

    assert "symbolic links" in system.read("/etc/a").error


def test_a_file_of_no_sane_size_is_refused(system: System, tmp_path: Path) -> None:
    with (tmp_path / "etc/big").open("wb") as stream:
        stream.truncate(1 << 30)

    assert "larger than" in system.read("/etc/big").error
    (tmp_path / "etc/small").write_bytes(b"x" * 100)
    assert system.read("/etc/small", 100).content == b"x" * 100
    assert system.read("/etc/small", 99).error == "larger than 99 bytes"


def test_folders_made_are_told_and_go_away_empty(system: System) -> None:
    assert system.make_folder("/etc/a/b") == ("/etc/a", "/etc/a/b")
    assert system.make_folder("/etc/a/b") == ()
    assert not system.remove_folder("/etc/a")
    assert system.remove_folder("/etc/a/b")
    assert system.remove_folder("/etc/a")
    system.write("/etc/a", b"")
    assert system.remove_folder("/etc/a"), "a file is no folder that stays"
    assert system.exists("/etc/a")


def test_a_failed_write_is_a_sentence_and_leaves_nothing(system: System) -> None:
    with pytest.raises(ChangeFailed, match="cannot write /etc/none/x: No such file or directory"):
        system.write("/etc/none/x", b"x")

    assert system.list_folder("/etc") == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting is root's")
def test_a_bind_mounted_file_is_rewritten_in_place(system: System, tmp_path: Path) -> None:
    """Containers mount single files such as /etc/hosts: a rename over one fails with EBUSY."""
    (tmp_path / "source").write_bytes(b"a much longer old text")
    (tmp_path / "etc/mounted").write_bytes(b"")

    done = in_mount_namespace(
        f"""
mount({str(tmp_path / "source")!r}, {str(tmp_path / "etc/mounted")!r}, None, 0x1000)
System(Path({str(tmp_path)!r})).write("/etc/mounted", b"new")
"""
    )

    assert done.ok, done.stderr
    assert (tmp_path / "source").read_bytes() == b"new"
    assert sorted(os.listdir(tmp_path / "etc")) == ["mounted"]


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting is root's")
def test_a_file_on_a_read_only_file_system_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()

    done = in_mount_namespace(
        f"""
mount("none", {str(tmp_path / "etc")!r}, "tmpfs", 0)
System(Path({str(tmp_path)!r})).write("/etc/x", b"new")
mount("none", {str(tmp_path / "etc")!r}, "tmpfs", 0x21)
for path in ("/etc/x", "/etc/missing", "/other"):
    print(System(Path({str(tmp_path)!r})).read(path).writable)
System(Path({str(tmp_path)!r})).write("/etc/x", b"newer")
"""
    )

    assert done.stdout.split() == ["False", "False", "True"], done.stderr
    assert "cannot write /etc/x: Read-only file system" in done.reason


def test_run_gives_output_code_and_time() -> None:
    done = System().run(["sh", "-c", "echo out; echo err >&2; exit 3"], 5)

    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert not done.ok
    assert done.reason == "err"
    assert done.elapsed_s < 5


def test_run_speaks_plain_english_and_has_no_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGUAGE", "de")
    monkeypatch.setenv("LC_MESSAGES", "de_DE.UTF-8")

    done = System().run(["sh", "-c", "cat; env"], 5, {"MINE": "1"})

    lines = done.stdout.splitlines()
    assert "LC_ALL=C" in lines
    assert "MINE=1" in lines
    assert not [line for line in lines if line.startswith(("LANGUAGE", "LC_MESSAGES"))]


def test_run_passes_input() -> None:
    assert System().run(["cat"], 5, input=b"words").stdout == "words"


def test_run_ends_the_whole_group_at_the_deadline(tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! > {tmp_path}/child; trap '' TERM; sleep 60"
    started = time.monotonic()

    done = System().run(["sh", "-c", script], 0.5)

    assert done.returncode is None
    assert time.monotonic() - started < 10
    assert "did not end within" in done.reason
    with pytest.raises(ProcessLookupError):
        for _ in range(50):
            os.kill(int((tmp_path / "child").read_text()), 0)
            time.sleep(0.02)


def test_run_is_not_held_up_by_a_child_that_keeps_the_output_open(tmp_path: Path) -> None:
    done = System().run(["sh", "-c", f"sleep 30 & echo $! > {tmp_path}/child; echo done"], 20)

    os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert done.elapsed_s < 10


def test_output_without_end_is_cut() -> None:
    done = System().run(["sh", "-c", "head -c 5000000 /dev/zero"], 20)

    assert (done.returncode, len(done.stdout)) == (0, 1 << 20)


def test_no_such_program_is_127() -> None:
    done = System().run(["avahi-gpu-no-such-program"], 5)

    assert (done.returncode, done.reason) == (127, "avahi-gpu-no-such-program: not found")


def held_open(pid: int) -> Iterator[str]:
    """Return what the process holds open; it may close something while we look."""
    for number in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            yield os.readlink(f"/proc/{pid}/fd/{number}")


def test_a_daemon_stays_and_holds_nothing_of_ours(tmp_path: Path) -> None:
    done = System().start_daemon(["sh", "-c", f"sleep 30 & echo $! > {tmp_path}/pid; echo started"])

    pid = int((tmp_path / "pid").read_text())
    try:
        assert (done.returncode, done.stdout) == (0, "started\n")
        assert done.elapsed_s < 10
        assert not [target for target in held_open(pid) if target.startswith("pipe")]
        assert os.getsid(pid) != os.getsid(0)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_programs_of_administrators_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")

    assert System().find_program("sh") in ("/usr/bin/sh", "/bin/sh")
    assert System().find_program("ldconfig") in ("/usr/sbin/ldconfig", "/sbin/ldconfig")
    assert System().find_program("avahi-gpu-no-such-program") is None


def test_extended_attributes_survive_a_replacement(system: System, tmp_path: Path) -> None:
    """Security labels and access lists hang on them."""
    path = tmp_path / "etc/labelled"
    path.write_bytes(b"old")
    try:
        os.setxattr(path, "user.label", b"kept")
    except OSError:
        pytest.skip("this file system has no extended attributes")

    system.write("/etc/labelled", b"new")

    assert os.getxattr(path, "user.label") == b"kept"


def test_an_immutable_file_is_not_writable(system: System, tmp_path: Path) -> None:
    path = tmp_path / "etc/immutable"
    path.write_bytes(b"old")
    if os.geteuid() != 0 or not System().run(["chattr", "+i", str(path)], 5).ok:
        pytest.skip("chattr does not work here")
    try:
        assert not system.read("/etc/immutable").writable
        with pytest.raises(ChangeFailed, match="cannot write /etc/immutable"):
            system.write("/etc/immutable", b"new")
        assert os.listdir(tmp_path / "etc") == ["immutable"]
    finally:
        System().run(["chattr", "-i", str(path)], 5)


def test_a_lock_file_and_a_journal_line_are_private(system: System, tmp_path: Path) -> None:
    os.close(system.lock_handle("/etc/lock"))
    system.append("/etc/lines", b"1\n")
    system.append("/etc/lines", b"2\n")

    assert (tmp_path / "etc/lines").read_bytes() == b"1\n2\n"
    assert stat.S_IMODE((tmp_path / "etc/lines").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "etc/lock").stat().st_mode) == 0o600


def test_what_a_crash_left_is_no_hindrance_and_can_be_swept(system: System, tmp_path: Path) -> None:
    left = tmp_path / "etc/.x.avahi-gpu-new"
    left.write_bytes(b"half")
    system.write("/etc/x", b"whole")
    assert os.listdir(tmp_path / "etc") == ["x"]
    left.write_bytes(b"half")

    system.sweep("/etc/x")

    assert os.listdir(tmp_path / "etc") == ["x"]
