"""Look a name up through glibc, in a process that runs already; print what that took as JSON.

    look_up.py NAME RUNS              [[milliseconds, whether it was found], …]
    look_up.py NAME until ADDRESS     when the name first meant ADDRESS, by the monotonic clock of the machine

What loads the modules of the name service is asked first, and not timed.
"""

from __future__ import annotations

import json
import socket
import sys
import time

POLL_S = 0.02
WITHIN_S = 60.0


def look_up(name: str) -> str | None:
    """Return the first IPv4 address that glibc gives."""
    try:
        return str(socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return None


def times(name: str, runs: int) -> list[tuple[float, bool]]:
    taken = []
    for _ in range(runs):
        began = time.monotonic()
        found = look_up(name) is not None
        taken.append((1000 * (time.monotonic() - began), found))
    return taken


def until(name: str, address: str) -> float | None:
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        if look_up(name) == address:
            return time.monotonic()
        time.sleep(POLL_S)
    return None


if __name__ == "__main__":
    look_up(f"{socket.gethostname()}.local")
    asked, how = sys.argv[1:3]
    print(json.dumps(until(asked, sys.argv[3]) if how == "until" else times(asked, int(how))))
