"""What commands change is taken back too, in order with the files, and once. Real programs, real files."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from avahi_gpu.changes import journal
from avahi_gpu.changes.record import CommandRecord, decode_records, digest, encode_record, unwind
from avahi_gpu.errors import ChangeFailed
from avahi_gpu.host.system import System
from avahi_gpu.model import HANDLE, Change, FileState

STATE = "var/lib/avahi-gpu"


@pytest.fixture
def system(tmp_path: Path) -> System:
    for folder in ("etc", "run", "var/lib"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "etc/x").write_bytes(b"old\n")
    (tmp_path / "rules").touch()
    return System(tmp_path)


def shell(script: str) -> tuple[str, ...]:
    return ("sh", "-c", script)


def rule(system: System, name: str, *, verified: bool = False, until_boot: bool = False) -> Change:
    """Return what adds a line to a file as a command adds a rule, with what takes that back."""
    file = system.root / "rules"
    return Change(
        "command",
        f"add {name}",
        argv=shell(f"echo {name} >> {file}"),
        undo=shell(f"grep -q {name} {file} || exit 3; sed -i /{name}/d {file}; echo -{name} >> {file}.log"),
        verify=("grep", "-q", name, str(file)) if verified else (),
        until_boot=until_boot,
    )


def rules(system: System) -> list[str]:
    return (system.root / "rules").read_text().split()


def log(system: System) -> list[str]:
    file = system.root / "rules.log"
    return file.read_text().split() if file.exists() else []


def write(system: System, content: bytes, path: str = "/etc/x") -> Change:
    return Change("file", f"write {path}", path, content, before=system.read(path).content)


def undo(system: System, *, last: bool = False) -> journal.Undone:
    return journal.undo(journal.plan_undo(system, last=last), system)


def test_commands_and_files_go_back_in_order(system: System, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    for number in (1, 2):
        look = Change(
            "command",
            f"look {number}",
            argv=("true",),
            undo=shell(f"cat {tmp_path}/etc/x >> {seen}"),
        )
        journal.apply([look], system)
        journal.apply([write(system, f"{number}\n".encode())], system)
    journal.apply([rule(system, "a"), rule(system, "b")], system)

    told: list[str] = []
    journal.undo(journal.plan_undo(system), system, told.append)

    assert (rules(system), log(system)) == ([], ["-b", "-a"])
    assert [word.partition(": ")[2] or word for word in told] == [
        "add b",
        "add a",
        "put /etc/x back",  # in one go to where it was at first
        "look 2",
        "look 1",
    ]
    assert seen.read_text() == "old\nold\n"
    assert not (tmp_path / STATE).exists()


def test_a_command_that_fails_is_told_and_leaves_nothing_to_undo(system: System, tmp_path: Path) -> None:
    bad = Change("command", "open the port", argv=shell("echo no such table >&2; exit 1"), undo=("false",))

    with pytest.raises(ChangeFailed, match=r"could not open the port: .*no such table"):
        journal.apply([bad], system)
    done = undo(system)

    assert not done.failed
    assert not (tmp_path / STATE).exists()


def test_what_changed_nothing_fails_and_is_taken_back(system: System) -> None:
    change = rule(system, "a")
    blunt = Change("command", "add a", argv=change.argv, undo=change.undo, verify=("false",))

    with pytest.raises(ChangeFailed, match="changed nothing"):
        journal.apply([blunt], system)

    assert (rules(system), log(system)) == ([], ["-a"])
    assert not undo(system).restored


def test_what_is_gone_already_is_not_taken_back(system: System, tmp_path: Path) -> None:
    journal.apply([rule(system, "a", verified=True)], system)
    (tmp_path / "rules").write_text("")

    done = undo(system)

    assert [record.title for record in done.gone] == ["add a"]
    assert (done.restored, done.failed, log(system)) == ((), (), [])
    assert not (tmp_path / STATE).exists()


def test_what_ended_with_the_last_boot_is_not_taken_back(system: System, tmp_path: Path) -> None:
    boot = tmp_path / "proc/sys/kernel/random/boot_id"
    boot.parent.mkdir(parents=True)
    boot.write_text("one\n")
    journal.apply([rule(system, "a", until_boot=True), rule(system, "b")], system)
    boot.write_text("two\n")

    done = undo(system)

    assert [record.title for record in done.gone] == ["add a"]
    assert (rules(system), log(system)) == (["a"], ["-b"])


def test_what_cannot_be_taken_back_is_told_and_may_be_tried_again(system: System, tmp_path: Path) -> None:
    journal.apply([rule(system, "a"), write(system, b"new\n")], system)
    (tmp_path / "rules").write_text("")

    done = undo(system)

    assert [fault.message for fault in done.failed] == ["could not take back: add a: sh ended with 3"]
    assert "do it by hand: sh -c" in done.failed[0].hint
    assert (tmp_path / "etc/x").read_bytes() == b"old\n"
    (tmp_path / "rules").write_text("a\n")
    assert not undo(system).failed
    assert (rules(system), log(system)) == ([], ["-a"])
    assert not (tmp_path / STATE).exists()


def test_a_command_without_undo_stays_and_is_told(system: System) -> None:
    journal.apply([Change("command", "look around", argv=("true",))], system)

    assert [record.title for record in journal.plan_undo(system).stays] == ["look around"]
    assert not undo(system).restored


def test_a_rule_of_which_nobody_knows_the_number_is_left_alone(system: System) -> None:
    add = Change("command", "add a rule", argv=("true",), undo=("false", HANDLE))

    journal.apply([add], system)
    undone = undo(system)

    assert ([r.title for r in undone.gone], undone.failed) == (["add a rule"], ())


def rewriting(system: System, name: str) -> Change:
    """Return what a firewall's tool does: it adds a line, sorts the whole file, and keeps the old one."""
    file = f"{system.root}/etc/x"
    return Change(
        "command",
        f"add {name}",
        argv=shell(f"cp {file} {file}.old; echo {name} >> {file}; sort -o {file} {file}"),
        undo=shell(f"cp {file} {file}.old; sed -i /{name}/d {file}"),
        rewrites=("/etc/x", "/etc/x.old"),
    )


