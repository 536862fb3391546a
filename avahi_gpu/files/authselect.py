"""What authselect(8) says: the profile that is selected, and the files that it would write."""

from __future__ import annotations

import re

FEATURE = "with-mdns4"  # of authselect 1.3 and later; older profiles leave the hosts line to the user's file
USER_FILE = "/etc/authselect/user-nsswitch.conf"
CONFIG = "/etc/authselect/authselect.conf"  # the profile, then a feature a line, in all versions
# what versions before 1.3 write at each turn, with the date in it, and a copy of each to know edits by
_GENERATED = (
    *("nsswitch.conf", "system-auth", "password-auth", "fingerprint-auth", "smartcard-auth", "postlogin"),
    *("dconf-db", "dconf-locks"),
)
REWRITTEN = tuple(
    f"{top}/{name}" for top in ("/etc/authselect", "/var/lib/authselect") for name in _GENERATED
)
SIZE_MAX = 256 * 1024  # bytes of `authselect test --all`; ten files of one to three thousand

_FILE = re.compile(r"^File (/\S+):(?: Empty)?$", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+/-]{0,99}")  # of a profile or a feature, no option


def parse_current(text: str) -> tuple[str, tuple[str, ...]]:
    """Return profile and features of ``authselect current --raw``; ('', ()) where it is something else."""
    words = text.split()
    if not words or not all(_NAME.fullmatch(word) for word in words):
        return "", ()
    return words[0], tuple(words[1:])


def parse_features(text: str) -> tuple[str, ...]:
    """Return the features of ``authselect list-features``."""
    return tuple(line.strip() for line in text.splitlines() if _NAME.fullmatch(line.strip()))


def parse_test(text: str) -> dict[str, bytes]:
    """Return path -> content of ``authselect test``, which is what it would write now.

    Blank lines at the ends of a file are lost.
    """
    parts = _FILE.split(text[:SIZE_MAX])
    return {
        path: content.strip("\n").encode("utf-8", "surrogateescape")
        for path, content in zip(parts[1::2], parts[2::2], strict=True)
    }


def is_generated(on_disk: bytes, generated: bytes) -> bool:
    """Whether a file is what authselect would write: a header of comments (with a date, once) may be more."""
    found = on_disk.strip(b"\n")
    if not found.endswith(generated):
        return False
    header = found[: len(found) - len(generated)]
    return all(line.lstrip()[:1] in (b"#", b"") for line in header.split(b"\n"))
