"""What ``peers`` refuses, before it asks anybody anything."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from avahi_gpu.cli.program import app


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--format", "deepspeed", "--watch"], "--format deepspeed goes with neither"),
        (["--list"], "--list"),
        (["--host", "gpu-node-1", "--format", "table"], "--host"),
        (["--format", "ansible", "--watch"], "an inventory"),
        (["--format", "hosts", "--list"], "--list"),
        (["--format", "svg", "--watch"], "--format svg goes with neither"),
        (["--format", "yaml"], "no such format"),
        (["--expect", "0"], "--expect 0"),
        (["--expect", "-3"], "--expect -3"),
        (["--timeout", "0"], "--timeout 0"),
        (["--timeout", "nan"], "--timeout nan"),
        (["--timeout", "inf"], "--timeout inf"),
        (["--watch", "--expect", "0"], "--expect 0"),
    ],
)
def test_nonsense_is_refused_in_two_sentences(options: list[str], says: str) -> None:
    done = CliRunner().invoke(app, ["peers", *options])

    assert done.exit_code == 2
    assert done.stdout == ""
    what, hint = done.stderr.splitlines()
    assert says in what
    assert hint.strip()


def test_under_json_a_refusal_is_an_object_too() -> None:
    done = CliRunner().invoke(app, ["peers", "--json", "--watch", "--timeout", "0"])

    assert done.exit_code == 2
    told = json.loads(done.stdout)
    assert (told["status"], told["errors"][0]["code"]) == ("error", "usage")


def test_a_number_that_is_none_is_a_usage_error() -> None:
    assert CliRunner().invoke(app, ["peers", "--expect", "many"]).exit_code == 2