def test_files_that_a_program_rewrites_come_back_to_the_byte(system: System) -> None:
    file = system.root / "etc/x"
    file.write_bytes(b"z\nb\n")
    file.chmod(0o640)

    journal.apply([rewriting(system, "k"), rewriting(system, "a")], system)
    assert file.read_bytes() == b"a\nb\nk\nz\n"
    undo(system)

    assert file.read_bytes() == b"z\nb\n" and file.stat().st_mode & 0o777 == 0o640
    assert not (system.root / "etc/x.old").exists()


def test_what_others_wrote_into_them_since_stays(system: System) -> None:
    file = system.root / "etc/x"

    journal.apply([rewriting(system, "k")], system)
    file.write_bytes(file.read_bytes() + b"mine\n")
    undo(system)

    assert file.read_bytes() == b"old\nmine\n"


def test_the_same_command_twice_is_taken_back_twice(system: System) -> None:
    two = Change("command", "one more", argv=shell(f"echo x >> {system.root}/rules"), undo=("true",))
    journal.apply([two, two], system)

    assert len(undo(system).restored) == 2


class Crash(BaseException):
    """The power went."""


class DyingSystem(System):
    """Loses power before or after the n-th step."""

    def append(self, *arguments: object, **more: object) -> None:
        self._tick()
        super().append(*arguments, **more)  # type: ignore[arg-type]
        self._tick()

    def run(self, *arguments: object, **more: object) -> object:  # type: ignore[override]
        self._tick()
        done = super().run(*arguments, **more)  # type: ignore[arg-type]
        self._tick()
        return done

    def _tick(self) -> None:
        left = self.__dict__["left"] = self.__dict__["left"] - 1
        if left == 0:
            raise Crash


def dying(system: System, after: int) -> System:
    weak = DyingSystem(system.root)
    weak.__dict__["left"] = after
    return weak


