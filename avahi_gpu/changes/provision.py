"""Change the machine step by step, reading it again after each: what one step brings along is seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from avahi_gpu.changes import journal
from avahi_gpu.changes.plan import Judge, next_step, plan, without
from avahi_gpu.host.system import System
from avahi_gpu.model import Change, Facts

MAX_STEPS = 8  # packages, files and daemons, each again where one brought the next to light

Read = Callable[[Facts], Facts]
Approve = Callable[[Sequence[Change]], bool]
Say = Callable[[str], None]


def provision(
    facts: Facts,
    *,
    judge: Judge,
    read: Read,
    approve: Approve,
    system: System,
    made: list[Change],
    say: Say = lambda _: None,
) -> Facts:
    """Make what the findings of ``judge`` ask for until they ask for nothing new; return the last facts.

    ``read`` gets the facts before a step and returns those after it. ``approve`` is asked before each step
    with its changes, and ends the work where it says no. What was made is added to ``made``, which is right
    also where this raises ChangeFailed. A package may write the very file that was to be changed next, so
    nothing is done from an old plan.
    """
    with journal.locked(system):
        for _ in range(MAX_STEPS):
            # what was made and is asked for again did not help: a finding will say so
            step = next_step(without(plan(judge(facts)), made))
            if not step or not approve(step):
                break
            for change in step:
                made += journal.apply([change], system, say)
            facts = read(facts)
    return facts
