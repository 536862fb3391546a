"""Run a command inside a virtual host. Run as a script: ``enter.py PID FOLDER COMMAND…``.

The command gets its own session and process group. Signals sent to this process go on to it, its exit code or
death by signal is ours, and if we are killed the kernel kills it: for the caller, this process *is* the
command.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import warnings  # noqa: F401 # os.execvp imports it, and a booted machine has no file of our interpreter

import syscalls

FORWARDED = {
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
    signal.SIGCONT,
}


def become(folder: str, argv: list[str]) -> None:
    """Turn this fresh child into the command."""
    syscalls.die_with_parent(signal.SIGKILL)
    if os.getppid() != 0:  # 0: the parent lives in the outer pid namespace; else it has died before the call
        os._exit(1)
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED | {signal.SIGCHLD})
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and exec would hand that on
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)  # a shell without jobs ignores both for what it puts behind
    os.chdir(folder)
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        print(f"{argv[0]}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(127)


def follow(child: int) -> int:
    """Hand signals on to ``child`` until it ends; return its wait status."""
    while True:
        number = signal.sigwait(FORWARDED | {signal.SIGCHLD})
        if number == signal.SIGCHLD:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                return status
        else:
            os.kill(child, number)


def end_like(status: int) -> None:
    """End this process the way the child ended."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


def main(pid: int, folder: str, argv: list[str]) -> None:
    """Join the host of process 1 ``pid`` and run ``argv`` there."""
    syscalls.join(pid, list(syscalls.NAMESPACES))
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED | {signal.SIGCHLD})
    child = os.fork()
    if child == 0:
        become(folder, argv)
    end_like(follow(child))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
