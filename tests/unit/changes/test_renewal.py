"""A file that is renewed at every boot: undo gives back what was there first, and the journal stays small."""

from __future__ import annotations

from pathlib import Path

import pytest

from avahi_gpu.changes import journal, renewal
from avahi_gpu.changes.record import Before, FileRecord, digest
from avahi_gpu.errors import ChangeFailed
from avahi_gpu.host.system import System
from avahi_gpu.model import Change

PATH = "/etc/torch.service"
OTHER = "/etc/other"


@pytest.fixture
def system(tmp_path: Path) -> System:
    for folder in ("etc", "run", "var/lib"):
        (tmp_path / folder).mkdir(parents=True)
    return System(tmp_path)


def write(system: System, path: str, content: bytes, run: str) -> None:
    before = system.read(path).content
    journal.apply([Change("file", "write", path, content, before=before)], system, run=run)


def boot(system: System, content: bytes) -> None:
    renewal.renew(system, system.read(PATH), content)


def undo(system: System, *, last: bool = False) -> journal.Undone:
    return journal.undo(journal.plan_undo(system, last=last), system)


@pytest.mark.parametrize("first", [None, b"by hand\n"])
def test_many_boots_leave_one_record_and_undo_gives_back_what_was_first(
    system: System, first: bytes | None
) -> None:
    if first is not None:
        (system.root / "etc/torch.service").write_bytes(first)
    write(system, PATH, b"set up", "setup 1")
    write(system, OTHER, b"other", "setup 1")
    size = len(journal.read_journal(system)[0])

    for number in range(20):
        boot(system, f"boot {number}".encode())

    records = journal.read_journal(system)[0]
    assert len(records) == size
    done = undo(system)
    assert done.kept == ()
    assert system.read(PATH).content == first
    assert not system.exists("/var/lib/avahi-gpu")


def test_a_later_run_is_still_undone_alone(system: System) -> None:
    write(system, PATH, b"one", "setup 1")
    write(system, PATH, b"two", "setup 2")
    boot(system, b"three")

    undo(system, last=True)

    assert system.read(PATH).content == b"one"
    undo(system)
    assert not system.exists(PATH)


def test_an_edit_by_hand_is_not_ours(system: System) -> None:
    write(system, PATH, b"one", "setup 1")
    (system.root / "etc/torch.service").write_bytes(b"mine")
    state = system.read(PATH)

    assert not renewal.is_ours(state, renewal.find_records(system, state))
    with pytest.raises(ChangeFailed):
        renewal.renew(system, state, b"two")
    assert system.read(PATH).content == b"mine"


def test_killed_before_the_write_it_is_ours_still_and_undo_works(system: System) -> None:
    write(system, PATH, b"one", "setup 1")
    journal.note(FileRecord(PATH, Before(b"one", 0o644), digest(b"two"), run="setup 1"), system)

    state = system.read(PATH)
    assert renewal.is_ours(state, renewal.find_records(system, state))
    boot(system, b"three")
    assert len(journal.read_journal(system)[0]) == 1
    undo(system)
    assert not system.exists(PATH)


def test_killed_after_the_write_undo_works(system: System) -> None:
    write(system, PATH, b"one", "setup 1")
    journal.note(FileRecord(PATH, Before(b"one", 0o644), digest(b"two"), run="setup 1"), system)
    system.write(PATH, b"two")

    undo(system)

    assert not system.exists(PATH)


def test_what_cannot_be_read_in_the_journal_stays_in_it(system: System) -> None:
    write(system, PATH, b"one", "setup 1")
    file = system.root / "var/lib/avahi-gpu/journal"
    file.write_bytes(file.read_bytes() + b'{"kind": "of a later version"}\n')

    boot(system, b"two")

    assert b"of a later version" in file.read_bytes()
    assert system.read(PATH).content == b"two"
