"""glibc's modules are called for real, each in a process of its own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.host.nss_call import NOTFOUND, SUCCESS, TRYAGAIN, UNAVAIL, join, show_answer
from avahi_gpu.host.nss_modules import call, parse
from avahi_gpu.host.process import Completed
from avahi_gpu.host.system import System
from avahi_gpu.model import ModuleAnswer


def test_files_knows_localhost_and_no_invented_name() -> None:
    there = call(System(), "files", "localhost")
    not_there = call(System(), "files", "surely-nobody.invalid")

    assert (there.status, there.loaded) == ("success", True)
    assert set(there.addresses) <= {"127.0.0.1", "::1"} and there.addresses
    assert (not_there.status, not_there.addresses) == ("notfound", ())


def test_a_module_that_is_not_there_is_told() -> None:
    answer = call(System(), "absent", "localhost")

    assert (answer.status, answer.loaded) == ("unavail", False)
    assert "libnss_absent.so.2" in answer.error


@pytest.mark.parametrize("name", ["", "--help", "a b", "x\0y", "ünïcode", "a" * 300])
def test_what_is_no_host_name_is_not_asked(name: str) -> None:
    assert call(System(), "files", name).status is None


@pytest.mark.parametrize(
    ("six", "four", "joined"),
    [
        (SUCCESS, NOTFOUND, SUCCESS),
        (UNAVAIL, SUCCESS, SUCCESS),
        (TRYAGAIN, NOTFOUND, TRYAGAIN),
        (NOTFOUND, UNAVAIL, NOTFOUND),
        (UNAVAIL, NOTFOUND, NOTFOUND),
        (NOTFOUND, TRYAGAIN, TRYAGAIN),
    ],
)
def test_two_families_make_one_status(six: int, four: int, joined: int) -> None:
    assert join(six, four) == joined


@pytest.mark.parametrize(
    ("done", "words"),
    [
        ({"returncode": None}, "in time"),
        ({"returncode": -11}, "signal 11"),
        ({"returncode": 1, "stderr": "no such thing"}, "no such thing"),
        ({"returncode": 0, "stdout": "{}"}, "{}"),
        ({"returncode": 0, "stdout": "loaded 1\nstatus many\nelapsed_s 0\nerror \n"}, "error"),
    ],
)
def test_whatever_way_the_process_ends_it_is_an_answer(done: dict[str, Any], words: str) -> None:
    completed = Completed(**{"argv": ("python",), "stdout": "", "stderr": "", "elapsed_s": 0.1, **done})

    answer = parse("mdns4_minimal", completed)

    assert answer.status is None and answer.loaded is None and words in answer.error


@given(st.text(max_size=80))
def test_any_output_is_an_answer(text: str) -> None:
    parse("dns", Completed(("python",), 0, text, "", 0.1))


def test_what_the_script_writes_is_read_again() -> None:
    told = {"loaded": True, "status": 1, "addresses": ["::1", "10.0.0.1"], "elapsed_s": 0.5, "error": "a\nb"}

    answer = parse("dns", Completed(("python",), 0, show_answer(told), "", 0.1))

    assert answer == ModuleAnswer("dns", "success", ("::1", "10.0.0.1"), 0.5, "a b", loaded=True)
