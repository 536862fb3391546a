"""``avahi-gpu setup``."""

from __future__ import annotations


def command() -> None:
    """Not written yet."""
    raise NotImplementedError
