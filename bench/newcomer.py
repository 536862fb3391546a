"""A bare Debian comes into a running job, by docs/how-to/adding-a-machine.md, on booted machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bench.measure import Chapter, Series, Wanted
from tests.lab.process import CommandFailed
from tests.machines.cache import NotMade
from tests.machines.newcomer import blocks_of_page, come_in, start_job, two_nodes_and_a_bare_one

WITHIN_S = 120.0  # wanted
STAGES = (  # the blocks of the page
    "apt and pip: Python, torch, avahi-gpu",
    "avahi-gpu setup",
    "avahi-gpu doctor, avahi-gpu peers",
    "scp of the script",
    "avahi-gpu launch, to the first step of all three",
)


def measure(runs: int, tell: Callable[[str], None]) -> Iterator[Chapter]:
    """Add a bare machine to a job of two, each time to new ones."""
    assert len(STAGES) == len(blocks_of_page())
    whole = Series("from bare to the first step", wanted=Wanted(median=WITHIN_S))
    stages = [Series(name) for name in STAGES]
    chapter = Chapter(
        "newcomer",
        "A bare Debian comes into a running job",
        "from the page's first command to the first step that all three have trained; packages are on disk",
        [whole, *stages],
    )
    for run in range(runs):
        tell(f"newcomer, run {run + 1} of {runs}")
        try:
            with two_nodes_and_a_bare_one() as lab:
                _, took = come_in(lab, start_job(lab))
        except NotMade as problem:
            raise RuntimeError(str(problem)) from None
        except (AssertionError, CommandFailed) as failure:
            tell(str(failure))
            whole.add("failed")
            continue
        whole.add(sum(took.values()))
        for series, seconds in zip(stages, took.values(), strict=True):
            series.add(seconds)
        yield chapter
