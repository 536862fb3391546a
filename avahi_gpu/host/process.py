"""Run one program with a deadline, bounded output and nothing left behind. Used by ``host.system`` alone."""

from __future__ import annotations

import atexit
import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from avahi_gpu.host.interruption import Ended, noted

MAX_OUTPUT_BYTES = 1 << 20  # of each stream; what is beyond is read and dropped
GRACE_S = 3.0  # between asking a group to end and ending it: a package manager needs a moment to unlock
QUICK_GRACE_S = 0.2  # for what only reads: it has nothing to put in order
LOOK_AGAIN_S = 0.1  # how soon a signal that came is handed on
LEFT_OVER_S = 0.2  # how long we go on reading once the program has ended but something holds its output open
_running: set[subprocess.Popen[bytes]] = set()  # what we wait for now, some of it in threads left behind

NOT_FOUND = 127  # as a shell says it
NOT_EXECUTABLE = 126


@dataclass(frozen=True)
class Completed:
    """How a program ended. ``returncode`` None: the deadline passed; negative: ended by that signal."""

    argv: tuple[str, ...]
    returncode: int | None
    stdout: str
    stderr: str
    elapsed_s: float

    @property
    def ok(self) -> bool:
        return self.returncode == 0

    @property
    def reason(self) -> str:
        """One line of why it failed: its last line of complaint, or how it ended."""
        lines = [line.strip() for line in (self.stderr or self.stdout).splitlines() if line.strip()]
        if self.returncode is None:
            return f"{self.argv[0]} did not end within {self.elapsed_s:.0f} s"
        if lines:
            return lines[-1]
        return f"{self.argv[0]} ended with {self.returncode}"


def run_process(
    argv: Sequence[str],
    timeout_s: float,
    environment: Mapping[str, str],
    input: bytes | None,
    *,
    leaves_children: bool = False,
    grace_s: float = GRACE_S,
    tell: Callable[[], None] | None = None,
) -> Completed:
    """Run ``argv`` from ``/`` in a session of its own; see ``System.run`` for the promises.

    ``leaves_children``: output goes to a file, so that a daemon that stays behind holds no pipe. ``grace_s``:
    between asking it to end at the deadline and ending it.
    """
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        # before it is started: between its start and our waiting for it no signal may come in
        came = stack.enter_context(noted()) if tell is not None else []
        stdin = stack.enter_context(_memory()) if input is not None else None
        if stdin is not None and input is not None:
            stdin.write(input)
            stdin.seek(0)
        files = [stack.enter_context(_memory()) for _ in range(2)] if leaves_children else None
        try:
            process = subprocess.Popen(
                list(argv),
                stdin=stdin if stdin is not None else subprocess.DEVNULL,
                stdout=files[0] if files else subprocess.PIPE,
                stderr=files[1] if files else subprocess.PIPE,
                env=dict(environment),
                cwd="/",
                start_new_session=True,
            )
        except FileNotFoundError:
            return Completed(tuple(argv), NOT_FOUND, "", f"{argv[0]}: not found", 0.0)
        except (OSError, ValueError) as fault:
            return Completed(tuple(argv), NOT_EXECUTABLE, "", f"{argv[0]}: {fault}", 0.0)
        if not leaves_children:
            _running.add(process)
        try:
            if files:
                output = _wait(process, started + timeout_s, files, tell, came)
            else:
                output = _collect(process, started + timeout_s)
        except BaseException:
            if tell is None:
                _end(process)
            _running.discard(process)
            raise
        if came:
            raise Ended(signal.Signals(came[0]).name)
        in_time = process.returncode is not None
        if not in_time:
            _end(process, grace_s)
        _running.discard(process)
        elapsed_s = time.monotonic() - started
        texts = [part.decode("utf-8", "replace") for part in output]
        return Completed(tuple(argv), process.returncode if in_time else None, texts[0], texts[1], elapsed_s)


def _memory() -> IO[bytes]:
    """Return a file in memory: the disk may be full, and it outlives us where the program does."""
    return os.fdopen(os.memfd_create("avahi-gpu", os.MFD_CLOEXEC), "w+b")


def _wait(
    process: subprocess.Popen[bytes],
    deadline: float,
    files: Sequence[IO[bytes]],
    tell: Callable[[], None] | None,
    came: Sequence[int],
) -> list[bytes]:
    told = False
    while process.poll() is None and (left_s := deadline - time.monotonic()) > 0:
        if came and not told and tell is not None:
            tell()
            # to it alone, not to what it runs: it knows best when it may end
            process.send_signal(signal.SIGINT)
            told = True
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(left_s if tell is None else min(left_s, LOOK_AGAIN_S))
    for file in files:
        file.seek(0)
    return [file.read(MAX_OUTPUT_BYTES) for file in files]


def _collect(process: subprocess.Popen[bytes], deadline: float) -> list[bytes]:
    """Read both streams until the program ended and they are empty, or the deadline; sets ``returncode``."""
    kept = [bytearray(), bytearray()]
    streams = [s for s in (process.stdout, process.stderr) if s is not None]
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:
        for number, stream in enumerate(streams):
            stack.enter_context(stream)
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ, number)
        pause_s = 0.005  # grows: most programs end as their output does, and then no pause is needed
        while selector.get_map():
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                break
            # asked before we look for output: what it writes last, and then ends, is still to be read
            ended = process.poll() is not None
            ready = selector.select(min(left_s, LEFT_OVER_S if ended else pause_s))
            pause_s = min(pause_s * 2, 0.25)
            if not ready and ended:
                break  # ended, and silent since: a child of it holds the pipe
            for key, _ in ready:
                part = os.read(key.fd, 65536)
                if part:
                    kept[key.data] += part[: MAX_OUTPUT_BYTES - len(kept[key.data])]
                else:
                    selector.unregister(key.fileobj)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
    return [bytes(part) for part in kept]


@atexit.register
def _end_all() -> None:
    """End what a thread still waits for that nobody waits for any more: it must not outlive us."""
    for process in list(_running):
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)


def _end(process: subprocess.Popen[bytes], grace_s: float = GRACE_S) -> None:
    """End the whole group: asked first, then made to."""
    for number, patience_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, None)):
        # the leader's id stays the group's while any of the group lives, so this hits nobody else
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
