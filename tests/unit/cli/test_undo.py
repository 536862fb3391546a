"""What undo says of the runs that it takes back."""

from __future__ import annotations

from avahi_gpu.cli.undo import name_run


def test_a_run_is_named_by_its_second() -> None:
    assert name_run("doctor --fix 2026-11-30T15:33:50.014016+00:00") == "doctor --fix 2026-11-30 15:33:50 UTC"
    assert name_run("setup some day") == "setup some day"
