"""/etc/mdns.allow by nss-mdns's own rules (0.15, util.c): which names its full modules ask Avahi for.

With the file, a line is a suffix, or ``*`` for every name; without it, and always for the ``*_minimal``
modules, a name is asked for if it has two labels, ends in ``.local``, and no DNS server claims ``local``.
"""

from __future__ import annotations

import re

PATH = "/etc/mdns.allow"
LINE_MAX = 127  # bytes that fgets() takes at once: a longer line counts as several
SUFFIX = ".local"
EVERYTHING = "*"

_END = re.compile(r"[#\t\n\r ]")


def parse(content: bytes) -> tuple[str, ...]:
    """Return the suffixes in force, each with its leading dot, or ``*``. An empty file allows nothing."""
    found: list[str] = []
    for line in content.decode("utf-8", "surrogateescape").splitlines(keepends=True):
        for start in range(0, len(line), LINE_MAX):
            word = _END.split(line[start : start + LINE_MAX], maxsplit=1)[0]
            if word:
                found.append(word if word == EVERYTHING or word.startswith(".") else f".{word}")
    return tuple(dict.fromkeys(found))


def allows(suffixes: tuple[str, ...], name: str) -> bool:
    """Whether a full module asks Avahi for ``name`` where the file holds these suffixes."""
    return any(s == EVERYTHING or name.lower().endswith(s.lower()) for s in suffixes)


def is_plain_local(name: str) -> bool:
    """Whether a minimal module, or a full one without the file, would ask: ``host.local``, two labels."""
    return bool(re.fullmatch(r"[^.]+\.local\.?", name, re.IGNORECASE))


def with_local(content: bytes | None) -> bytes:
    """Return the file with ``.local`` and ``.local.`` allowed, whatever it held before kept."""
    old = content or b""
    have = parse(old)
    wanted = [s for s in (SUFFIX, f"{SUFFIX}.") if s not in have]
    if old and not old.endswith(b"\n"):
        old += b"\n"
    return old + "".join(f"{s}\n" for s in wanted).encode()


def without_everything(content: bytes) -> bytes:
    """Return the file with ``.local`` and ``.local.`` allowed in place of ``*``."""
    kept = [line for line in content.split(b"\n") if line.partition(b"#")[0].strip() != b"*"]
    return with_local(b"\n".join(kept))
