"""The checks of avahi-daemon as it runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.checks.daemon_state import (
    config_in_force,
    keeps_to_lan,
    known_version,
    log_is_quiet,
    own_name_on_lan,
)
from avahi_gpu.checks.host import avahi_running, system_bus
from avahi_gpu.checks.registry import run_checks
from avahi_gpu.model import (
    Address,
    DaemonProcess,
    Facts,
    FileState,
    Interface,
    Lookup,
    OwnRecords,
    StartGround,
    UnitState,
)

PATH = "/etc/avahi/avahi-daemon.conf"


def failing(facts: Facts) -> dict[str, str]:
    return {f.id: f.verdict for f in run_checks(facts) if f.verdict in ("warn", "error")}


def with_avahi(facts: Facts, **changed: object) -> Facts:
    return replace(facts, avahi=replace(facts.avahi, **changed))  # type: ignore[arg-type]


def stopped(facts: Facts) -> Facts:
    daemon = replace(facts.daemon, on_bus=False, pid=None, server_state=None, host_name="")
    facts = replace(facts, daemon=daemon, own_service=None, own_name=None, peers=None)
    return with_avahi(facts, processes=(), own=None)


def with_docker(facts: Facts, *, joined: bool = True) -> Facts:
    bridge = Interface(
        "docker0",
        3,
        "virtual",
        up=True,
        running=True,
        multicast=True,
        addresses=(Address("172.17.0.1", 16, 4, "global"),),
        in_mdns_group=joined,
    )
    return replace(facts, interfaces=(*facts.interfaces, bridge))


def means(facts: Facts, avahi: str | None, glibc: str) -> Facts:
    facts = replace(facts, own_name=Lookup("gpu-node-1.local", (glibc,), 0.003))
    return with_avahi(facts, own=OwnRecords((), (), avahi, 2))


# --- the configuration in force --------------------------------------------------------------------------


def changed_at(facts: Facts, when: float) -> Facts:
    return replace(facts, avahi_conf=replace(facts.avahi_conf, changed=when))


def test_a_file_that_is_older_than_the_daemon_is_in_force(healthy: Facts) -> None:
    assert failing(changed_at(healthy, 999.0)) == {}


def test_a_newer_file_is_a_warning_while_all_works(healthy: Facts) -> None:
    facts = changed_at(healthy, 1001.0)

    found = config_in_force(facts)

    assert failing(facts) == {"AG308": "warn"}
    assert found.fix and found.fix.changes[0].argv == ("systemctl", "restart", "avahi-daemon.service")


def test_a_newer_file_is_the_one_error_where_the_daemon_listens_nowhere(healthy: Facts) -> None:
    interfaces = tuple(replace(i, in_mdns_group=False) for i in healthy.interfaces)

    assert failing(replace(changed_at(healthy, 1001.0), interfaces=interfaces)) == {"AG308": "error"}


def test_a_malformed_newer_file_is_mended_before_the_daemon_is_restarted(healthy: Facts) -> None:
    facts = replace(healthy, avahi_conf=replace(healthy.avahi_conf, content=b"[server]\nuse-ipv4 =yes\n"))

    found = config_in_force(changed_at(facts, 1001.0))

    assert (found.verdict, found.fix) == ("warn", None)


def test_a_bad_setting_that_is_not_in_force_yet_is_a_warning(healthy: Facts) -> None:
    bad = replace(
        healthy, avahi_conf=replace(healthy.avahi_conf, content=b"[publish]\ndisable-publishing=yes\n")
    )

    assert failing(changed_at(bad, 999.0)) == {"AG305": "error"}
    assert failing(changed_at(bad, 1001.0)) == {"AG305": "warn", "AG308": "warn"}


# --- the own name ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("avahi", "glibc"), [("172.17.0.1", "172.17.0.1"), ("172.17.0.1", "10.77.0.1")])
def test_a_name_that_means_a_bridge_is_the_one_error(avahi: str, glibc: str, healthy: Facts) -> None:
    facts = means(with_docker(healthy), avahi, glibc)

    found = own_name_on_lan(facts)

    assert failing(facts) == {"AG309": "error"}
    assert "172.17.0.1" in found.says and "docker0" in found.says
    assert found.fix and b"allow-interfaces=eth0\n" in (found.fix.changes[0].content or b"")
    assert [c.kind for c in found.fix.changes] == ["file", "daemon"]


def test_a_name_that_glibc_alone_gets_wrong_is_not_avahis_fault(healthy: Facts) -> None:
    facts = means(with_docker(healthy, joined=False), "10.77.0.1", "172.17.0.1")

    found = own_name_on_lan(facts)

    assert failing(facts) == {"AG309": "error"} and found.fix is None and "/etc/hosts" in found.hint


@pytest.mark.parametrize(
    ("version", "verdict"),
    [("avahi 0.8", "ok"), ("avahi 0.7", "info"), ("avahi 0.9-rc3", "info"), ("avahi 0.9", "ok"), ("", "ok")],
)
def test_versions(version: str, verdict: str, healthy: Facts) -> None:
    facts = replace(healthy, daemon=replace(healthy.daemon, version=version))

    assert known_version(facts).verdict == verdict


def test_a_bridge_that_avahi_uses_is_a_warning_while_the_name_is_right(healthy: Facts) -> None:
    assert failing(means(with_docker(healthy), "10.77.0.1", "10.77.0.1")) == {"AG314": "warn"}


def test_a_bridge_that_a_stopped_daemon_would_join_is_told_by_its_file(healthy: Facts) -> None:
    bridged = stopped(with_docker(healthy, joined=False))
    wlan = Interface("wlan0", 4, "wireless", up=False, running=False, multicast=True)

    found = keeps_to_lan(replace(bridged, interfaces=(*bridged.interfaces, wlan)))

    assert found.verdict == "warn" and "172.17.0.1" in found.evidence[0]
    # a card that has no address today may have one tomorrow
    assert found.fix and b"\nallow-interfaces=eth0,wlan0\n" in (found.fix.changes[0].content or b"")
    assert [(c.kind, c.question) for c in found.fix.changes] == [("file", "")]


@pytest.mark.parametrize(
    ("line", "verdict", "asks"),
    [
        ("allow-interfaces=eth0", "ok", False),
        ("allow-interfaces=ETH0,virbr0", "ok", False),
        ("deny-interfaces=docker0", "ok", False),
        ("allow-interfaces=eth0,docker0", "warn", True),  # somebody has named it
        ("deny-interfaces=wlan0", "warn", False),
    ],
)
def test_what_the_file_says_of_interfaces_counts(line: str, verdict: str, asks: bool, healthy: Facts) -> None:
    facts = with_docker(healthy)
    conf = replace(facts.avahi_conf, content=f"[server]\n{line}\n".encode())

    found = keeps_to_lan(replace(facts, avahi_conf=conf))

    assert found.verdict == verdict
    if found.fix:
        assert bool(found.fix.changes[0].question) is asks
        assert [c.undo for c in found.fix.changes[1:]] == [found.fix.changes[1].argv]


def test_a_machine_with_docker_that_avahi_does_not_use_is_fine(healthy: Facts) -> None:
    assert failing(means(with_docker(healthy, joined=False), "10.77.0.1", "10.77.0.1")) == {}


def test_a_bridge_alone_is_the_lan_of_a_container(healthy: Facts) -> None:
    lan = tuple(replace(i, link="virtual") if i.name == "eth0" else i for i in healthy.interfaces)

    assert failing(replace(healthy, interfaces=lan)) == {}


def test_nobody_asked_is_no_hindrance(healthy: Facts) -> None:
    assert own_name_on_lan(replace(with_avahi(healthy, own=None), own_name=None)).verdict == "info"


# --- why it does not run ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        (UnitState("masked", "inactive", "masked"), "masked"),
        (UnitState("not-found"), "no avahi-daemon.service"),
        (UnitState("loaded", "failed", "enabled", "exit-code", 255), "exit-code, exit status 255"),
        (UnitState("loaded", "inactive", "disabled"), "disabled"),
    ],
)
def test_systemd_tells_why(unit: UnitState, words: str, healthy: Facts) -> None:
    found = avahi_running(with_avahi(stopped(healthy), unit=unit))

    assert found.verdict == "error" and any(words in line for line in found.evidence)
    assert found.fix and (found.fix.changes[0].argv[1] == "unmask") == (unit.load == "masked")


def test_the_log_tells_why(healthy: Facts) -> None:
    facts = with_avahi(stopped(healthy), log=("fork() failed: Resource temporarily unavailable", "Bye."))

    assert any("fork() failed" in line for line in avahi_running(facts).evidence)
    assert log_is_quiet(facts).verdict == "info"


def test_a_bus_that_refuses_the_name_is_named_and_nothing_is_restarted(healthy: Facts) -> None:
    facts = with_avahi(stopped(healthy), bus_refuses="/etc/dbus-1/system.d/x.conf:3")

    found = avahi_running(facts)

    assert failing(facts) == {"AG304": "error"} and found.fix is None
    assert any("x.conf:3" in line for line in found.evidence)


def test_a_daemon_kept_from_the_bus_by_its_file_is_the_files_fault(healthy: Facts) -> None:
    facts = stopped(healthy)
    facts = replace(
        facts,
        daemon=replace(facts.daemon, pid=77),
        avahi_conf=replace(facts.avahi_conf, content=b"[server]\nenable-dbus=no\n"),
    )

    assert failing(facts) == {"AG305": "error"}


def test_a_daemon_that_a_signal_has_stopped_only_has_to_go_on(healthy: Facts) -> None:
    facts = replace(healthy, daemon=replace(healthy.daemon, server_state=None, bus_error="no answer"))
    facts = with_avahi(facts, processes=(DaemonProcess(77, "T", 102, 1000.0),))

    found = avahi_running(facts)

    assert found.fix and found.fix.changes[0].argv == ("kill", "-CONT", "77")
    assert "a signal has stopped" in found.evidence[0]


def test_a_stopped_daemon_that_lost_its_bus_is_woken_first(healthy: Facts) -> None:
    facts = replace(healthy, daemon=replace(healthy.daemon, on_bus=False, server_state=None))
    facts = with_avahi(facts, processes=(DaemonProcess(77, "T", 102, 1000.0),))

    found = avahi_running(facts)

    assert "a signal has stopped" in found.says
    assert found.fix and found.fix.changes[0].argv == ("kill", "-CONT", "77")


def test_two_daemons_are_a_warning(healthy: Facts) -> None:
    both = (DaemonProcess(77, "S", 102, 1000.0), DaemonProcess(99, "S", 102, 1000.0))

    assert failing(with_avahi(healthy, processes=both)) == {"AG311": "warn"}


# --- what is mended in the file --------------------------------------------------------------------------


def test_the_daemons_own_file_is_the_one_that_is_mended(healthy: Facts) -> None:
    other = replace(healthy.avahi_conf, path="/etc/other.conf", content=b"[server]\nenable-dbus=no\n")
    facts = replace(
        healthy,
        init="other",
        avahi_conf=other,
        daemon=replace(healthy.daemon, config_path="/etc/other.conf"),
    )

    (found,) = [f for f in run_checks(facts) if f.id == "AG305"]

    assert found.fix is not None
    file, *_, start = found.fix.changes
    assert file.path == "/etc/other.conf"
    assert start.argv[-3:] == ("--daemonize", "--file", "/etc/other.conf")


def test_a_file_of_nixos_is_not_edited_and_its_option_is_named(healthy: Facts) -> None:
    conf = replace(
        healthy.avahi_conf,
        content=b"[publish]\ndisable-publishing=yes\n",
        link_target="/nix/store/x-avahi-daemon.conf",
        writable=False,
    )

    (found,) = [f for f in run_checks(replace(healthy, avahi_conf=conf)) if f.id == "AG305"]

    assert found.fix is None and "services.avahi.publish.enable" in found.hint


# --- what keeps a daemon from starting -------------------------------------------------------------------


def test_a_pid_file_of_another_program_is_removed_before_the_start(healthy: Facts) -> None:
    file = FileState("/run/avahi-daemon/pid", b"8\n", mode=0o644, uid=0, gid=0)
    facts = with_avahi(stopped(healthy), start=StartGround(pid_file=file, holder=8, program="nginx"))

    found = avahi_running(facts)

    assert failing(facts) == {"AG304": "error"}
    assert found.evidence[-1] == "/run/avahi-daemon/pid names process 8, which is nginx"
    assert found.fix is not None
    remove, start = found.fix.changes
    assert (remove.path, remove.content) == (file.path, None) and start.argv[:2] == ("systemctl", "start")


def test_a_missing_user_is_named_and_no_start_is_offered(healthy: Facts) -> None:
    facts = with_avahi(stopped(healthy), start=StartGround(user=False, group=False))

    found = avahi_running(facts)

    assert "its user and its group avahi is missing" in found.says and found.fix is None
    assert "useradd" in found.hint


def test_a_variable_that_leads_to_no_bus_is_blamed_and_the_bus_not_started(healthy: Facts) -> None:
    daemon = replace(healthy.daemon, bus_reachable=False, bus_error="No such file or directory", on_bus=False)
    facts = with_avahi(replace(healthy, daemon=daemon), bus_address="unix:path=/host/bus")

    found = system_bus(facts)

    assert found.says.startswith("DBUS_SYSTEM_BUS_ADDRESS") and found.fix is None
    assert found.evidence[0] == "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/host/bus"
