"""The command line as a whole: what cannot be written, and words that it does not understand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from avahi_gpu.cli.app import read_ahead
from avahi_gpu.cli.program import run

PROGRAM = f"{sys.executable} -m avahi_gpu.cli.app"


@pytest.mark.parametrize("command", ["explain AG104", "doctor --list", "doctor --json --only AG101"])
@pytest.mark.parametrize("where", [">/dev/full", ">&-", ">&- 2>&-"])
def test_an_output_that_cannot_be_written_ends_without_a_traceback(command: str, where: str) -> None:
    ended = subprocess.run(
        ["sh", "-c", f"{PROGRAM} {command} {where}"], check=False, capture_output=True, text=True, timeout=60
    )

    assert "Traceback" not in ended.stderr
    if where == ">/dev/full":
        assert ended.returncode == 1
        assert "cannot be written" in ended.stderr


@pytest.mark.parametrize(
    "command", ["doctor --report report.txt", "launch --nnodes 1 train.py", "launch --nnodes 1 /train.py"]
)
def test_a_current_folder_that_has_been_removed_is_told(command: str, tmp_path: Path) -> None:
    leave = "mkdir gone && cd gone && rmdir ../gone"
    ended = subprocess.run(
        ["sh", "-c", f"{leave} && exec {PROGRAM} {command}"],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert ended.returncode == 2
    assert "the current folder has been removed" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("words", "command", "as_json"),
    [
        ("peers --json", "peers", True),
        ("--json peers", "peers", True),
        ("doctor --format json gpu-node-2", "doctor", True),
        ("doctor --format=json", "doctor", True),
        ("doctor --format text", "doctor", False),
        ("doctor json --format", "doctor", False),
        ("peers -- --json", "peers", False),
        ("launch train.py --json", "launch", False),  # the script's own
        ("nonsense --json", "nonsense", True),
        ("", "", False),
    ],
)
def test_whether_json_is_wanted_is_known_before_the_words_are_understood(
    words: str, command: str, as_json: bool
) -> None:
    assert read_ahead(words.split()) == (command, as_json)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("peers --json --nonsense", "No such option"),
        ("setup --json --only", "--only"),
        ("nonsense --json", "nonsense"),
        ("doctor --format json --fail-on nothing", "fail-on"),
        ("peers --json too many", "too"),
    ],
)
def test_under_json_the_parsers_own_errors_are_one_object(
    words: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words.split()) == 2

    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["command"], told["status"], told["exit_code"]) == (read_ahead(words.split())[0], "error", 2)
    assert told["errors"][0]["code"] == "usage"
    assert says in told["errors"][0]["message"]
    assert told["errors"][0]["hint"]
    assert err == ""


def test_without_json_the_parsers_errors_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["peers", "--nonsense"]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert "--nonsense" in err and "Traceback" not in err
