"""What ends us in the middle of a change: signals, and a program of ours that must not be cut off."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from avahi_gpu.host.interruption import Ended, heard, held
from avahi_gpu.host.system import System

WITHIN_S = 20.0
INSTALLS = """
import sys
from avahi_gpu.host.system import System
System().run_to_its_end(["sh", "-c", sys.argv[1]], 60, {}, lambda: print("told", flush=True))
"""
# writes more than a pipe holds, as a package manager does, and a mark when it has come to its end
WORK = (
    "trap 'echo int >>{0}' INT; echo begun >{0}; sleep 0.5 & wait; head -c 300000 /dev/zero; echo done >>{0}"
)


def wait_for(file: Path, text: str) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not file.exists() or text not in file.read_text():
        assert time.monotonic() < deadline, f"no {text} in {file}"
        time.sleep(0.02)


def start(mark: Path) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", INSTALLS, WORK.format(mark)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(mark, "begun")
    return process


def test_a_package_manager_goes_on_where_we_are_killed(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    process = start(mark)

    process.kill()
    process.communicate()

    wait_for(mark, "done")
    assert "int" not in mark.read_text()


def test_ctrl_c_is_handed_on_and_the_end_awaited(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    process = start(mark)

    process.send_signal(signal.SIGINT)
    output, complaint = process.communicate(timeout=WITHIN_S)

    assert mark.read_text() == "begun\nint\ndone\n"
    assert output == "told\n"
    assert "Ended: SIGINT" in complaint  # what the command line makes a sentence of


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_change_comes_to_its_end_before_a_signal_is_heard(number: signal.Signals) -> None:
    done = []
    default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    before = signal.signal(number, default)  # whoever runs us may have it ignored
    try:
        with pytest.raises(Ended, match=number.name), heard(), held():
            os.kill(os.getpid(), number)
            done.append("the change")

        assert done == ["the change"]
        assert signal.getsignal(number) is default
    finally:
        signal.signal(number, before)


def test_outside_a_change_a_signal_is_heard_at_once() -> None:
    with pytest.raises(Ended), heard():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(WITHIN_S)


def test_who_lets_us_ignore_a_signal_has_it_ignored() -> None:
    """As nohup does."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with heard(), held():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_output_needs_no_room_on_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/nowhere")
    done = System().start_daemon(["sh", "-c", "echo started; cat >&2", "sh"])

    assert (done.returncode, done.stdout, done.stderr) == (0, "started\n", "")
