"""The attributes of a file that bind root too (chattr(1)). Used by ``host.system`` alone."""

from __future__ import annotations

import array
import fcntl
import struct

_GET_FLAGS = 0x80086601 if struct.calcsize("l") == 8 else 0x80046601  # FS_IOC_GETFLAGS (linux/fs.h)
_LOCKED = 0x10 | 0x20  # FS_IMMUTABLE_FL, FS_APPEND_FL


def is_locked(handle: int) -> bool:
    """Whether nobody may rewrite the file; False also where its file system has no attributes."""
    flags = array.array("l", [0])
    try:
        fcntl.ioctl(handle, _GET_FLAGS, flags)
    except OSError:
        return False
    return bool(flags[0] & _LOCKED)
