"""The page docs/how-to/adding-a-machine.md, done to the letter."""

from __future__ import annotations

import os

import pytest

from tests.machines.cache import NotMade
from tests.machines.newcomer import blocks_of_page, come_in, start_job, two_nodes_and_a_bare_one


@pytest.mark.faults
@pytest.mark.slow
@pytest.mark.torch
def test_a_bare_debian_joins_a_running_job_by_the_commands_of_the_page() -> None:
    try:
        with two_nodes_and_a_bare_one(haste=True) as lab:
            nodes = start_job(lab)

            job, took = come_in(lab, nodes)

            job.wait_for("3 nodes (machine-1, machine-2, machine-3)")
            assert len(took) == len(blocks_of_page()) == 5
            for followed in [*nodes, job]:
                assert followed.process.poll() is None
    except NotMade as problem:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no machines with torch can be made here: {problem}")
