"""One deadline for all that is read: what has not answered by then is not known, and the reason is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from avahi_gpu.host.aside import aside
from avahi_gpu.host.system import MAX_FILE_BYTES, System
from avahi_gpu.model import FileState

# No fault may hold a person up for more than 15 s. A dead name server costs one look-up 10.1 s, and one that
# begins after two mDNS queries 11.5 s; three seconds are left for the start, the end and a busy machine.
READ_S = 12.0
FILE_S = 2.0  # a file of /etc takes a tenth of a millisecond; a hanging file system takes for ever
LAST_S = 1.0  # beyond the end: what is worked out of what was read takes a few more files

T = TypeVar("T")


@dataclass
class Deadline:
    """When reading ends, and what was not read by then: name -> why. Made where an event loop runs.

    ``pending``: the names of what is being awaited, for whoever tells people.
    """

    within_s: float = READ_S
    unread: dict[str, str] = field(default_factory=dict)
    pending: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._ends_at = asyncio.get_running_loop().time() + self.within_s

    @property
    def left_s(self) -> float:
        """The seconds until then, 0 when it has passed."""
        return max(0.0, self._ends_at - asyncio.get_running_loop().time())

    async def hold(self, name: str, work: Awaitable[T], otherwise: T, most_s: float | None = None) -> T:
        """Return what ``work`` returns; ``otherwise`` where it fails or takes too long, which is noted.

        ``most_s``: its own limit where that is the sooner.
        """
        limit_s = self.left_s if most_s is None else min(most_s, self.left_s)
        return await self._await(name, work, otherwise, limit_s)

    async def _await(self, name: str, work: Awaitable[T], otherwise: T, limit_s: float) -> T:
        self.pending.add(name)
        try:
            return await asyncio.wait_for(work, limit_s)
        except asyncio.TimeoutError:
            self.unread[name] = f"no answer within {limit_s:.2g} s"
        except OSError as fault:
            self.unread[name] = fault.strerror or str(fault)
        finally:
            self.pending.discard(name)
        return otherwise

    async def read(self, name: str, otherwise: T, work: Callable[..., T], *words: object) -> T:
        """Do what touches files alone, beside the event loop, within ``FILE_S``; ``LAST_S`` past the end."""
        limit_s = min(FILE_S, max(0.0, self._ends_at + LAST_S - asyncio.get_running_loop().time()))
        return await self._await(name, aside(work, *words), otherwise, limit_s)

    async def read_file(self, system: System, path: str, limit: int = MAX_FILE_BYTES) -> FileState:
        """Return the file; one on a file system that hangs is there, and cannot be read."""
        hangs = FileState(path, None, hangs=True, writable=False, error=f"no answer within {FILE_S:g} s")
        return await self.read(path, hangs, system.read, Path(path), limit)
