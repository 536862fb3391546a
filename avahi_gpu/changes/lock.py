"""One change of the machine at a time: setup, undo and doctor --fix wait for each other."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from avahi_gpu.errors import ChangeFailed
from avahi_gpu.host.system import System

# not beside the journal: undo removes that folder, and a lock must outlive what it guards
LOCK = "/run/avahi-gpu.lock"
# the unit that writes the service file at boot takes a few seconds, and so do most runs of setup
WAIT_S = 30.0
AGAIN_S = 0.1
FILE_MODE_MASK = 0o022  # folders and files that packages make must be readable, whatever root's own umask

Say = Callable[[str], None]


@contextmanager
def locked(system: System, say: Say = lambda _: None, wait_s: float = WAIT_S) -> Iterator[bool]:
    """Keep a second setup, undo or fix out while the block runs; the value is whether there was a wait.

    Raises ChangeFailed if another one still runs after ``wait_s`` seconds. The lock ends with its process.
    """
    handle = system.lock_handle(LOCK)
    mask = os.umask(FILE_MODE_MASK)
    try:
        yield _acquire(handle, say, wait_s)
    finally:
        os.umask(mask)
        os.close(handle)


def _acquire(handle: int, say: Say, wait_s: float) -> bool:
    deadline = time.monotonic() + wait_s
    waited = False
    while not _try(handle):
        if not waited:
            say(f"another avahi-gpu is changing this machine: wait {wait_s:.0f} s at most until it has ended")
            waited = True
        if time.monotonic() >= deadline:
            raise ChangeFailed(
                "another avahi-gpu is changing this machine right now",
                f"wait until it has ended, then try again; it holds {LOCK} (fuser {LOCK} names its process)",
            )
        time.sleep(AGAIN_S)
    return waited


def _try(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as fault:
        if fault.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise ChangeFailed(
            f"cannot lock {LOCK}: {fault.strerror}", "nothing was changed; see that /run is as it should be"
        ) from fault
    return True
