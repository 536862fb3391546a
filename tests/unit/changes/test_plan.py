"""From findings to an ordered list of changes, and the foresight that shows all of them beforehand."""

from __future__ import annotations

from dataclasses import replace

import avahi_gpu.checks  # noqa: F401  registers them
from avahi_gpu.changes.plan import foresee, next_step, plan, plan_all
from avahi_gpu.checks.registry import setup_findings
from avahi_gpu.model import Change, Facts, FileState, Finding, Fix, Verdict
from tests.unit.changes.facts import bare_facts

APT = ("apt-get", "install", "--yes", "--no-install-recommends")
AVAHI = Change("package", "install avahi-daemon", argv=(*APT, "avahi-daemon"))
MDNS = Change("package", "install libnss-mdns", argv=(*APT, "libnss-mdns"))
START = Change("daemon", "start avahi-daemon", argv=("avahi-daemon", "--daemonize"))
AGAIN = Change(
    "daemon", "restart avahi-daemon", argv=("sh", "-c", "stop, start", "sh", "avahi-daemon", "--daemonize")
)
ENABLE = Change("daemon", "enable", argv=("systemctl", "enable", "--now", "avahi-daemon.service"))
RESTART = Change("daemon", "restart", argv=("systemctl", "restart", "avahi-daemon.service"))
FILE = Change("file", "write it", "/etc/x", b"new\n", before=b"old\n")


def found(*changes: Change, verdict: Verdict = "error") -> Finding:
    return Finding("AG999", "some", "host", verdict, "something is wrong", fix=Fix("mend it", changes))


def test_packages_come_before_files_before_daemons() -> None:
    changes = plan([found(START), found(FILE), found(AVAHI)])

    assert [c.kind for c in changes] == ["package", "file", "daemon"]


def test_a_malformed_nsswitch_conf_is_mended_before_packages_are_installed() -> None:
    """No user is known until then, and the packages' scripts fail."""
    broken = FileState(
        "/etc/nsswitch.conf", b"hosts: files mdns4_minimal [NOT FOUND=return] dns\n", 0o644, 0, 0
    )
    facts = replace(bare_facts(), nsswitch=broken)

    changes, _ = plan_all(facts, setup_findings)
    first = next_step(plan(setup_findings(facts)))

    assert [c.kind for c in changes[:2]] == ["file", "package"]
    assert [c.path for c in first] == ["/etc/nsswitch.conf"]


def test_packages_become_one_command() -> None:
    (change,) = plan([found(AVAHI), found(MDNS), found(AVAHI)])

    assert change.argv == (*APT, "avahi-daemon", "libnss-mdns")
    assert change.title == "install avahi-daemon, libnss-mdns"


def test_packages_of_pacman_become_one_command_too() -> None:
    one, other = (
        Change("package", p, argv=("pacman", "-S", "--needed", "--noconfirm", p))
        for p in ("avahi", "nss-mdns")
    )

    (change,) = plan([found(one), found(other)])

    assert change.argv == ("pacman", "-S", "--needed", "--noconfirm", "avahi", "nss-mdns")


def test_a_file_is_changed_once_and_the_first_fix_wins() -> None:
    assert plan([found(FILE), found(replace(FILE, content=b"other\n"))]) == [FILE]


def test_the_same_start_is_made_once() -> None:
    assert plan([found(START), found(START)]) == [START]


def test_what_is_started_is_not_restarted_too() -> None:
    assert plan([found(AGAIN), found(START)]) == [START]
    assert plan([found(ENABLE), found(RESTART)]) == [ENABLE]
    assert plan([found(RESTART), found(ENABLE)]) == [ENABLE]


def test_a_restart_alone_stays() -> None:
    assert plan([found(AGAIN)]) == [AGAIN]
    assert plan([found(RESTART), found(RESTART)]) == [RESTART]


def test_starting_the_bus_does_not_swallow_a_restart_of_avahi() -> None:
    bus = Change("daemon", "start the bus", argv=("systemctl", "start", "dbus.socket"))

    assert plan([found(bus), found(RESTART)]) == [bus, RESTART]


def test_what_is_well_or_only_told_is_left_alone() -> None:
    assert plan([found(FILE, verdict="info"), found(START, verdict="ok")]) == []


def test_a_step_is_of_one_kind() -> None:
    assert next_step([AVAHI, FILE, START]) == [AVAHI]
    assert next_step([FILE, START]) == [FILE]
    assert next_step([]) == []


def test_foresight_shows_what_hides_behind_missing_packages() -> None:
    """As the checks do it: the daemon's and the file's are skipped while the package is missing."""

    def judge(facts: Facts) -> list[Finding]:
        findings = []
        if not facts.daemon.installed:
            findings.append(found(AVAHI))
        elif facts.service_file.content != facts.wanted_service_file:
            findings.append(
                found(Change("file", "write", facts.service_file.path, facts.wanted_service_file))
            )
        elif not facts.daemon.on_bus:
            findings.append(found(START))
        if not facts.nss_modules["mdns4_minimal"]:
            findings.append(found(MDNS))
        return findings

    changes, end = plan_all(bare_facts(), judge)

    assert [c.title for c in changes] == ["install avahi-daemon, libnss-mdns", "write", "start avahi-daemon"]
    assert judge(end) == []


def test_foresight_ends_where_a_fix_does_not_help() -> None:
    changes, _ = plan_all(bare_facts(), lambda facts: [found(FILE)])

    assert changes == [FILE]


def test_a_vendors_nsswitch_conf_is_copied_to_etc_and_edited_there() -> None:
    vendor = FileState("/usr/etc/nsswitch.conf", b"# theirs\nhosts: files dns\n", 0o444, 0, 0)
    facts = replace(bare_facts(), nsswitch=vendor, package_manager=None, packages={})

    changes, foreseen = plan_all(facts, setup_findings)

    (change,) = [c for c in changes if c.kind == "file" and "nsswitch" in c.path]
    assert (change.path, change.before, change.mode) == ("/etc/nsswitch.conf", None, 0o644)
    assert change.content == b"# theirs\nhosts: files mdns4_minimal [NOTFOUND=return] dns\n"
    assert foreseen.nsswitch.path == "/etc/nsswitch.conf"


def test_foreseeing_a_removal_leaves_no_file() -> None:
    facts = foresee(bare_facts(), [Change("file", "remove", "/etc/nsswitch.conf", None)])

    assert not facts.nsswitch.exists


def test_the_checks_themselves_are_seen_through_to_the_end() -> None:
    """Packages, the hosts line, the service file, the daemon: all is shown before the first is made."""
    changes, _ = plan_all(bare_facts(), setup_findings)

    assert [c.kind for c in changes] == ["package", "file", "file", "daemon"]
    assert set(changes[0].argv[-2:]) == {"avahi-daemon", "libnss-mdns"}
    assert {c.path for c in changes[1:3]} == {"/etc/nsswitch.conf", "/etc/avahi/services/torch.service"}
    assert changes[3].argv == ("avahi-daemon", "--daemonize")


def test_with_systemd_the_daemon_is_enabled_too() -> None:
    changes, _ = plan_all(replace(bare_facts(), init="systemd"), setup_findings)

    assert changes[-1].argv == ("systemctl", "enable", "--now", "avahi-daemon.service")


def test_what_will_be_started_is_not_shown_as_restarted_too() -> None:
    """Only when the daemon runs does a check see that something is not in force: the start has seen to it."""

    def judge(facts: Facts) -> list[Finding]:
        return [found(AGAIN)] if facts.daemon.on_bus else [found(START)]

    assert plan_all(bare_facts(), judge)[0] == [START]
