"""The command line as a whole: what cannot be written, and words that it does not understand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from avahi_gpu.cli.app import read_ahead
from avahi_gpu.cli.pages import page_of
from avahi_gpu.cli.program import COMMANDS, HIDDEN, run

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
        ("peers --json --nonsense", "there is no option --nonsense of avahi-gpu peers"),
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


@pytest.mark.parametrize(
    ("words", "says", "hint"),
    [
        ("peers --watc", "there is no option --watc of avahi-gpu peers", "did you mean --watch?"),
        ("peers --jsno=x", "there is no option --jsno of avahi-gpu peers", "did you mean --json?"),
        ("peers watch", "unexpected", "did you mean --watch?"),
        ("peers --xyz", "no option --xyz", "`avahi-gpu peers --help` tells what is understood"),
        ("--verison", "there is no option --verison of avahi-gpu", "did you mean --version?"),
        ("--expect 3 peers", "--expect is an option of avahi-gpu peers", "avahi-gpu peers --expect"),
        ("dcotor", "there is no command dcotor", "did you mean avahi-gpu doctor?"),
        ("nodes", "there is no command nodes", "did you mean avahi-gpu peers?"),
        ("ag104", "there is no command ag104", "did you mean avahi-gpu explain AG104?"),
        ("help peesr", "there is no command peesr", "did you mean avahi-gpu peers?"),
        ("refersh", "there is no command refersh", "`avahi-gpu --help` tells"),  # hidden ones stay so
        ("doctor --fail-on x", "'x' is not one of 'warn', 'error'", "avahi-gpu doctor --help"),
        ("explain", "Missing argument 'ID'", "avahi-gpu explain --help"),
        ("launch --nnode 2 train.py", "--nnode of avahi-gpu launch", "did you mean --nnodes?"),
        ("\x1b[2J", "there is no command \\x1b[2J", "avahi-gpu --help"),
    ],
)
def test_a_slip_is_told_with_what_was_probably_meant(
    words: str, says: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words.split()) == 2

    out, err = capsys.readouterr()
    told, advice = err.splitlines()
    assert out == ""
    assert told.startswith("avahi-gpu: ") and says in told
    assert hint in advice


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_help_lists_the_commands_without_loading_one(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 0

    shown = capsys.readouterr().out.splitlines()
    assert [name for name in COMMANDS if not any(line.startswith(f"  {name} ") for line in shown)] == [
        "refresh"
    ]
    assert max(map(len, shown)) <= 80


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in HIDDEN])
def test_help_of_a_command_fits_into_eighty_columns_and_tells_all(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["help", command]) == run([command, "-h"]) == 0

    shown = capsys.readouterr().out
    first, second = shown[: len(shown) // 2], shown[len(shown) // 2 :]
    assert first == second
    assert first.startswith(f"Usage: avahi-gpu {command} [OPTIONS]")
    examples = [e.line for e in page_of(command).examples]
    assert [line for line in first.splitlines() if len(line) > 80 and line.strip() not in examples] == []
    assert [line for line in examples if line not in first] == []
    assert "\x1b" not in first


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_help_fits_where_it_is_shown(width: int) -> None:
    ended = subprocess.run(
        [*PROGRAM.split(), "launch", "--help"],
        env={"PATH": "/usr/bin:/bin", "COLUMNS": str(width)},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip

    copied = [e.line for e in page_of("launch").examples]
    titles = ("--nproc-per-node", "[-- TORCHRUN")  # a title is never broken
    lines = [
        line
        for line in ended.stdout.splitlines()
        if line.strip() not in copied and not line.strip().startswith(titles)
    ]
    assert max(map(len, lines)) <= min(width, 80)


def test_the_name_alone_tells_what_to_do_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2

    shown = capsys.readouterr().out
    assert shown.index(" setup") < shown.index("avahi-gpu peers") < shown.index("avahi-gpu launch")
    assert "avahi-gpu --help" in shown


def test_without_json_the_parsers_errors_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["peers", "--nonsense"]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert "--nonsense" in err and "Traceback" not in err
