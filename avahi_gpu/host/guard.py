"""See to it that no worker outlives its agent, whatever way the agent ends. A script as well as a module.

Workers inherit a variable with a mark of their node; so do their own children, which hold a GPU as much as
they do. A small process waits at the end of a pipe that only the agent holds: when that closes, by SIGKILL or
by an orderly end, whatever still bears the mark is killed. So it is where the agent does not say in time that
it may live on: one that stands still, by Ctrl-Z say, counts as lost for the other nodes.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

VARIABLE = "AVAHI_GPU_WORKER_OF"
KEEP = b"keep\n"  # before the pipe closes: all went well, and what a script has left behind may stay
LINE_MAX = 64  # bytes
SWEEP_S = 2.0  # SIGKILL takes milliseconds; only a process that hangs in a driver's call takes longer
POLL_S = 0.02
LOOK_S = 1.0  # select(2) does not count the time of a suspended machine


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
            bufsize=0,
        )
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)  # one that stands still holds up nobody

    def hold(self, seconds: float) -> None:
        """Let the workers live for so long from now."""
        self._say(f"hold {seconds:.3f}\n".encode())

    def end(self, seconds: float) -> None:
        """Kill what is left of the workers after so long, unless it is told to hold them before."""
        self._say(f"end {seconds:.3f}\n".encode())

    def _say(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):  # somebody has killed it, or it stands still and the pipe is full
            os.write(self._process.stdin.fileno(), line)

    def close(self, *, keep: bool) -> None:
        """End the guard. Without ``keep`` it first kills what bears the mark."""
        assert self._process.stdin is not None
        if keep:
            self._say(KEEP)
        with suppress(OSError):
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


def now() -> float:
    """Return the time that a suspended machine counts as well (clock_gettime(2))."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def main(mark: str) -> None:
    """Wait for the end of the pipe, then sweep unless told to keep; sweep also when the time is up."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    deadline: float | None = None
    last = b""
    while True:
        wait_s = None if deadline is None else min(max(0.0, deadline - now()), LOOK_S)
        if not select.select([0], [], [], wait_s)[0]:
            if deadline is not None and now() >= deadline:
                deadline = None
                sweep(mark)
            continue
        said = os.read(0, 4096)
        if not said:
            break
        lines = (last + said).split(b"\n")
        last = lines.pop()[-LINE_MAX:]
        for line in lines:
            word, _, seconds = line.partition(b" ")
            if word in (b"hold", b"end"):
                if deadline is not None and now() >= deadline:
                    sweep(mark)  # both of us stood still
                deadline = now() + float(seconds)
            elif word + b"\n" == KEEP:
                return
    sweep(mark)


if __name__ == "__main__":
    main(sys.argv[1])
