"""Words for a shell, tried in the shells that are there."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.render.shell import join, quote

WORDS = ["=eth0", "", "a b", "it's", "$HOME", "~", "*", "a=b", "\n", "--x=1", "é"]


@pytest.mark.parametrize("shell", ["sh", "bash", "zsh", "fish"])
def test_every_word_comes_out_of_a_shell_as_it_went_in(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    script = join(["printf", r"%s\0", *WORDS])
    options = ["-f"] if shell == "zsh" else []
    out = subprocess.run([shell, *options, "-c", script], capture_output=True, check=True, timeout=30).stdout

    assert out.decode().split("\0")[:-1] == WORDS


def test_what_is_no_word_of_a_shell_stays_bare() -> None:
    assert quote("NCCL_SOCKET_FAMILY=AF_INET") == "NCCL_SOCKET_FAMILY=AF_INET"
    assert quote("=eth0") == "'=eth0'"


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",))))
def test_a_word_is_one_word(word: str) -> None:
    assert shlex.split(quote(word)) == [word]
