"""The JSON envelope that every command prints under ``--json``; its shape is pinned by a contract test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from avahi_gpu.errors import AvahiGpuError, ExitCode

ENVELOPE_VERSION = 1

Status = Literal["ok", "partial", "error"]


@dataclass(frozen=True)
class Result:
    """What a command found or did. ``data`` is JSON-ready; ``exit_code`` is the process's.

    ``partial`` tells that part of the answer is there although ``errors`` is not empty or the exit code is
    not zero.
    """

    command: str
    data: dict[str, Any]
    exit_code: int = ExitCode.FINE
    errors: tuple[AvahiGpuError, ...] = field(default=())

    @property
    def status(self) -> Status:
        if not self.errors and self.exit_code in (ExitCode.FINE, ExitCode.PENDING):
            return "ok"
        return "partial" if self.data else "error"

    def envelope(self) -> dict[str, Any]:
        """Return ``{"version", "command", "status", "exit_code", "data", "errors"}``."""
        return {
            "version": ENVELOPE_VERSION,
            "command": self.command,
            "status": self.status,
            "exit_code": int(self.exit_code),
            "data": self.data,
            "errors": [{"code": e.code, "message": e.message, "hint": e.hint} for e in self.errors],
        }


def failed(command: str, error: AvahiGpuError) -> Result:
    """Return the result of a command that ended with ``error`` and nothing else to show."""
    return Result(command, {}, error.exit_code, (error,))
