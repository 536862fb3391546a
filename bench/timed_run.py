"""Run a command on a virtual host; print its seconds, its peak memory in MB and its exit code as JSON.

A script of a bare interpreter, so that nothing is measured but the command: ``timed_run.py COMMAND…``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time


def main() -> None:
    began = time.monotonic()
    process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    took = time.monotonic() - began
    print(json.dumps({"seconds": took, "peak_mb": used.ru_maxrss / 1000, "code": process.returncode}))


if __name__ == "__main__":
    main()
