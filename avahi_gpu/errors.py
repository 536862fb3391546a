"""The tree of errors and the exit codes of the command line.

Every error carries one sentence of what is and one of what to do. A traceback on a user's screen is a bug.
"""

from __future__ import annotations

import enum

# how root runs this program: sudo has a PATH of its own, on which a virtual environment is not
AS_ROOT = 'sudo "$(command -v avahi-gpu)"'


class ExitCode(enum.IntEnum):
    """Exit codes of every command; ``launch`` alone returns the script's own code instead."""

    FINE = 0
    FAILED = 1  # an error finding, or a change that failed
    USAGE = 2
    TOO_FEW_PEERS = 3
    NEEDS_ROOT = 4
    PENDING = 5  # --check: changes are pending
    LAUNCH_FAILED = 125  # launch: we failed before the script ran
    INTERRUPTED = 130


class AvahiGpuError(Exception):
    """Base of everything we raise on purpose.

    ``code`` is stable and meant for programs, ``message`` says what is, ``hint`` says what to do.
    """

    code = "error"
    exit_code = ExitCode.FAILED

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Misuse(AvahiGpuError):
    """The command line was used wrongly."""

    code = "usage"
    exit_code = ExitCode.USAGE


class Interrupted(AvahiGpuError):
    """Ctrl-C."""

    code = "interrupted"
    exit_code = ExitCode.INTERRUPTED


class MalformedInput(AvahiGpuError):
    """A file, record or line is not of its form. ``where`` is ``path:line`` or the sender."""

    code = "malformed-input"

    def __init__(self, where: str, message: str, hint: str = "") -> None:
        super().__init__(f"{where}: {message}", hint)
        self.where = where


class MalformedConfiguration(MalformedInput):
    """A configuration file of ours is wrong: a mistake of usage."""

    code = "malformed-configuration"
    exit_code = ExitCode.USAGE


class NeedsRoot(AvahiGpuError):
    """The change asked for is root's to make."""

    code = "needs-root"
    exit_code = ExitCode.NEEDS_ROOT


class TooFewPeers(AvahiGpuError):
    """Fewer peers than asked for were seen in time."""

    code = "too-few-peers"
    exit_code = ExitCode.TOO_FEW_PEERS


class ChangeFailed(AvahiGpuError):
    """A change of the machine failed; what was changed before is in the journal."""

    code = "change-failed"


class LaunchFailed(AvahiGpuError):
    """The job ended before its script ran on this node."""

    code = "launch-failed"
    exit_code = ExitCode.LAUNCH_FAILED


class MeasurementBroken(AvahiGpuError):
    """A measurement of the network ended before all was measured."""

    code = "measurement-broken"


class BusError(AvahiGpuError):
    """Base of what goes wrong on the way to Avahi."""

    code = "bus-error"


class BusUnavailable(BusError):
    """The D-Bus system bus does not answer."""

    code = "bus-unavailable"


class AvahiUnavailable(BusError):
    """The bus is there, avahi-daemon is not on it."""

    code = "avahi-unavailable"


class DeadlineExceeded(BusError):
    """A call on the bus was not answered in time."""

    code = "deadline-exceeded"


class AvahiCallFailed(BusError):
    """Avahi answered with an error. ``name`` is the D-Bus error name."""

    code = "avahi-call-failed"

    def __init__(self, name: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.name = name


class NameCollision(AvahiCallFailed):
    """Another host or service already has that name."""

    code = "name-collision"


class PublishingForbidden(AvahiCallFailed):
    """avahi-daemon.conf forbids publishing (disable-publishing, disable-user-service-publishing)."""

    code = "publishing-forbidden"


class ResolveTimeout(AvahiCallFailed):
    """Nobody answered for that name within Avahi's own five seconds."""

    code = "resolve-timeout"
