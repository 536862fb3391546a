"""The time of day, for people alone: machines' clocks may be hours apart, and nothing is decided by them."""

from __future__ import annotations

import time


def unix_time() -> int:
    """Return seconds since 1970, as this machine believes."""
    return int(time.time())
