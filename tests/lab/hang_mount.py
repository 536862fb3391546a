"""Mount a file system that answers nothing over a file or a folder, until stdin ends: ``hang_mount.py PATH``.

As NFS whose server has gone; by FUSE (Documentation/filesystems/fuse.rst), whose requests nobody takes.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys

MNT_DETACH = 2


def main() -> None:
    path = sys.argv[1].encode()
    libc = ctypes.CDLL(None, use_errno=True)
    handle = os.open("/dev/fuse", os.O_RDWR)
    kind = stat.S_IFMT(os.stat(path).st_mode)
    options = f"fd={handle},rootmode={kind:o},user_id=0,group_id=0".encode()
    if libc.mount(b"hangs", path, b"fuse", 0, options) != 0:
        sys.exit(os.strerror(ctypes.get_errno()))
    print("ready", flush=True)
    sys.stdin.read()
    libc.umount2(path, MNT_DETACH)


if __name__ == "__main__":
    main()
