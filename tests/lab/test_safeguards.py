"""The safeguards of the lab's tests can fail: leaks are caught, and CI does not skip in silence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.host import REPOSITORY

FIXTURES = "from tests.lab.conftest import _nothing_left, make_cluster, shared_cluster3\n"
LEAKS = {
    "a child of the test": "import subprocess\ndef test_leak(): subprocess.Popen(['sleep', '6'])\n",
    "a process in a shared host": (
        "def test_leak(shared_cluster3): shared_cluster3[0].run(['sh', '-c', 'sleep 60 >&- 2>&- &'])\n"
    ),
}


def pytest_run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a pytest of its own."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        f"{REPOSITORY}/pyproject.toml",
    ]
    return subprocess.run(
        [*command, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **environment},
        check=False,
    )


@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_is_an_error(leak: str, tmp_path: Path) -> None:
    file = tmp_path / "test_leaking.py"
    file.write_text(FIXTURES + LEAKS[leak])

    outcome = pytest_run(str(file))

    assert outcome.returncode == 1
    assert "the test left processes behind" in outcome.stdout
    assert "sleep 6" in outcome.stdout


@pytest.mark.parametrize(
    ("environment", "code", "word"), [({"CI": "true"}, 1, "1 error"), ({}, 0, "1 skipped")]
)
def test_missing_tools_fail_under_ci_and_skip_elsewhere(
    environment: dict[str, str], code: int, word: str
) -> None:
    test = "tests/lab/test_harness.py::test_a_missing_command_is_exit_code_127"
    outcome = pytest_run(test, **{**environment, "PATH": "/nowhere"})

    assert outcome.returncode == code
    assert word in outcome.stdout
    assert "avahi-daemon" in outcome.stdout
