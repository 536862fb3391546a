"""Commands that run inside a virtual host."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

ENTER = Path(__file__).with_name("enter.py")
END_WITHIN_S = 5.0  # a killed process is buried in milliseconds; more means that the machine is overloaded


class CommandFailed(subprocess.CalledProcessError):
    """A command ended with another exit code than zero; shows what it printed."""

    def __str__(self) -> str:
        return f"{super().__str__()}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"


class Process(subprocess.Popen[str]):
    """A ``subprocess.Popen`` of a command in a host: exit code, pipes and signals are the command's."""

    @property
    def inner_pid(self) -> int | None:
        """The command's pid as seen from outside the host, None before its start and after its end."""
        try:
            children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        except OSError:
            return None
        return int(children[0]) if children else None

    def kill(self) -> None:
        """End the command alone and at once, as ``kill -9`` would; what it started inside lives on.

        The signal goes to the command itself, never to ``enter.py``: that one has to bury it. Orphaned, it
        would be left to process 1 of the machine, which in a container often buries nobody, and the host
        could not end before that.
        """
        inner = self.inner_pid
        if inner is None:
            super().kill()
        else:
            with suppress(ProcessLookupError):
                os.kill(inner, signal.SIGKILL)

    def ctrl_c(self) -> None:
        """Interrupt the command and whatever shares its process group, as Ctrl-C on a terminal does."""
        self._signal_group(signal.SIGINT)

    def end(self) -> None:
        """Kill the command with its process group and bury it."""
        if self.poll() is None:
            self._signal_group(signal.SIGKILL)
            self.kill()
        self.wait(END_WITHIN_S)

    def _signal_group(self, number: signal.Signals) -> None:
        inner = self.inner_pid
        with suppress(ProcessLookupError):
            if inner is None or os.getpgid(inner) != inner:  # not yet the leader of a group of its own
                self.send_signal(number)
            else:
                os.killpg(inner, number)


class Follower:
    """A command whose output, both streams merged, is read as it comes. Made by ``Host.follow``."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self.times: list[float] = []  # time.monotonic() at which each line came
        self._changed = threading.Condition()
        self._ended = False
        assert process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(process.stdout,), daemon=True)
        self._reader.start()

    def _read(self, stream: IO[str]) -> None:
        try:
            for line in stream:
                with self._changed:
                    self.lines.append(line.rstrip("\n"))
                    self.times.append(time.monotonic())
                    self._changed.notify_all()
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    @property
    def output(self) -> str:
        """Everything printed so far."""
        return "\n".join(self.lines)

    def wait_for(self, text: str, within_s: float = 30.0, *, after: int = 0) -> int:
        """Wait for a line that contains ``text``, from line ``after`` on; return its index.

        Raises AssertionError with the output so far where it does not come in time or the command ends first.
        """
        deadline = time.monotonic() + within_s
        seen = after
        with self._changed:
            while True:
                for index in range(seen, len(self.lines)):
                    if text in self.lines[index]:
                        return index
                seen = len(self.lines)
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    why = "it ended" if self._ended else f"{within_s:g} s went by"
                    raise AssertionError(f"{why} without {text!r}; it printed:\n{self.output}")
                self._changed.wait(left)

    def wait(self, within_s: float = 60.0) -> int:
        """Wait for the end, return the exit code. Raises AssertionError after ``within_s``."""
        try:
            code = self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {within_s:g} s; it printed:\n{self.output}") from None
        self._reader.join(1.0)  # what it started may keep the pipe open
        return code

    def ctrl_c(self) -> None:
        """Interrupt it as Ctrl-C on a terminal does."""
        self.process.ctrl_c()

    def kill(self) -> None:
        """End the command alone, as ``kill -9`` would."""
        self.process.kill()

    def end(self) -> None:
        """Kill the command with its process group, close the pipe."""
        self.process.end()
        self._reader.join(1.0)
        if self.process.stdout is not None and not self._reader.is_alive():
            self.process.stdout.close()


def finish(
    process: Process, text: str | None, timeout: float, *, check: bool
) -> subprocess.CompletedProcess[str]:
    """Feed ``process``, wait for it, return what it printed; after ``timeout`` seconds it is killed."""
    try:
        stdout, stderr = process.communicate(text, timeout)
    except BaseException:
        process.end()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        raise
    if check and process.returncode != 0:
        raise CommandFailed(process.returncode, process.args, stdout, stderr)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)
