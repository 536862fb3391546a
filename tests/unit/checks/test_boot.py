"""The unit that renders the service file at boot, as the doctor and setup see it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from avahi_gpu.changes.plan import plan_all
from avahi_gpu.checks.registry import run_checks, setup_findings
from avahi_gpu.model import BootUnit, Facts, FileState, Finding

UNIT = "avahi-gpu-facts.service"
PATH = f"/etc/systemd/system/{UNIT}"
MISSING = FileState(PATH, None, error="No such file or directory")


def with_unit(facts: Facts, unit: BootUnit | None = None, **changes: Any) -> Facts:
    present = facts.host.boot_unit
    assert present is not None
    return replace(facts, host=replace(facts.host, boot_unit=unit or replace(present, **changes)))


def ask(facts: Facts, id: str) -> Finding:
    return next(f for f in run_checks(facts, [id]) if f.id == id)


def test_setup_writes_the_unit_and_enables_it_in_this_order(healthy: Facts) -> None:
    facts = with_unit(healthy, file=MISSING, enabled=False)

    changes, _ = plan_all(facts, setup_findings)

    assert [(c.kind, c.path or c.argv) for c in changes] == [
        ("file", PATH),
        ("command", ("systemctl", "enable", UNIT)),
    ]
    assert changes[1].undo == ("systemctl", "disable", UNIT)
    assert changes[0].before is None and changes[0].mode == 0o644


def test_another_unit_is_replaced_and_stays_enabled(healthy: Facts) -> None:
    facts = with_unit(healthy, file=FileState(PATH, b"of an older version", 0o644, 0, 0))

    changes, after = plan_all(facts, setup_findings)

    assert [c.path for c in changes] == [PATH]
    assert ask(after, "AG511").verdict == "ok"


def test_a_masked_unit_is_left_masked(healthy: Facts) -> None:
    masked = FileState(PATH, None, 0o666, 0, 0, link_target="/dev/null", error="not a regular file")

    facts = with_unit(healthy, file=masked, masked=True, enabled=False)

    assert plan_all(facts, setup_findings)[0] == []
    assert ask(facts, "AG511").verdict == "info"
    assert ask(facts, "AG512").verdict == "skip"


@pytest.mark.parametrize("id", ["AG511", "AG512", "AG513", "AG514"])
def test_without_systemd_nothing_is_asked(healthy: Facts, id: str) -> None:
    facts = replace(healthy, init="other", host=replace(healthy.host, boot_unit=None))

    assert ask(facts, id).verdict == "skip"


def test_what_could_not_be_read_is_unknown_with_its_reason(healthy: Facts) -> None:
    facts = replace(
        healthy,
        host=replace(healthy.host, boot_unit=None),
        unread={"host.boot_unit": "no answer within 5 s"},
    )

    assert ask(facts, "AG511").verdict == "unknown"
    assert "no answer within 5 s" in ask(facts, "AG511").says


@pytest.mark.parametrize(
    ("changes", "id", "verdict", "word"),
    [
        ({"result": "exit-code"}, "AG513", "warn", "exit-code"),
        ({"result": ""}, "AG513", "ok", ""),
        ({"enabled": None}, "AG512", "unknown", "did not tell"),
        ({"frail": "it lies in somebody's home folder"}, "AG514", "info", "home"),
        ({"wanted": None, "program": ""}, "AG511", "warn", "no avahi-gpu"),
        ({"wanted": None, "exposed": "/home/u belongs to user 1000"}, "AG511", "warn", "user 1000"),
        ({"wanted": None, "present_exposed": "/home/u belongs to user 1000"}, "AG511", "error", "user 1000"),
        ({"file": FileState(PATH, None, 0o600, 0, 0, error="Input/output error")}, "AG511", "unknown", "I"),
    ],
)
def test_each_state_is_told(
    healthy: Facts, changes: dict[str, Any], id: str, verdict: str, word: str
) -> None:
    found = ask(with_unit(healthy, **changes), id)

    assert found.verdict == verdict
    assert word in found.says


def test_a_unit_that_runs_what_others_may_change_is_replaced_or_its_removal_told(healthy: Facts) -> None:
    old = FileState(PATH, b"of an older setup", 0o644, 0, 0)
    facts = with_unit(healthy, file=old, present_exposed="/home/u belongs to user 1000")

    changes, _ = plan_all(facts, setup_findings)
    told = ask(with_unit(facts, wanted=None), "AG511").fix

    assert [c.path for c in changes] == [PATH]
    assert told is not None and not told.changes and f"rm {PATH}" in told.commands
