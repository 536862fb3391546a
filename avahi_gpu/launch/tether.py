"""Become a program that dies with the process that started it, even where that one is killed by SIGKILL.

Run as a script of its own, in a bare interpreter: ``tether.py PARENT_PID PROGRAM ARGUMENT…``. The process id
stays the same; the program sees its own environment and arguments only.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # prctl(2); survives execve(2) of ordinary programs


def main(parent: int, argv: list[str]) -> None:
    """Tie this process to ``parent``, then become ``argv``."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it died before the call
        os._exit(1)
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - to become it is the purpose
    except OSError as error:
        sys.stderr.write(f"avahi-gpu: cannot run {argv[0]}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(127)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
