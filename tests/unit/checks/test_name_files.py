"""A pipe or a folder in the place of a file that look-ups read is one cause, and the only one told."""

from __future__ import annotations

from dataclasses import replace

import pytest

import avahi_gpu.checks  # noqa: F401  registers them
from avahi_gpu.checks.registry import run_checks
from avahi_gpu.model import NOT_A_FILE, Facts, FileState, Lookup

FIELDS = {"nsswitch": "/etc/nsswitch.conf", "etc_hosts": "/etc/hosts", "resolv_conf": "/etc/resolv.conf"}


def errors_of(facts: Facts) -> list[str]:
    return [f.id for f in run_checks(facts) if f.verdict == "error"]


@pytest.mark.parametrize("field", FIELDS)
def test_what_is_no_file_is_the_one_cause(healthy: Facts, field: str) -> None:
    state = FileState(FIELDS[field], None, 0o644, 0, 0, error=NOT_A_FILE)
    hung = Lookup("gpu-node-1.local", (), 11.0, "timeout")

    assert errors_of(replace(healthy, **{field: state}, own_name=hung, kernel_name=hung)) == ["AG100"]


def test_a_link_to_itself_is_told_as_such(healthy: Facts) -> None:
    state = FileState("/etc/nsswitch.conf", None, writable=False, error="Too many levels of symbolic links")

    errors = [f for f in run_checks(replace(healthy, nsswitch=state)) if f.verdict == "error"]

    assert [f.id for f in errors] == ["AG100"]
    assert "leads back to itself" in errors[0].says


@pytest.mark.parametrize("field", FIELDS)
def test_a_file_system_that_hangs_is_told_as_such(healthy: Facts, field: str) -> None:
    state = FileState(FIELDS[field], None, hangs=True, writable=False, error="no answer within 2 s")

    found = run_checks(replace(healthy, **{field: state}), only=["AG100"])

    assert found[0].verdict == "error"
    assert "hangs" in found[0].says


def test_a_file_that_is_missing_or_forbidden_is_not_this_cause(healthy: Facts) -> None:
    none = FileState("/etc/resolv.conf", None, error="No such file or directory")
    missing = replace(healthy, resolv_conf=none)
    forbidden = replace(healthy, etc_hosts=FileState("/etc/hosts", None, 0o600, error="Permission denied"))

    assert "AG100" not in errors_of(missing) + errors_of(forbidden)


@pytest.mark.parametrize("field", FIELDS)
def test_a_file_that_only_root_may_read_is_opened_and_nothing_else_of_it_changes(
    healthy: Facts, field: str
) -> None:
    state = replace(getattr(healthy, field), mode=0o640)

    (found,) = [f for f in run_checks(replace(healthy, **{field: state})) if f.verdict == "error"]

    assert found.id == "AG117" and found.evidence == (f"{state.path}: mode 0640, wanted 0644",)
    assert found.fix is not None
    (change,) = found.fix.changes
    assert (change.path, change.content, change.mode) == (state.path, state.content, 0o644)
