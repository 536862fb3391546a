"""How failures of workers become one sentence and one exit code."""

from __future__ import annotations

import pytest

from avahi_gpu.launch.outcome import Failure, describe, exit_code, first_failure


@pytest.mark.parametrize(("code", "shown"), [(7, 7), (1, 1), (-9, 137), (-15, 143), (-11, 139)])
def test_the_exit_code_is_the_scripts_or_what_a_shell_shows_for_its_signal(code: int, shown: int) -> None:
    assert exit_code([Failure(0, 10, code)]) == shown


def test_no_failure_is_success() -> None:
    assert exit_code([]) == 0


def test_the_first_failure_counts_and_the_lowest_rank_among_equals() -> None:
    late, early, twin = Failure(0, 1, 1, moment=9), Failure(2, 2, 7, moment=8), Failure(1, 3, 3, moment=8)

    assert first_failure([late, early, twin]) == twin
    assert exit_code([late, early, twin]) == 3


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        (Failure(0, 1, 7), "rank 0 ended with exit code 7"),
        (Failure(3, 1, 1, "RuntimeError: no data"), "rank 3 ended with exit code 1 (RuntimeError: no data)"),
        (Failure(0, 1, -9), "rank 0 was ended by SIGKILL"),
        (Failure(0, 1, -99), "rank 0 was ended by signal 99"),
    ],
)
def test_a_failure_is_a_sentence(failure: Failure, sentence: str) -> None:
    assert describe(failure) == sentence
