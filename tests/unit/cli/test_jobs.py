"""What ``jobs`` refuses, before it asks anybody anything."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from avahi_gpu.cli.program import app


@pytest.mark.parametrize(
    "options",
    [["--timeout", "0"], ["--timeout", "nan"], ["--timeout", "601"], ["--watch", "--json"],
     ["--watch", "--timeout", "3"]],
)  # fmt: skip
def test_nonsense_is_refused_in_two_sentences(options: list[str]) -> None:
    done = CliRunner().invoke(app, ["jobs", *options])

    assert done.exit_code == 2
    if "--json" not in options:
        assert done.stdout == ""
        what, hint = done.stderr.splitlines()
        assert options[0] in what and hint.strip()
