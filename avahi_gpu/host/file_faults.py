"""What the kernel says where a file cannot be read or written, and what to do about it."""

from __future__ import annotations

import errno

from avahi_gpu.errors import ChangeFailed

_LOCKED = "run it as root; if you are root, the file may be immutable (lsattr)"
_HINTS = {
    errno.EACCES: _LOCKED,
    errno.EPERM: _LOCKED,
    errno.EROFS: "the file system is mounted read-only",
    errno.ENOSPC: "free some space on the disk first",
    errno.EDQUOT: "the quota is used up: free some space first",
    errno.EIO: "the disk reports an error: see the kernel's log (dmesg)",
}
_ELSE = "see what is there (ls -ld), and run it again"


def failed_at(what: str, fault: OSError) -> ChangeFailed:
    """Return the error for ``what`` could not be done: the kernel's reason, and what to do."""
    hint = _HINTS.get(fault.errno or 0, _ELSE)
    return ChangeFailed(f"{what}: {fault.strerror or fault}", hint)
