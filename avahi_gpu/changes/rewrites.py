"""Files that a program of others rewrites when we run it, and that are to be as they were after its undo."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from avahi_gpu.changes.record import Before, Rewritten, digest
from avahi_gpu.host.system import System


def look_before(paths: Iterable[str], system: System) -> tuple[Rewritten, ...]:
    """Return the files as they are before the program runs; what cannot be read is left to the program."""
    found = []
    for path in paths:
        state = system.read(path)
        if state.content is not None or not state.exists:
            before = Before(state.content, state.mode or 0, state.uid or 0, state.gid or 0)
            found.append(Rewritten(path, before))
    return tuple(found)


def look_after(files: Sequence[Rewritten], system: System) -> tuple[Rewritten, ...]:
    """Return the same with what the program has made of them."""
    return tuple(Rewritten(f.path, f.before, digest(system.read(f.path).content), seen=True) for f in files)


def untouched(files: Sequence[Rewritten], system: System) -> list[Rewritten]:
    """Return those that nobody has written since."""
    return [f for f in files if f.seen and digest(system.read(f.path).content) == f.after]


def put_back(files: Iterable[Rewritten], system: System) -> None:
    """Bring the files back to the byte. Raises ChangeFailed."""
    for one in files:
        before = one.before
        if system.read(one.path).content == before.content:
            continue
        if before.content is None:
            system.remove(one.path)
        else:
            system.write(one.path, before.content, before.mode, before.uid, before.gid)
