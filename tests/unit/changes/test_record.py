"""The journal's lines after crashes of every kind, and undo after any history: nobody's edit is lost."""

from __future__ import annotations

import itertools
import tempfile
from functools import partial
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avahi_gpu.changes import journal
from avahi_gpu.changes.record import (
    BLOCK_BYTES,
    Before,
    CommandRecord,
    FileRecord,
    FolderRecord,
    Record,
    Restore,
    decode_pages,
    digest,
    encode_record,
    half_done,
    is_half_done,
    unwind,
)
from avahi_gpu.host.system import System
from avahi_gpu.model import Change, FileState
from tests.lab.kill_point import run_until

STATE = "var/lib/avahi-gpu"
PATHS = ("/etc/x", "/etc/d/y")

words = st.text(st.characters(codec="utf-8"), max_size=12)
records = st.one_of(
    st.builds(
        FileRecord,
        words,
        st.builds(Before, st.none() | st.binary(max_size=20)),
        words,
        run=words,
        rewritten=st.none() | st.binary(max_size=20),
    ),
    st.builds(FolderRecord, words, run=words),
    st.builds(CommandRecord, words, words, st.lists(words, max_size=3).map(tuple), run=words),
)


@given(st.lists(records, max_size=4), records, st.lists(records, max_size=4), st.data(), st.booleans())
def test_a_torn_line_costs_itself_alone(
    first: list[Record], torn: Record, then: list[Record], data: st.DataObject, gap: bool
) -> None:
    """Also where what follows was appended without a break."""
    line = encode_record(torn)
    cut = data.draw(st.integers(1, len(line) - 2))
    content = b"".join(map(encode_record, first)) + line[:cut] + (b"\n" if gap else b"")
    content += b"".join(map(encode_record, then))

    pages = decode_pages(content)

    assert list(pages.records) == [*first, *then]
    assert not pages.later
    assert len(pages.broken) == 1


@given(st.lists(records, max_size=3), st.integers(1, 40))
def test_a_block_that_never_reached_the_disk_costs_itself_alone(first: list[Record], size: int) -> None:
    pages = decode_pages(b"".join(map(encode_record, first)) + bytes(size))

    assert list(pages.records) == first
    assert pages.foreign == ()


@given(st.binary(max_size=200))
def test_any_bytes_are_taken(content: bytes) -> None:
    pages = decode_pages(content)

    assert len(pages.broken) >= bool(pages.foreign)


@pytest.mark.parametrize(
    ("line", "later"),
    [
        (b'{"kind":"folder","path":"/x","version":2}', True),
        (b'{"kind":"dance","version":1}', True),
        (b"what is this", False),
    ],
)
def test_what_others_wrote_is_kept(line: bytes, later: bool) -> None:
    pages = decode_pages(encode_record(FolderRecord("/etc/d")) + line + b"\n")

    assert pages.records == (FolderRecord("/etc/d"),)
    assert pages.foreign == (line,)
    assert pages.later is later


@given(st.binary(max_size=2000), st.binary(max_size=2000), st.data())
def test_a_mixture_of_old_and_new_blocks_is_half_done_and_put_back(
    old: bytes, new: bytes, data: st.DataObject
) -> None:
    length = max(len(old), len(new))
    texts = [text.ljust(length, b"\n") for text in (old, new, b"")]
    texts[2] = bytes(length)  # a block that never reached the disk
    starts = range(0, length, BLOCK_BYTES)
    current = b"".join(data.draw(st.sampled_from(texts))[at : at + BLOCK_BYTES] for at in starts)

    found = half_done(
        [FileRecord("/etc/x", Before(old), digest(new), rewritten=new)],
        lambda path: FileState(path, current, 0o644, 0, 0),
    )

    assert is_half_done(current, old, new) is (current not in (old, new))
    assert [r.before.content for r in found] == ([] if current in (old, new) else [old])


@given(st.binary(max_size=600), st.binary(max_size=600), st.integers(0, 600))
def test_an_edit_is_not_taken_for_half_done(old: bytes, new: bytes, at: int) -> None:
    edited = old[:at] + b"# an edit of the administrator's" + old[at:]

    assert edited in (old, new) or not is_half_done(edited, old, new)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("make"), st.sampled_from(PATHS), st.none() | st.integers(1, 25)),
        st.tuples(st.just("remove"), st.sampled_from(PATHS), st.none() | st.integers(1, 25)),
        st.tuples(st.just("edit"), st.sampled_from(PATHS), st.none()),
        st.tuples(st.just("undo"), st.just(""), st.none() | st.integers(1, 40)),
    ),
    max_size=7,
)


def apply(system: System, path: str, content: bytes | None) -> int:
    journal.tidy(system)
    change = Change("file", "write", path, content, 0o644, before=system.read(path).content)
    journal.apply([change], system)
    return 0


def undo(system: System) -> int:
    journal.tidy(system)
    journal.undo(journal.plan_undo(system), system)
    return 0


@settings(max_examples=40, deadline=None)
@given(steps)
def test_after_any_history_with_cuts_anywhere_undo_loses_no_edit(
    row: list[tuple[str, str, int | None]],
) -> None:
    """What somebody wrote last is there in the end; where nobody did, what was there in the beginning."""
    numbers = itertools.count()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ("etc", "run", "var/lib"):
            (root / name).mkdir(parents=True)
        (root / "etc/x").write_bytes(b"old\n")
        (root / "etc/x").chmod(0o640)
        system = System(root)
        edits: dict[str, bytes] = {}
        for kind, path, cut in row:
            number = next(numbers)
            if kind == "edit":
                edits[path] = b"edit %d\n" % number
                (root / path[1:]).parent.mkdir(exist_ok=True)
                (root / path[1:]).write_bytes(edits[path])
                continue
            content = b"ours %d\n" % number if kind == "make" else None
            work = partial(undo, system) if kind == "undo" else partial(apply, system, path, content)
            if cut is None:
                work()
            else:
                assert run_until(work, cut).code in (None, 0)
        undo(system)

        for path, original in zip(PATHS, (b"old\n", None), strict=True):
            assert system.read(path).content == edits.get(path, original), path
        if not edits:
            assert (root / "etc/x").stat().st_mode & 0o777 == 0o640
            assert sorted(str(p.relative_to(root)) for p in root.rglob("*")) == [
                *("etc", "etc/x", "run", "var", "var/lib")
            ]


def test_daemons_are_restarted_once_and_after_every_file_is_back() -> None:
    restart = ("systemctl", "restart", "avahi-daemon.service")
    unmask = ("systemctl", "unmask", "avahi-daemon.service")
    mask = ("systemctl", "mask", "avahi-daemon.service")

    def told(run: str, argv: tuple[str, ...], undo: tuple[str, ...]) -> list[Record]:
        record = CommandRecord("daemon", "tell it", argv, run=run, undo=undo)
        return [record, msgspec.structs.replace(record, done=True)]

    records: list[Record] = [
        *told("one", unmask, mask),
        FileRecord("/etc/a", Before(b"old"), digest(b"new"), run="one"),
        *told("one", restart, restart),
        FileRecord("/etc/b", Before(b"old"), digest(b"new"), run="two"),
        *told("two", restart, restart),
    ]

    steps = unwind(records, lambda path: FileState(path, b"new", mode=0o644)).steps

    assert [s.path if isinstance(s, Restore) else s.record.undo for s in steps] == [
        "/etc/b",
        "/etc/a",
        restart,
        mask,
    ]
