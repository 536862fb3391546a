"""Edits of /etc/hosts that keep every byte that is not meant. Names of localhost are never touched."""

from __future__ import annotations

import re
from collections.abc import Collection

from avahi_gpu.files.etc_hosts import is_loopback, read_line, words_of

# what programs take for granted on every machine (RFC 6761 section 6.3, and what distributions write)
_LOCALHOST = re.compile(
    r"(ip6-)?(localhost|loopback)([46])?(\.localdomain[46]?)?\.?|localhost\..*", re.IGNORECASE
)


def is_localhost(name: str) -> bool:
    """Whether the name is one that means this machine everywhere."""
    return _LOCALHOST.fullmatch(name) is not None


def remove_names(content: bytes, names: Collection[str], lines: Collection[int]) -> bytes:
    """Return the file without these names on these lines (from 1); a line that loses its last name goes.

    Names of localhost stay. Capitals do not count. A line that glibc skips is not touched.
    """
    unwanted = {name.lower() for name in names if not is_localhost(name)}
    kept = []
    for number, line in enumerate(_decode(content).split("\n"), 1):
        entry = read_line(number, line) if number in lines else None
        if entry is None or not any(name.lower() in unwanted for name in entry.names):
            kept.append(line)
        elif any(name.lower() not in unwanted for name in entry.names):
            kept.append(_cut(line, unwanted))
    return _encode("\n".join(kept))


def add_entry(content: bytes, address: str, names: Collection[str]) -> bytes:
    """Return the file with a line for ``address`` behind the last one of IPv4 loopback, else at its top."""
    text = _decode(content)
    lines = text.split("\n")
    end = "\r" if "\r\n" in text else ""
    new = f"{address}\t{' '.join(names)}{end}"
    place = 0
    for number, line in enumerate(lines, 1):
        entry = read_line(number, line)
        if entry is not None and is_loopback(entry.address) and ":" not in entry.address:
            place = number
    if place == len(lines):  # behind a last line without an end
        return _encode("\n".join([*lines[:-1], lines[-1] + end, new]))
    return _encode("\n".join([*lines[:place], new, *lines[place:]]))


def _cut(line: str, unwanted: Collection[str]) -> str:
    """Take names, each with the blanks before it, out of a line; its comment stays."""
    words = words_of(line)
    body, place = "", 0
    for number, word in enumerate(words):
        start = line.index(word, place)
        if number == 0 or word.lower() not in unwanted:
            body += line[place:start] + word
        place = start + len(word)
    return body + line[place:]


def _decode(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
