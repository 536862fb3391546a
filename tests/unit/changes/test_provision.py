"""Step by step, each time from what the machine is then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from avahi_gpu.changes import journal
from avahi_gpu.changes.lock import locked
from avahi_gpu.changes.provision import provision
from avahi_gpu.errors import ChangeFailed
from avahi_gpu.host.system import System
from avahi_gpu.model import Change, Facts, Finding, Fix
from tests.unit.changes.facts import bare_facts

PATH = "/etc/nsswitch.conf"


@pytest.fixture
def system(tmp_path: Path) -> System:
    for folder in ("etc", "run", "var/lib"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "etc/nsswitch.conf").write_bytes(b"old\n")
    return System(tmp_path)


def finding(*changes: Change) -> Finding:
    return Finding("AG999", "some", "host", "error", "wrong", fix=Fix("mend", changes))


def run(system: System, judge: object, made: list[Change], approve: object = lambda step: step) -> Facts:
    def read(facts: Facts) -> Facts:
        return replace(facts, nsswitch=system.read(PATH))

    return provision(
        read(bare_facts()),
        judge=judge,  # type: ignore[arg-type]
        read=read,
        approve=approve,  # type: ignore[arg-type]
        system=system,
        made=made,
        command="setup",
    )


def test_what_a_package_brings_along_is_not_done_again(system: System, tmp_path: Path) -> None:
    """As libnss-mdns on Debian, whose installation edits nsswitch.conf itself."""
    edit = f"echo new > {tmp_path}/etc/nsswitch.conf"
    package = Change("package", "install it", argv=("sh", "-c", edit))

    def judge(facts: Facts) -> list[Finding]:
        if facts.nsswitch.content == b"new\n":
            return []
        return [
            finding(package, Change("file", "write", PATH, b"new\n", before=facts.nsswitch.content)),
        ]

    made: list[Change] = []
    end = run(system, judge, made)

    assert [change.argv for change in made] == [package.argv]
    assert end.nsswitch.content == b"new\n"


def test_what_does_not_help_is_not_tried_for_ever(system: System) -> None:
    start = Change("daemon", "start it", argv=("true",))
    made: list[Change] = []

    run(system, lambda facts: [finding(start)], made)

    assert made == [start]


def test_a_no_ends_it(system: System) -> None:
    change = Change("file", "write", PATH, b"new\n", before=b"old\n")
    asked: list[Sequence[Change]] = []

    def refuse(step: Sequence[Change]) -> None:
        asked.append(step)

    made: list[Change] = []
    run(system, lambda facts: [finding(change)], made, refuse)

    assert (made, asked) == ([], [[change]])
    assert system.read(PATH).content == b"old\n"


def test_what_is_refused_is_not_asked_for_again_and_the_rest_is_made(system: System) -> None:
    one = Change("command", "open the firewall", argv=("false",), question="Open it?")
    other = Change("daemon", "start it", argv=("true",))
    made: list[Change] = []
    asked: list[str] = []

    def approve(step: Sequence[Change]) -> Sequence[Change]:
        asked.extend(c.title for c in step)
        return [c for c in step if not c.question]

    run(system, lambda facts: [finding(one, other)], made, approve)

    assert asked == ["open the firewall", "start it"]
    assert made == [other]


def test_a_run_has_a_name_in_the_journal(system: System) -> None:
    start = Change("daemon", "start it", argv=("true",))
    for _ in range(2):
        run(system, lambda facts: [finding(start)], [])

    runs = [record.run for record in journal.read_journal(system)[0]]

    assert len(set(runs)) == 2
    assert all(name.startswith("setup 2") for name in runs)


def test_what_was_made_before_a_failure_is_known(system: System) -> None:
    good = Change("file", "write", PATH, b"new\n", before=b"old\n")
    bad = Change("file", "write too", "/etc/other", b"x", before=b"not what is there")
    made: list[Change] = []

    with pytest.raises(ChangeFailed, match="could not write too"):
        run(system, lambda facts: [finding(good, bad)], made)

    assert made == [good]
    with locked(system):  # and the lock is free again
        pass


def test_a_daemon_is_restarted_again_for_a_file_that_was_written_after_its_restart(system: System) -> None:
    """A second cause shows only once the first is mended, in the same file."""
    restart = Change("daemon", "restart it", argv=("true",))
    steps: list[str] = []

    def judge(facts: Facts) -> list[Finding]:
        wanted = {b"old\n": b"better\n", b"better\n": b"right\n"}.get(facts.nsswitch.content or b"")
        restarts = steps.count("restart it")
        if wanted is not None and restarts == steps.count("write"):
            return [finding(Change("file", "write", PATH, wanted, before=facts.nsswitch.content), restart)]
        return [finding(restart)] if restarts < steps.count("write") else []

    def approve(step: Sequence[Change]) -> Sequence[Change]:
        steps.extend(change.title for change in step)
        return step

    run(system, judge, [], approve)

    assert steps == ["write", "restart it", "write", "restart it"]


def test_a_restart_that_belongs_to_a_file_is_made_though_the_file_makes_the_finding_well(
    system: System,
) -> None:
    restart = Change("daemon", "restart it", argv=("true",))

    def judge(facts: Facts) -> list[Finding]:
        if facts.nsswitch.content == b"new\n":
            return []
        return [finding(Change("file", "write", PATH, b"new\n", before=facts.nsswitch.content), restart)]

    made: list[Change] = []
    run(system, judge, made)

    assert [change.title for change in made] == ["write", "restart it"]
