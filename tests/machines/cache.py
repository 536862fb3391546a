"""Folders that are made once and kept between runs, whoever asks first; others wait for them.

Under /var/cache/avahi-gpu-tests, or where AVAHI_GPU_MACHINES says. A folder comes to its place by one rename
when it is whole, so a making that was cut short leaves nothing that could be taken for done.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

CACHE = Path(os.environ.get("AVAHI_GPU_MACHINES") or "/var/cache/avahi-gpu-tests")
STEP_WITHIN_S = 900.0  # a slow mirror; usually a minute
KEPT_S = 30 * 86400.0  # what nobody has used for so long is removed when the next of its kind is made
BRIEFLY_S = 3600.0  # no test takes so long: for what is made of the working tree, another one after each edit


class NotMade(Exception):
    """Something that machines are made of could not be made here; says why."""


def key_of(*parts: str) -> str:
    """Return a short name for what is made of ``parts``."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold a lock that one process here can have at a time; the kernel frees it with its holder."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f".{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def made(kind: str, key: str, make: Callable[[Path], None], *, kept_s: float = KEPT_S) -> Path:
    """Return the folder ``kind-key``, filled by ``make`` if it is not there yet. Raises NotMade.

    Others of this kind that nobody has asked for in ``kept_s`` are removed then.
    """
    folder = CACHE / f"{kind}-{key}"
    if not folder.is_dir():
        with locked(kind):
            if not folder.is_dir():
                _forget(kind, kept_s)
                partial = CACHE / f".{kind}-{key}.{os.getpid()}.partial"
                try:
                    partial.mkdir()
                    make(partial)
                    partial.rename(folder)
                finally:
                    shutil.rmtree(partial, ignore_errors=True)
    os.utime(folder)  # it is in use
    return folder


def _forget(kind: str, kept_s: float) -> None:
    """Remove what was cut short, and what has not been used for long. The lock is ours."""
    for partial in CACHE.glob(f".{kind}-*.partial"):
        shutil.rmtree(partial, ignore_errors=True)
    for folder in CACHE.glob(f"{kind}-*"):
        if folder.stat().st_mtime < time.time() - kept_s:
            shutil.rmtree(folder, ignore_errors=True)


def step(argv: Sequence[str | Path], what: str, *, apart: bool = False) -> None:
    """Run a command that makes something. Raises NotMade with its last words.

    ``apart``: in mount and pid namespaces of its own, so that no mount and no process is left of it.
    """
    inner = ["unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"] if apart else []
    command = ["setpriv", "--pdeathsig", "KILL", *inner, *map(str, argv)]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=STEP_WITHIN_S,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotMade(f"{what}: no end after {STEP_WITHIN_S:g} s") from None
    except OSError as error:
        raise NotMade(f"{what}: {error}") from None
    if done.returncode != 0:
        raise NotMade(f"{what} failed:\n" + "\n".join(done.stdout.splitlines()[-20:]))
