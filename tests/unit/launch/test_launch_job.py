"""What ``launch`` hands on to people while a job runs, and what it leaves to torch's own loggers."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator, Sequence

import pytest

from avahi_gpu.launch.command import Program, Request
from avahi_gpu.launch.job import Progress, own_host, quiet_import, settings_of
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.dealings import Notice
from avahi_gpu.rendezvous.messages import Seat, Skills, Token


class Screen:
    """Keeps the lines that stay."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.excluded = ""

    def event(self, text: str) -> None:
        self.lines.append(text)

    def state(self, text: str, present: Sequence[str]) -> None:
        pass

    def see(self, names: Collection[str]) -> None:
        pass

    def exclude(self, name: str) -> None:
        self.excluded = name

    def over(self) -> None:
        pass


class Job:
    """A job's progress, whose clock is turned by hand."""

    def __init__(self) -> None:
        self.now, self.screen = 100.0, Screen()
        request = Request(Program((), "train.py", ()), "train", 2, 3)
        self.progress = Progress(request, self.screen, lambda: self.now)

    def round(self, *numbers: int) -> None:
        seats = tuple(Seat(f"{n:016x}", f"node-{n}", f"10.0.0.{n}", 4000) for n in numbers)
        formed = steps.Round(Token(1, seats[0].id), seats, 0, 30000, 29500)
        self.progress.hear(Notice("round", formed=formed))
        self.progress.begin()
        self.progress.run()


def test_what_happens_is_in_the_last_line() -> None:
    job = Job()
    job.round(1, 2, 3)
    job.now = 160.0
    job.progress.hear(Notice("regrouping: node-3 left", over="node-3 left"))
    job.now = 161.0
    job.round(1, 2)
    job.now = 170.0
    job.progress.conclude("finished")

    assert job.screen.lines[-2:] == [
        "round",
        "job train: finished after 1 min 10 s, 2 rounds of 2 to 3 nodes, "
        "1 node lost (node-3 after 1 min: left), regroup took 1.0 s (agreed after 1.0 s)",
    ]


def test_a_failure_is_told_with_the_restarts_that_are_left_but_the_last_one_by_others() -> None:
    job = Job()
    job.round(1, 2)
    job.progress.fail("rank 1 ended with exit code 7", restarts_left=2)
    job.round(1, 2)
    job.progress.fail("rank 1 ended with exit code 7", restarts_left=0)

    told = [line for line in job.screen.lines if "exit code 7" in line]
    assert told == [
        f"{own_host()}: rank 1 ended with exit code 7; its workers start again, 1 restart left after this one"
    ]


def test_an_end_is_told_at_once_until_torch_is_loaded_and_by_the_last_word_from_then_on() -> None:
    early, late = Job(), Job()
    late.progress.loaded = True
    for job in (early, late):
        job.progress.hear(Notice("node-1 refuses this node", ended=True))

    assert early.screen.lines == ["node-1 refuses this node"]
    assert late.screen.lines == []


def test_a_node_gets_what_the_settings_of_its_machine_say() -> None:
    program = Program((), "train.py", ())
    request = Request(program, "train", 2, 3, priority=7, interfaces=("eth0",), interface_words="as I say")

    settings = settings_of(request, Skills(min_nodes=2, max_nodes=3))

    assert (settings.priority, settings.interfaces, settings.interface_words) == (7, ("eth0",), "as I say")


def test_a_node_that_cannot_join_is_told_and_marked() -> None:
    job = Job()
    job.progress.hear(Notice("node-2 holds another cluster key", excluded="node-2"))

    assert (job.screen.lines, job.screen.excluded) == (["node-2 holds another cluster key"], "node-2")


def test_a_job_that_never_began_ends_without_a_summary() -> None:
    job = Job()
    job.progress.conclude("ended")

    assert job.screen.lines == []


@pytest.fixture
def torch_logger() -> Iterator[logging.Logger]:
    """A logger such as torch elastic's; the levels of all of torch's are put back."""
    ours = logging.getLogger("torch.distributed.elastic.made.up")
    before = {n: x for n, x in logging.root.manager.loggerDict.items() if isinstance(x, logging.Logger)}
    levels = {name: logger.level for name, logger in before.items()}
    ours.setLevel(logging.WARNING)
    yield ours
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.mark.parametrize(
    ("variable", "quiet"), [(None, True), ("LOGLEVEL", False), ("TORCH_LOGS", False), ("AVAHI_GPU_LOG", True)]
)
def test_torchs_own_log_levels_are_respected(
    variable: str | None, quiet: bool, torch_logger: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LOGLEVEL", "TORCH_LOGS", "TORCH_CPP_LOG_LEVEL"):
        monkeypatch.delenv(name, raising=False)
    if variable:
        monkeypatch.setenv(variable, "debug")

    with quiet_import():
        pass

    assert torch_logger.isEnabledFor(logging.WARNING) is not quiet
    assert "TORCH_CPP_LOG_LEVEL" not in os.environ  # the workers' torch is not touched
