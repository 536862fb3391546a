"""The few system calls of Linux that virtual hosts are made of; Python offers them only from 3.12 on.

Imported by ``boot.py`` and ``enter.py``, which run as scripts of their own: standard library only.
"""

from __future__ import annotations

import ctypes
import os

# sched.h; the order is the one in which a process may join them (the mount namespace last: it changes /proc)
NAMESPACES = {"pid": 0x20000000, "ipc": 0x08000000, "uts": 0x04000000, "net": 0x40000000, "mnt": 0x00020000}

# sys/mount.h
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_SLAVE = 2, 4, 8, 16384, 1 << 19
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1  # sys/prctl.h

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(answer: int, what: str) -> None:
    if answer != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def unshare(names: list[str]) -> None:
    """Give this process new namespaces; a new ``pid`` one is for its children only (unshare(2))."""
    flags = 0
    for name in names:
        flags |= NAMESPACES[name]
    _checked(_libc.unshare(flags), f"unshare {' '.join(names)}")


def join(pid: int, names: list[str]) -> None:
    """Enter namespaces of process ``pid``; its ``pid`` one is for our children only (setns(2))."""
    handles = [(name, os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)) for name in names]
    for name, handle in handles:
        _checked(_libc.setns(handle, NAMESPACES[name]), f"setns {name}")
        os.close(handle)


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    """Mount a file system of ``kind`` on ``target`` (mount(2))."""
    answer = _libc.mount(
        source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode()
    )
    _checked(answer, f"mount {kind} on {target}")


def unmount(target: str) -> None:
    """Take ``target`` out of the tree; what is built on it lives on (umount2(2), MNT_DETACH)."""
    _checked(_libc.umount2(target.encode(), MNT_DETACH), f"umount {target}")


def set_host_name(name: str) -> None:
    """Name this UTS namespace (sethostname(2))."""
    _checked(_libc.sethostname(name.encode(), len(name.encode())), f"sethostname {name}")


def die_with_parent(signal_number: int) -> None:
    """Have the kernel send us ``signal_number`` when our parent ends (prctl(2), PR_SET_PDEATHSIG)."""
    _checked(_libc.prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0), "prctl PR_SET_PDEATHSIG")
