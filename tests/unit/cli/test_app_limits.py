"""The program under limits and in odd locales: a sentence, and no traceback."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from avahi_gpu.cli.diagnosis import Order, demand_sense
from avahi_gpu.cli.verdicts import FailOn, Format
from avahi_gpu.errors import Misuse

DOCTOR = ["-c", "from avahi_gpu.cli.app import main; main()", "doctor", "--only", "names"]


def test_without_threads_it_says_so() -> None:
    line = 'ulimit -v 200000; exec "$0" "$@"'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable, *DOCTOR], capture_output=True, text=True, check=False, timeout=60
    )

    assert "Traceback" not in done.stderr, done.stderr
    # whether so little room is too little depends on the machine's libraries
    assert "limit of this process" in done.stderr or " fine" in done.stdout.splitlines()[-1]


def test_an_encoding_that_lacks_letters_is_no_hindrance() -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "30"}
    done = subprocess.run(
        [sys.executable, *DOCTOR], capture_output=True, text=True, check=False, timeout=60, env=env
    )

    assert done.returncode in (0, 1) and "Traceback" not in done.stderr


def test_a_name_that_is_not_utf8_is_refused() -> None:
    order = Order(("\udcff",), (), (), False, False, Format.text, FailOn.error, None, None)

    with pytest.raises(Misuse, match="not UTF-8"):
        demand_sense(order)
