"""What launch relies on in the installed torch."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from avahi_gpu.errors import LaunchFailed, Misuse
from avahi_gpu.launch import tether
from avahi_gpu.launch.command import (
    OURS,
    TORCHRUN_FLAGS,
    TORCHRUN_VALUES,
    Program,
    Request,
    torchrun_arguments,
)

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def agent() -> object:
    from avahi_gpu.launch import agent

    return agent


def test_the_table_of_torchruns_flags_is_the_one_of_the_installed_torch() -> None:
    from torch.distributed.run import get_args_parser

    parser = get_args_parser()
    flags = {o for a in parser._actions if a.nargs == 0 for o in a.option_strings if o.startswith("--")}
    known = {flag.replace("_", "-") for flag in flags}
    # an older torch may know fewer; one that it takes for a flag and we do not would hide the script
    assert known <= set(TORCHRUN_FLAGS)
    assert set(TORCHRUN_FLAGS) - known <= {"--virtual-local-rank"}
    options = {o.replace("_", "-") for a in parser._actions for o in a.option_strings}
    assert set(OURS) <= options
    # each that launch leaves to the user, or it would be refused as unknown
    values = {option for option in options if option.startswith("--")} - known - set(OURS)
    assert values <= set(TORCHRUN_VALUES)


def test_torchrun_reads_the_arguments_as_they_are_meant(agent: object) -> None:
    program = Program(("--max-restarts=2", "-m"), "pkg.train", ("--lr", "1"), "module")
    asked = Request(program, "train", 2, 3, lost_after_s=3.0)
    config, entrypoint, words = agent.read_arguments(torchrun_arguments(asked, 2))  # type: ignore[attr-defined]

    assert (config.min_nodes, config.max_nodes, config.nproc_per_node) == (2, 3, 2)
    assert (config.rdzv_backend, config.run_id, config.max_restarts) == ("avahi", "train", 2)
    assert config.rdzv_configs["lost_after"] == "3"
    assert entrypoint == sys.executable
    assert words == ["-u", "-m", "pkg.train", "--lr", "1"]


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("--max-restarts=-1", "max_restarts"),
        ("--max-restarts=many", "invalid int value: 'many'"),  # argparse itself prints, and ends the process
        ("--of-tomorrow=1", "unrecognized arguments"),
    ],
)
def test_what_torchrun_refuses_is_a_sentence(
    agent: object, option: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = Request(Program((option,), "train.py", ()), "train", 1, 1)
    with pytest.raises(Misuse, match=says):
        agent.read_arguments(torchrun_arguments(asked, 1))  # type: ignore[attr-defined]
    assert capsys.readouterr().err == ""


def test_without_gpus_auto_is_one_process_and_gpu_is_refused(
    agent: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert agent.count_processes("auto") == 1  # type: ignore[attr-defined]
    assert agent.count_processes("4") == "4"  # type: ignore[attr-defined]
    with pytest.raises(LaunchFailed, match="no GPU"):
        agent.count_processes("gpu")  # type: ignore[attr-defined]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert agent.count_processes("auto") == 2  # type: ignore[attr-defined]


def test_the_last_words_of_a_worker_are_taken_from_its_error_file(agent: object, tmp_path: Path) -> None:
    from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

    silent = ProcessFailure(0, 11, 7, str(tmp_path / "none.json"))
    assert agent.describe_failure(2, silent).message == ""  # type: ignore[attr-defined]
    assert agent.describe_failure(2, silent).code == 7  # type: ignore[attr-defined]

    file = tmp_path / "error.json"
    file.write_text(
        '{"message": {"message": "ValueError: no data\\n",'
        ' "extraInfo": {"timestamp": "5", "py_callstack": ""}}}'
    )
    told = agent.describe_failure(0, ProcessFailure(0, 11, 1, str(file)))  # type: ignore[attr-defined]
    assert (told.message, told.moment) == ("ValueError: no data", 5)


def tethered(parent: int, *argv: str) -> list[str]:
    return [sys.executable, "-I", "-S", tether.__file__, str(parent), *argv]


def test_a_tethered_program_keeps_its_process_id_environment_and_exit_code() -> None:
    process = subprocess.Popen(
        tethered(os.getpid(), "sh", "-c", "echo $$ $PYTHONPATH; exit 7"),
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": "mine"},
        text=True,
    )
    assert process.communicate(timeout=10)[0] == f"{process.pid} mine\n"
    assert process.returncode == 7


def test_a_tethered_program_dies_with_its_parent_even_by_sigkill() -> None:
    ours, theirs = os.pipe()  # its reading end sees the end once nobody holds the writing end any more
    code = (
        "import os, subprocess, sys\n"
        f"argv = {tethered(0, 'sh', '-c', 'echo ready; exec sleep 60')!r}\n"
        f"argv[4] = str(os.getpid())\n"
        f"subprocess.Popen(argv, stdout={theirs})\n"
        "sys.stdin.read()"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, pass_fds=[theirs])
    os.close(theirs)
    try:
        assert os.read(ours, 100) == b"ready\n"
        parent.kill()
        assert select.select([ours], [], [], 5)[0], "it lives on"
        assert os.read(ours, 100) == b""
    finally:
        parent.kill()
        parent.communicate()
        os.close(ours)


def test_a_program_whose_parent_is_gone_already_does_not_start() -> None:
    done = subprocess.run(tethered(1 << 22, "echo", "started"), capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")


def test_a_program_that_is_not_there_is_a_sentence() -> None:
    done = subprocess.run(tethered(os.getpid(), "no-such"), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        127,
        "avahi-gpu: cannot run no-such: No such file or directory\n",
    )


def test_torchs_own_folder_is_swept_unless_it_holds_logs(agent: object, tmp_path: Path) -> None:
    empty, full = tmp_path / "empty", tmp_path / "full"
    for folder in (empty, full):
        (folder / "job_1" / "attempt_0" / "0").mkdir(parents=True)
        (folder / "job_1" / "attempt_0" / "0" / "error.json").write_text("{}")
    log = full / "job_1" / "attempt_0" / "0" / "stdout.log"
    log.write_text("loss 0.1")
    for folder in (empty, full):
        agent.sweep(folder)  # type: ignore[attr-defined]
    assert not empty.exists()
    assert log.read_text() == "loss 0.1"
