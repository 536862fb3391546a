"""The short version of ``make chaos``: one job of three hosts under three faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.judge import count, judge
from chaos.plan import make
from chaos.run import run_job

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]  # half a minute on an idle machine

SEED = 1704  # the leader is cut off, behind a restart of its bus, while Avahi is away on a member


def test_a_job_keeps_its_promises_under_a_few_faults(tmp_path: Path) -> None:
    (job,) = make(SEED, jobs=1, faults=3, sizes=(3,))
    assert [str(burst) for burst in job.bursts] == [
        "avahi-stop 3, 0.39 s, bus-restart 1, 0.9 s, cut 1, 0.38 s; survivors train",
    ]

    evidence = run_job(job, tmp_path, print)

    assert judge(evidence) == []
    counts = count(evidence)
    assert counts.rounds >= 3  # the first, without the leader, and all together
    assert counts.steps >= 9
