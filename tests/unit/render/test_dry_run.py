"""A dry run is a script that a shell understands, whatever the words hold."""

from __future__ import annotations

import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st

from avahi_gpu.render.dry_run import describe_dry_run

words = st.lists(st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"])), max_size=4)


@settings(max_examples=25, deadline=None)
@given(words, words)
def test_the_shell_reads_back_every_word(notes: list[str], arguments: list[str]) -> None:
    script = describe_dry_run(notes, {"AG_X": "a b'c"}, ["printf", "%s\\0", "$AG_X", *arguments])
    done = subprocess.run(["sh", "-c", script + 'printf %s "$AG_X"'], capture_output=True, check=True)
    assert done.stdout == "".join(f"{w}\0" for w in ["$AG_X", *arguments]).encode() + b"a b'c"
