"""What the doctor's options may say. Apart from the doctor, whose checks take their time to load."""

from __future__ import annotations

import enum


class Format(str, enum.Enum):
    """How the findings are printed."""

    text = "text"
    json = "json"
    nagios = "nagios"


class FailOn(str, enum.Enum):
    """Which findings make the exit code 1."""

    warn = "warn"
    error = "error"
