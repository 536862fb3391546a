"""Kill a process at the n-th system call by which it changes something, or let that call fail: by ptrace(2).

The process is a fork of this one, so it begins with all its modules loaded: one more point costs little.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import stat
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

_TRACEME, _GETREGS, _SETREGS, _SYSCALL, _SETOPTIONS, _GET_SYSCALL_INFO = 0, 12, 13, 24, 0x4200, 0x420E
_TRACESYSGOOD, _EXITKILL = 1, 0x100000
_ENTRY = 1
_INFO_BYTES = 88  # struct ptrace_syscall_info
_REGISTERS = 27  # struct user_regs_struct of x86_64, with these two among them
_RAX, _ORIG_RAX = 10, 15
CAN_FAIL_CALLS = platform.machine() == "x86_64"
_WALL = 0x40000000
_CLONE_VFORK = 0x4000
_CHANGES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

# the calls that change files or start programs, by their numbers (asm/unistd_64.h, asm-generic/unistd.h)
_CALLS = {
    "x86_64": {
        **{1: "write", 18: "pwrite", 2: "open", 257: "openat", 73: "flock", 74: "fsync", 75: "fdatasync"},
        **{76: "truncate", 77: "ftruncate", 82: "rename", 264: "renameat", 316: "renameat2", 83: "mkdir"},
        **{258: "mkdirat", 84: "rmdir", 86: "link", 265: "linkat", 88: "symlink", 266: "symlinkat"},
        **{87: "unlink", 263: "unlinkat", 90: "chmod", 91: "fchmod", 268: "fchmodat", 92: "chown"},
        **{93: "fchown", 260: "fchownat", 188: "setxattr", 190: "fsetxattr", 280: "utimensat", 58: "vfork"},
        **{56: "clone"},
    },
    "aarch64": {
        **{64: "write", 68: "pwrite", 56: "openat", 32: "flock", 82: "fsync", 83: "fdatasync"},
        **{45: "truncate", 46: "ftruncate", 38: "renameat", 276: "renameat2", 34: "mkdirat", 37: "linkat"},
        **{36: "symlinkat", 35: "unlinkat", 52: "fchmod", 53: "fchmodat", 55: "fchown", 54: "fchownat"},
        **{5: "setxattr", 7: "fsetxattr", 88: "utimensat", 220: "clone"},
    },
}[platform.machine()]

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


@dataclass(frozen=True)
class Run:
    """How it ended. ``code`` None: killed at the point. ``calls``: the names of the calls up to there."""

    code: int | None
    calls: tuple[str, ...]


def run_until(work: Callable[[], int], point: int = 0, fails_with: int = 0) -> Run:
    """Run ``work`` in a process of its own, killed just before its ``point``-th call; 0: never.

    What it starts is not touched: it lives on, as after a real SIGKILL. ``fails_with``: the call does nothing
    and fails with that errno instead, and the process goes on.
    """
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            _ptrace(_TRACEME, 0, None, None)
            os.kill(os.getpid(), signal.SIGSTOP)
            code = work()
        finally:
            os._exit(code)
    os.waitpid(pid, 0)
    _ptrace(_SETOPTIONS, pid, None, ctypes.c_void_p(_TRACESYSGOOD | _EXITKILL))
    calls: list[str] = []
    pending = 0
    while True:
        _ptrace(_SYSCALL, pid, None, ctypes.c_void_p(pending))
        _, status = os.waitpid(pid, _WALL)
        if os.WIFEXITED(status):
            return Run(os.WEXITSTATUS(status), tuple(calls))
        if os.WIFSIGNALED(status):
            return Run(-os.WTERMSIG(status), tuple(calls))
        pending = os.WSTOPSIG(status)
        if pending != signal.SIGTRAP | 0x80:
            continue  # a signal of its own, which it is to have
        pending = 0
        name = _call_that_changes(pid)
        if name:
            calls.append(name)
        if name and len(calls) == point and fails_with:
            _set_register(pid, _ORIG_RAX, -1)  # no such call: the kernel does nothing
            _ptrace(_SYSCALL, pid, None, None)
            os.waitpid(pid, _WALL)
            _set_register(pid, _RAX, -fails_with)
        elif name and len(calls) == point:
            os.kill(pid, signal.SIGKILL)  # at the entry: the kernel does not begin the call any more
            os.waitpid(pid, _WALL)
            return Run(None, tuple(calls))


def _call_that_changes(pid: int) -> str:
    """Return the name of the call that is about to begin, '' where it changes nothing or has ended."""
    buffer = ctypes.create_string_buffer(_INFO_BYTES)
    _ptrace(_GET_SYSCALL_INFO, pid, ctypes.c_void_p(_INFO_BYTES), ctypes.cast(buffer, ctypes.c_void_p))
    if buffer.raw[0] != _ENTRY:
        return ""
    number, first, second, third = struct.unpack_from("QQQQ", buffer.raw, 24)
    name = _CALLS.get(number, "")
    if name == "open":
        return name if second & _CHANGES else ""
    if name == "openat":
        return name if third & _CHANGES else ""
    if name == "clone":
        return name if first & _CLONE_VFORK else ""
    if name in ("write", "pwrite", "fsync"):
        return name if _is_on_disk(pid, first) else ""
    return name


def _set_register(pid: int, index: int, value: int) -> None:
    registers = (ctypes.c_uint64 * _REGISTERS)()
    place = ctypes.cast(registers, ctypes.c_void_p)
    _ptrace(_GETREGS, pid, None, place)
    registers[index] = value % (1 << 64)
    _ptrace(_SETREGS, pid, None, place)


def _is_on_disk(pid: int, handle: int) -> bool:
    with suppress(OSError):
        path = f"/proc/{pid}/fd/{handle}"
        kind = os.stat(path).st_mode
        return (stat.S_ISREG(kind) or stat.S_ISDIR(kind)) and not os.readlink(path).startswith("/memfd:")
    return False


def _ptrace(request: int, pid: int, address: object, data: object) -> None:
    if _libc.ptrace(request, pid, address, data) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"ptrace: {os.strerror(code)}")
