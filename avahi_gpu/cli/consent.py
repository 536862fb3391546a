"""Asking before the machine is changed."""

from __future__ import annotations

import sys

from avahi_gpu.errors import AS_ROOT, Misuse, NeedsRoot


def demand_root(is_root: bool, command: str) -> None:
    """Raise NeedsRoot for whoever may not change the machine."""
    if not is_root:
        raise NeedsRoot(
            f"{command} changes files of the system, which only root may do",
            f"run: {AS_ROOT} {command}",
        )


def demand_consent(*, yes: bool, as_json: bool, command: str) -> None:
    """Raise Misuse where consent is needed and nobody can be asked."""
    if not yes and (as_json or not sys.stdin.isatty()):
        reason = "--json prints nothing but the result" if as_json else "stdin is not a terminal"
        raise Misuse(
            f"{command} asks before it changes anything, and cannot ask here: {reason}",
            f"run: avahi-gpu {command} --yes",
        )


def consent(question: str) -> bool:
    """Ask on the terminal and return whether the answer is yes; none is no."""
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    try:
        return input().strip().lower() in ("y", "yes")
    except EOFError:
        return False
