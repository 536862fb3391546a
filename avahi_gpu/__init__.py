"""avahi-gpu: machines with GPUs on one LAN become one PyTorch cluster, found by Avahi."""

import os
import sys
from pathlib import Path

__version__ = "0.1.0"
__released__ = "2026-11-30"  # the date of this version, which its manual pages bear


def _leave_no_bytecode() -> None:
    """Let root leave no files in somebody's environment: its owner could not remove it any more.

    ``sudo ~/.local/bin/avahi-gpu setup`` is the way to call it after pipx or uv; uv compiles nothing itself.
    """
    here = Path(__file__)
    try:
        if os.geteuid() != 0 or here.stat().st_uid == 0 or "site-packages" not in here.parts:
            return
        sys.dont_write_bytecode = True
        own = Path(__spec__.cached or "")  # written a moment ago, before this was run
        if own.lstat().st_uid == 0:
            own.unlink()
            own.parent.rmdir()
    except OSError:
        pass


_leave_no_bytecode()
