"""Edits of avahi-daemon.conf that keep every other byte: set a key, take one out, mend what is malformed.

Pure and idempotent. Each returns None where the file cannot be edited without a guess at its meaning.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from avahi_gpu.errors import MalformedInput
from avahi_gpu.files.avahi_conf import KEYS, LINE_LIMIT, accepts, parse

COMMENT_BYTES = 200  # of each piece of a comment that is too long for one line
ALIKE = 0.88  # of a misspelt key or section: "allow-interface" is one, "deny-all" is none

_BARE = re.compile(r"([A-Za-z0-9_-]+)[ \t]*:?[ \t]+(\S+)[ \t]*|([A-Za-z0-9_-]+)[ \t]*:[ \t]*(.*)")
_BOM = "\ufeff"


@dataclass(frozen=True)
class Wanted:
    """What one key is to be; ``value`` None: not set at all."""

    section: str
    key: str
    value: str | None


def change(text: str, wanted: tuple[Wanted, ...]) -> str | None:
    """Return the file with each key as wanted."""
    changed: str | None = text
    for one in wanted:
        if changed is not None:
            edit = drop if one.value is None else set_value
            changed = edit(changed, one)
    return changed


def set_value(text: str, wanted: Wanted) -> str | None:
    """Set a key: where the daemon reads it now, else beside its commented-out line, else in its section."""
    lines = text.split("\n")
    places = _assignments(lines)
    if places is None or wanted.value is None or not accepts(wanted.section, wanted.key, wanted.value):
        return None
    ours = [n for n, (section, key) in places.items() if (section, key) == (wanted.section, wanted.key)]
    if ours:
        body, end = _part_end(lines[ours[0]])
        head = body.partition("=")[0]
        lines[ours[0]] = f"{head}={wanted.value}{end}"
        return "\n".join(lines)
    new = f"{wanted.key}={wanted.value}{_part_end(lines[0])[1]}"
    at = _home(lines, wanted)
    if at is not None:
        lines.insert(at, new)
        return "\n".join(lines)
    end = _part_end(lines[0])[1]
    if lines[-1] == "":
        lines.pop()
    gap = [end] if lines and lines[-1].strip() else []
    return "\n".join([*lines, *gap, f"[{wanted.section}]{end}", new, ""])


def drop(text: str, wanted: Wanted) -> str | None:
    """Comment every line out that sets the key: of duplicates the next one would count otherwise."""
    lines = text.split("\n")
    places = _assignments(lines)
    if places is None:
        return None
    for number, place in places.items():
        if place == (wanted.section, wanted.key):
            lines[number] = f"#{lines[number]}"
    return "\n".join(lines)


def mend(text: str) -> str | None:
    """Return the file as one that the daemon starts with, for what has one meaning only.

    A key in a wrong section goes to its own, a blank before “=” goes away, what is no setting becomes a
    comment. A file that is well-formed comes back as it is.
    """
    if _is_well_formed(text):
        return text
    kept: list[str] = []
    moved: list[Wanted] = []
    section: str | None = None
    for number, line in enumerate(text.split("\n")):
        body, end = _part_end(line.removeprefix(_BOM) if number == 0 else line)
        start = body.lstrip(" \t")
        if start[:1] in ("#", "%", ""):
            kept += [piece + end for piece in _fold_comment(body)]
        elif _size(body) >= LINE_LIMIT:
            return None  # what it was meant to be nobody can tell
        elif start[0] == "[":
            section, header = _mend_header(start, body)
            kept.append(header + end)
        else:
            found = _mend_assignment(start, section)
            if found is None:
                kept.append(f"#{body}{end}")
            elif isinstance(found, str):
                kept.append(found + end)
            else:
                moved.append(found)
    mended: str | None = "\n".join(kept)
    for one in moved:
        if mended is not None and not _is_set(mended, one):
            mended = set_value(mended, one)
    return mended if mended is not None and _is_well_formed(mended) else None


def _mend_header(start: str, body: str) -> tuple[str | None, str]:
    name, closed, _ = start[1:].partition("]")
    if closed and name.lower() in KEYS:
        return name.lower(), body
    known = _nearest(name.strip(" \t\"'").lower().replace("_", "-"), KEYS)
    # the keys below a section that is none know by themselves where they belong
    return (known, f"[{known}]") if known else (None, f"#{body}")


def _mend_assignment(start: str, section: str | None) -> str | Wanted | None:
    """Return the line, or what is to be set elsewhere, or None for what is to become a comment."""
    key, equals, value = start.partition("=")
    if not equals:
        bare = _BARE.fullmatch(start)
        if start[0] in ";/" or bare is None:
            return None
        key, value = bare[1] or bare[3], bare[2] or bare[4] or ""
    name = key.strip(" \t\"'").lower().replace("_", "-")
    here = KEYS.get(section or "", {})
    known = name if any(name in keys for keys in KEYS.values()) else _nearest(name, here)
    home = next((s for s, keys in KEYS.items() if known in keys), None)
    if known is None or home is None:
        return None
    if key.lower() != known:
        value = value.strip(" \t")
    if not accepts(home, known, value):
        value = re.split(r"[ \t#;,]", value.strip(" \t\"'"), maxsplit=1)[0]
        if not value or not accepts(home, known, value):
            return None
    if home != section:
        return Wanted(home, known, value)
    return start if start == f"{key}={value}" and key.lower() == known else f"{known}={value}"


def _nearest(name: str, known: object) -> str | None:
    """Return the one of ``known`` that ``name`` is or is meant to be; None where that is not certain."""
    names = [str(n) for n in known]  # type: ignore[attr-defined]
    if name in names:
        return name
    alike = difflib.get_close_matches(name, names, n=2, cutoff=ALIKE)
    return alike[0] if len(alike) == 1 else None


def _assignments(lines: list[str]) -> dict[int, tuple[str, str]] | None:
    """Return line index -> (section, key); None for a file that is malformed or has an assignment too long.

    The rest of such a line is a line of its own to the daemon.
    """
    if not _is_well_formed("\n".join(lines)):
        return None
    found: dict[int, tuple[str, str]] = {}
    section = ""
    for number, line in enumerate(lines):
        body, _ = _part_end(line)
        start = body.lstrip(" \t")
        if _size(line) >= LINE_LIMIT or "\0" in line or "\r" in body:
            return None
        if start[:1] in ("#", "%", ""):
            continue
        if start[0] == "[":
            section = start[1:].partition("]")[0].lower()
        else:
            found[number] = (section, start.partition("=")[0].lower())
    return found


def _home(lines: list[str], wanted: Wanted) -> int | None:
    """Return where a new line of the section goes, None where there is no such section."""
    remark = re.compile(rf"[#%][ \t]*{re.escape(wanted.key)}[ \t]*=", re.IGNORECASE)
    section = ""
    header = last = beside = None
    for number, line in enumerate(lines):
        start = line.strip(" \t\r")
        if start.startswith("["):
            section = start[1:].partition("]")[0].lower()
            if section == wanted.section and header is None:
                header = number
        elif section == wanted.section and remark.match(start):
            beside = number
        elif section == wanted.section and start and start[0] not in "#%":
            last = number
    at = next((n for n in (beside, last, header) if n is not None), None)
    return None if at is None else at + 1


def _fold_comment(body: str) -> list[str]:
    """Return a comment in lines that the daemon reads as comments, each short enough."""
    if _size(body) < LINE_LIMIT:
        return [body]
    pieces, piece = [], ""
    for character in body:
        if _size(piece + character) > COMMENT_BYTES:
            pieces.append(piece)
            piece = "# "
        piece += character
    return [*pieces, piece]


def _is_set(text: str, wanted: Wanted) -> bool:
    lines = text.split("\n")
    return (wanted.section, wanted.key) in (_assignments(lines) or {}).values()


def _is_well_formed(text: str) -> bool:
    try:
        parse(text)
    except MalformedInput:
        return False
    return True


def _part_end(line: str) -> tuple[str, str]:
    return (line[:-1], "\r") if line.endswith("\r") else (line, "")


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))
