"""One change of the machine in words and as a diff. Pure."""

from __future__ import annotations

import difflib
from typing import Any

from avahi_gpu.model import Change

NO_NEWLINE = "\\ No newline at end of file"  # as diff(1) says it


def describe(change: Change) -> dict[str, Any]:
    """Return ``{"kind", "path" or "argv", "diff"}`` as ``setup --json`` prints it."""
    if change.kind == "file":
        return {"kind": change.kind, "path": change.path, "diff": unified_diff(change)}
    return {"kind": change.kind, "argv": list(change.argv), "diff": ""}


def unified_diff(change: Change) -> str:
    """Return the unified diff of a file change, '' for any other; bytes that are no UTF-8 as ``\\xNN``.

    A missing file is ``/dev/null``, as diff(1) and patch(1) name it.
    """
    if change.kind != "file":
        return ""
    old = "/dev/null" if change.before is None else change.path
    new = "/dev/null" if change.content is None else change.path
    lines = difflib.unified_diff(_lines(change.before), _lines(change.content), old, new)
    text = "".join(line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}\n" for line in lines)
    if not text and change.before is None and change.content == b"":
        return f"--- {old}\n+++ {new}\n"
    return text


def same(one: Change, other: Change) -> bool:
    """Return whether two changes do the same, whatever their titles say."""
    return _essence(one) == _essence(other)


def _essence(change: Change) -> tuple[object, ...]:
    if change.kind == "file":
        return (change.kind, change.path, change.content, change.mode)
    return (change.kind, change.argv)


def _lines(content: bytes | None) -> list[str]:
    # not splitlines(): a form feed or a lone carriage return ends no line of a configuration file
    lines = (content or b"").decode("utf-8", "backslashreplace").split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
