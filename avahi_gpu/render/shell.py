"""Words for a shell: what sh, bash, zsh and fish all take for the text itself."""

from __future__ import annotations

import re
from collections.abc import Iterable

_BARE = re.compile(r"[A-Za-z0-9_.:/,@%+-][A-Za-z0-9_.:/,@%+=-]*")  # zsh looks up a leading =, as in =eth0


def quote(word: str) -> str:
    """Return the word as it has to be typed. zsh takes a bare ``=eth0`` for a program, shlex for a word."""
    return word if _BARE.fullmatch(word) else "'" + word.replace("'", "'\\''") + "'"


def join(words: Iterable[str]) -> str:
    """Return the words as one command line."""
    return " ".join(map(quote, words))
