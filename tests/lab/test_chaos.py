"""The short version of ``make chaos``: one job of three hosts under three faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.judge import count, judge
from chaos.plan import make
from chaos.run import run_job

pytestmark = pytest.mark.lab

SEED = 6  # a member frozen until the others train without it; one killed while another one's bus is away


def test_a_job_keeps_its_promises_under_a_few_faults(tmp_path: Path) -> None:
    (job,) = make(SEED, jobs=1, faults=3, sizes=(3,))
    assert [str(burst) for burst in job.bursts] == [
        "freeze 2, 0.5 s; survivors train",
        "kill-all 3, 0.8 s, bus-stop 1, 2.28 s; survivors train",
    ]

    evidence = run_job(job, tmp_path, print)

    assert judge(evidence) == []
    counts = count(evidence)
    assert counts.rounds >= 5  # the first, and two for each burst
    assert counts.steps >= 15