@pytest.mark.parametrize("moment", range(1, 16))
def test_a_crash_at_any_moment_leaves_nothing(system: System, tmp_path: Path, moment: int) -> None:
    """Made and taken back, dying anywhere in either: what is undone then is as before, and nothing fails."""
    with contextlib.suppress(Crash):
        journal.apply([rule(system, "a"), rule(system, "b")], dying(system, moment))

    undo(system)
    assert rules(system) == []

    journal.apply([rule(system, "a", verified=True), rule(system, "b", verified=True)], system)
    weak = dying(system, moment)
    with contextlib.suppress(Crash):
        journal.undo(journal.plan_undo(system), weak)
    done = undo(system)

    assert (rules(system), done.failed) == ([], ())
    assert not (tmp_path / STATE).exists()


def test_the_last_run_alone_is_taken_back(system: System, tmp_path: Path) -> None:
    journal.apply([write(system, b"one\n"), write(system, b"y\n", "/etc/y")], system, run="setup 1")
    journal.apply([write(system, b"two\n"), rule(system, "a")], system, run="doctor --fix 2")

    done = undo(system, last=True)

    assert [step.change.title for step in done.restored] == ["take back: add a", "put /etc/x back"]
    assert ((tmp_path / "etc/x").read_bytes(), rules(system)) == (b"one\n", [])
    assert (tmp_path / "etc/y").exists()

    undo(system, last=True)

    assert (tmp_path / "etc/x").read_bytes() == b"old\n"
    assert not (tmp_path / "etc/y").exists()
    assert not (tmp_path / STATE).exists()


def test_all_runs_are_taken_back_at_once(system: System, tmp_path: Path) -> None:
    journal.apply([write(system, b"one\n")], system, run="setup 1")
    journal.apply([rule(system, "a")], system, run="doctor --fix 2")
    journal.apply([write(system, b"three\n")], system, run="doctor --fix 3")

    undo(system)

    assert ((tmp_path / "etc/x").read_bytes(), rules(system)) == (b"old\n", [])
    assert not (tmp_path / STATE).exists()


def test_an_edit_since_the_last_run_is_kept(system: System, tmp_path: Path) -> None:
    journal.apply([write(system, b"one\n")], system, run="setup 1")
    journal.apply([write(system, b"two\n")], system, run="doctor --fix 2")
    (tmp_path / "etc/x").write_bytes(b"mine\n")

    assert undo(system, last=True).kept == ("/etc/x",)
    assert (tmp_path / "etc/x").read_bytes() == b"mine\n"


def test_a_journal_from_before_runs_had_names_is_one_run() -> None:
    line = b'{"kind":"file","path":"/etc/x","before":{"content":"b2xk"},"after":"%s","version":1}\n'
    records, broken = decode_records(line % digest(b"new").encode())

    unwinding = unwind(records, lambda path: FileState(path, b"new", 0o644), journal.last_run(records))

    assert broken == []
    assert [r.before.content for r in unwinding.restores] == [b"old"]


def test_a_record_says_of_which_run_it_is() -> None:
    one = CommandRecord("command", "t", ("a",), run="setup 1", undo=("b",), done=True)

    assert decode_records(encode_record(one))[0] == [one]


def test_what_nobody_can_tell_is_kept_for_another_undo(system: System) -> None:
    """firewall-cmd ends with 252 while firewalld does not run."""
    running = system.root / "running"
    running.touch()
    asked = shell(f"test -e {running} || exit 252")
    open_up = Change("command", "open", argv=("true",), undo=(*asked, "undo"), verify=asked)
    journal.apply([open_up], system)

    running.unlink()
    first = undo(system)
    running.touch()
    second = undo(system)

    assert (len(first.failed), first.gone, first.restored) == (1, (), ())
    assert (second.failed, len(second.restored)) == ((), 1)


def test_a_daemon_that_was_removed_since_is_neither_restarted_nor_disabled(system: System) -> None:
    """Undo ended with exit code 1 after "apt-get remove avahi-daemon", however often it was run."""
    unit = "avahi-daemon.service"
    system.make_folder("/var/lib/avahi-gpu", 0o700)
    for verb, back in (("restart", "restart"), ("enable", "disable")):
        record = CommandRecord(
            "daemon", verb, ("systemctl", verb, unit), run="a", undo=("systemctl", back, unit), done=True
        )
        system.append(journal.JOURNAL, encode_record(record))

    done = undo(system)

    assert [r.title for r in done.gone] == ["enable", "restart"]
    assert done.failed == ()
    assert not (system.root / STATE).exists()
