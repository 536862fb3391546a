"""See to it that no worker outlives its agent, whatever way the agent ends. A script as well as a module.

Workers inherit a variable with a mark of their node; so do their own children, which hold a GPU as much as
they do. A small process waits at the end of a pipe that only the agent holds: when that closes, by SIGKILL or
by an orderly end, whatever still bears the mark is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

VARIABLE = "AVAHI_GPU_WORKER_OF"
KEEP = b"k"  # written to the pipe before it closes: all went well, and what a script has left behind may stay
SWEEP_S = 2.0  # SIGKILL takes milliseconds; only a process that hangs in a driver's call takes longer
POLL_S = 0.02


class Guard:
    """The process that waits for our end; ``mark`` is what the workers bear."""

    def __init__(self, mark: str) -> None:
        self.mark = mark
        # isolated and without site-packages: it starts in ten milliseconds and loads nothing of the user's
        argv = [sys.executable, "-I", "-S", __file__, mark]
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            start_new_session=True,  # Ctrl-C is not for it
        )

    def close(self, *, keep: bool) -> None:
        """End the guard. Without ``keep`` it first kills what bears the mark."""
        assert self._process.stdin is not None
        with suppress(OSError):  # somebody has killed it
            if keep:
                self._process.stdin.write(KEEP)
            self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(SWEEP_S)


def bearers(mark: str) -> list[int]:
    """Return the processes that bear the mark, as far as we may look at them; zombies bear nothing."""
    wanted = f"\0{VARIABLE}={mark}\0".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # it has ended, or is somebody else's
                if wanted in b"\0" + (folder / "environ").read_bytes():
                    found.append(int(folder.name))
    return found


def sweep(mark: str, within_s: float = SWEEP_S) -> list[int]:
    """Kill the processes that bear the mark; return those that are still there after ``within_s``."""
    deadline = time.monotonic() + within_s
    while left := bearers(mark):
        for pid in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() >= deadline:
            return left
        time.sleep(POLL_S)
    return []


def main(mark: str) -> None:
    """Wait for the end of the pipe, then sweep unless told to keep."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    if os.read(0, 1) != KEEP:
        sweep(mark)


if __name__ == "__main__":
    main(sys.argv[1])
