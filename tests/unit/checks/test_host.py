"""The checks of the bus and of avahi-daemon on facts that are broken in one place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.checks.host import avahi_at_boot, avahi_installed, avahi_running, machine_id, system_bus
from avahi_gpu.model import Facts


def with_daemon(facts: Facts, **changed: object) -> Facts:
    return replace(facts, daemon=replace(facts.daemon, **changed))  # type: ignore[arg-type]


def test_a_dead_bus_is_started(healthy: Facts) -> None:
    found = system_bus(with_daemon(healthy, bus_reachable=False, bus_error="connection refused"))

    assert found.verdict == "error" and found.evidence == ("connection refused",)
    assert found.fix and [c.argv for c in found.fix.changes] == [("systemctl", "start", "dbus.socket")]


def test_without_systemd_the_bus_gets_its_folder_first(healthy: Facts) -> None:
    found = system_bus(replace(with_daemon(healthy, bus_reachable=False), init="other"))

    assert found.fix and [c.argv[0] for c in found.fix.changes] == ["install", "dbus-daemon"]


def test_a_missing_bus_is_installed(healthy: Facts) -> None:
    bare = replace(with_daemon(healthy, bus_reachable=False), packages={"dbus": False})

    found = system_bus(bare)

    assert found.verdict == "error" and "not installed" in found.says
    assert found.fix and found.fix.changes[0].argv[-1] == "dbus"


@pytest.mark.parametrize(
    ("manager", "package"),
    [("apt", "avahi-daemon"), ("dnf", "avahi"), ("pacman", "avahi"), ("zypper", "avahi")],
)
def test_a_missing_daemon_is_installed_by_the_machines_own_means(
    manager: str, package: str, healthy: Facts
) -> None:
    bare = with_daemon(healthy, installed=False, on_bus=False)

    found = avahi_installed(replace(bare, package_manager=manager))

    assert found.verdict == "error"
    assert found.fix and found.fix.changes[0].kind == "package"
    assert found.fix.changes[0].argv[-1] == package


def test_no_package_manager_is_said(healthy: Facts) -> None:
    bare = replace(with_daemon(healthy, installed=False, on_bus=False), package_manager=None)

    found = avahi_installed(bare)

    assert found.verdict == "error" and found.fix is None and "by hand" in found.hint


def test_a_daemon_that_answers_is_installed_whatever_packages_say(healthy: Facts) -> None:
    assert avahi_installed(with_daemon(healthy, installed=False)).verdict == "ok"


@pytest.mark.parametrize(
    ("init", "argv"),
    [
        ("systemd", ("systemctl", "start", "avahi-daemon.service")),
        ("other", ("avahi-daemon", "--daemonize")),
    ],
)
def test_a_stopped_daemon_is_started(init: str, argv: tuple[str, ...], healthy: Facts) -> None:
    stopped = with_daemon(healthy, on_bus=False, pid=None, server_state=None)

    found = avahi_running(replace(stopped, init=init))  # type: ignore[arg-type]

    assert found.verdict == "error" and found.says == "avahi-daemon does not run"
    assert found.fix and [c.argv for c in found.fix.changes] == [argv]


def test_a_daemon_off_the_bus_is_told_from_a_stopped_one(healthy: Facts) -> None:
    found = avahi_running(with_daemon(healthy, on_bus=False, pid=77, server_state=None))

    assert found.verdict == "error" and "not on the system bus" in found.says
    assert "process 77" in found.evidence[0]


@pytest.mark.parametrize(("state", "word"), [(0, "invalid"), (4, "failure")])
def test_a_daemon_that_never_got_its_name_is_restarted(state: int, word: str, healthy: Facts) -> None:
    found = avahi_running(with_daemon(healthy, server_state=state))

    assert found.verdict == "error" and word in found.says and found.fix


@pytest.mark.parametrize("state", [1, 3])
def test_a_daemon_that_is_still_claiming_its_name_is_left_to_it(state: int, healthy: Facts) -> None:
    found = avahi_running(with_daemon(healthy, server_state=state))

    assert found.verdict == "unknown" and found.fix is None


def test_an_untold_state_is_unknown(healthy: Facts) -> None:
    assert avahi_running(with_daemon(healthy, server_state=None)).verdict == "unknown"


def test_a_daemon_that_does_not_answer_is_told_from_one_that_is_not_there(healthy: Facts) -> None:
    frozen = with_daemon(healthy, server_state=None, bus_error="no answer to GetState", pid=77)

    found = avahi_running(frozen)

    assert found.verdict == "error" and "does not answer" in found.says
    assert found.evidence == ("process 77", "no answer to GetState")
    assert found.fix is not None


def test_a_missing_machine_id_is_a_warning(healthy: Facts) -> None:
    assert machine_id(replace(healthy, machine_id="")).verdict == "warn"
    assert machine_id(healthy).verdict == "ok"


@pytest.mark.parametrize(("enabled", "verdict"), [(True, "ok"), (False, "warn"), (None, "unknown")])
def test_a_daemon_that_runs_must_also_start_at_boot(
    enabled: bool | None, verdict: str, healthy: Facts
) -> None:
    found = avahi_at_boot(with_daemon(healthy, enabled=enabled))

    assert found.verdict == verdict
    assert bool(found.fix) == (verdict == "warn")


def test_without_systemd_nobody_knows_what_starts_at_boot(healthy: Facts) -> None:
    assert avahi_at_boot(replace(healthy, init="other")).verdict == "skip"
