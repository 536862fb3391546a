"""The bench measures, and keeps what it has measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.host import REPOSITORY

pytestmark = pytest.mark.lab


def test_a_part_of_the_bench_runs_and_leaves_its_figures(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    command = [sys.executable, "-m", "bench", "--quick", "--only", "agreement", "--json", str(file)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=100, check=False)

    assert done.returncode == 0, done.stderr
    data = json.loads(file.read_text())
    assert data["parts"]["agreement"]["complete"] is True
    (series,) = data["chapters"][0]["series"]
    assert len(series["values"]) == 5
    assert "three nodes, one round" in done.stdout
