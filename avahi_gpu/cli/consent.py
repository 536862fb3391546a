"""Asking before the machine is changed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from avahi_gpu.changes.plan import without
from avahi_gpu.errors import AS_ROOT, Misuse, NeedsRoot
from avahi_gpu.model import Change
from avahi_gpu.render.diff import show_changes
from avahi_gpu.render.text import printable

if TYPE_CHECKING:
    from rich.console import Console


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


def ask_for(
    wanted: Sequence[Change], out: Console, *, yes: bool, with_diffs: bool
) -> Callable[[Sequence[Change]], Sequence[Change] | None] | None:
    """Ask for the changes that are wanted; return who answers for each step of them, None for a no.

    A change with a question of its own is asked for on its own. The answer to a step is the changes of it
    that may be made. What nobody foresaw is shown and asked for then; a no to that ends the work: None.
    """
    allowed: list[Change] = []

    def approve(step: Sequence[Change]) -> Sequence[Change] | None:
        unseen = without(step, wanted)
        if unseen:
            out.print("What was done so far calls for more:")
            show_changes(out, unseen, with_diffs=with_diffs)
            if not yes and not consent("Make these changes too?"):
                return None
            allowed.extend(_ask_own_questions(unseen, yes=yes))
        return [c for c in step if not without([c], allowed)]

    if not yes and with_diffs and len(wanted) > 1:  # what they are has scrolled away behind their diffs
        out.print("In short:")
        show_changes(out, wanted, with_diffs=False)
    if not yes and not consent("Make them?"):
        return None
    allowed.extend(_ask_own_questions(wanted, yes=yes))
    return approve if allowed else None


def _ask_own_questions(changes: Sequence[Change], *, yes: bool) -> list[Change]:
    # several changes may be one thing to people: what is asked in the same words is asked once
    questions = dict.fromkeys(c.question for c in changes if c.question and not yes)
    answers = {question: consent(printable(question, 1000)) for question in questions}
    return [c for c in changes if answers.get(c.question, True)]
