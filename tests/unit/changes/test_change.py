"""Changes in words and as diffs."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avahi_gpu.changes.change import describe, same, unified_diff
from avahi_gpu.model import Change


def change(before: bytes | None, after: bytes | None) -> Change:
    return Change("file", "write it", "/etc/x", after, before=before)


def test_a_diff_names_the_file_and_shows_the_lines() -> None:
    assert unified_diff(change(b"a\nb\n", b"a\nc\n")) == (
        "--- /etc/x\n+++ /etc/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
    )


def test_a_new_file_comes_from_nowhere_and_a_removed_one_goes_there() -> None:
    assert unified_diff(change(None, b"a\n")).startswith("--- /dev/null\n+++ /etc/x\n@@ -0,0 +1 @@\n+a\n")
    assert unified_diff(change(b"a\n", None)).startswith("--- /etc/x\n+++ /dev/null\n")
    assert unified_diff(change(None, b"")) == "--- /dev/null\n+++ /etc/x\n"


def test_a_missing_newline_is_told() -> None:
    assert unified_diff(change(b"a", b"a\n")) == (
        "--- /etc/x\n+++ /etc/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"
    )


def test_bytes_that_are_no_text_do_no_harm() -> None:
    assert "+\\xff\n" in unified_diff(change(b"", b"\xff\n"))


def test_json_has_the_path_or_the_command() -> None:
    assert describe(change(b"a\n", b"b\n"))["path"] == "/etc/x"
    assert set(describe(change(b"a\n", b"b\n"))) == {"kind", "path", "diff"}
    start = Change("daemon", "start it", argv=("avahi-daemon", "--daemonize"))
    assert describe(start) == {"kind": "daemon", "argv": ["avahi-daemon", "--daemonize"], "diff": ""}


def test_titles_do_not_matter_for_sameness() -> None:
    assert same(Change("daemon", "a", argv=("x",)), Change("daemon", "b", argv=("x",)))
    assert not same(change(b"", b"x"), change(b"", b"y"))


lines = st.text(alphabet="ab \t\r\x0c\u2028", max_size=12)


@pytest.mark.skipif(shutil.which("patch") is None, reason="patch(1) is not installed")
@settings(max_examples=60, deadline=None)
@given(st.lists(lines, max_size=6), st.lists(lines, max_size=6), st.booleans(), st.booleans())
def test_patch_makes_the_new_file_of_the_old_one(
    old: list[str], new: list[str], old_ends: bool, new_ends: bool
) -> None:
    """The diff shown is the change made: patch(1) applied to the old file gives the new one."""
    before = "\n".join(old) + ("\n" if old_ends else "")
    after = "\n".join(new) + ("\n" if new_ends else "")
    diff = unified_diff(Change("file", "", "x", after.encode(), before=before.encode()))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "x")
        file.write_bytes(before.encode())
        if diff:
            subprocess.run(
                ["patch", "--binary", "--silent", "x"],
                cwd=folder,
                input=diff.encode(),
                check=True,
                timeout=10,
            )
        assert (file.read_bytes() if file.exists() else b"") == after.encode()
