"""A file of the machine as found."""

from __future__ import annotations

from dataclasses import dataclass, field

NOT_A_FILE = "not a regular file"  # but a folder, a pipe, a device


@dataclass(frozen=True)
class FileState:
    """A file as found. ``content`` is None where it is missing or unreadable; ``error`` says which."""

    path: str
    content: bytes | None
    mode: int | None = None  # permission bits
    uid: int | None = None
    gid: int | None = None
    link_target: str | None = None  # where it is a symbolic link, fully resolved
    writable: bool = True  # the file, or the folder that would hold it, can be changed
    error: str = ""
    immutable: bool = False  # somebody has set its attribute (chattr +i), or that for appending alone (+a)
    hangs: bool = False  # something is there, on a file system that does not answer
    changed: float | None = field(default=None, compare=False)  # last modification, seconds since the epoch

    @property
    def exists(self) -> bool:
        return self.content is not None or self.mode is not None or self.hangs
