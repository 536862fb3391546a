"""The checks of avahi-daemon.conf."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.checks.daemon_config import avahi_config, avahi_publishes
from avahi_gpu.checks.registry import run_checks
from avahi_gpu.model import Facts, FileState

PATH = "/etc/avahi/avahi-daemon.conf"


def with_conf(facts: Facts, text: str) -> Facts:
    return replace(facts, avahi_conf=replace(facts.avahi_conf, content=text.encode()))


def stopped(facts: Facts) -> Facts:
    daemon = replace(facts.daemon, on_bus=False, pid=None, server_state=None, host_name="")
    return replace(facts, daemon=daemon, own_service=None, own_name=None, peers=None)


def failing(facts: Facts) -> dict[str, str]:
    return {f.id: f.verdict for f in run_checks(facts) if f.verdict in ("warn", "error")}


@pytest.mark.parametrize("line", ["use-ipv4 =yes", "deny=x", "; remark", "rlimit-core=0"])
def test_a_malformed_file_is_the_one_cause_of_a_stopped_daemon(line: str, healthy: Facts) -> None:
    facts = stopped(with_conf(healthy, f"[server]\nuse-ipv6=yes\n{line}\n"))

    found = avahi_config(facts)

    assert failing(facts) == {"AG303": "error"}
    assert f"{PATH}:3" in found.evidence[0] and found.hint


def test_a_running_daemon_is_only_warned_about(healthy: Facts) -> None:
    assert failing(with_conf(healthy, "[server]\nnonsense=1\n")) == {"AG303": "warn"}


def test_a_missing_file_keeps_the_daemon_from_starting(healthy: Facts) -> None:
    facts = replace(stopped(healthy), avahi_conf=FileState(PATH, None))

    assert failing(facts) == {"AG303": "error"}


def test_an_unreadable_file_is_unknown(healthy: Facts) -> None:
    facts = replace(healthy, avahi_conf=FileState(PATH, None, mode=0o600, error="Permission denied"))

    assert avahi_config(facts).verdict == "unknown"
    assert failing(facts) == {}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[publish]\ndisable-publishing=yes\n", "disable-publishing"),
        ("[publish]\npublish-addresses=no\n", "publish-addresses"),
        ("[server]\ncache-entries-max=0\n", "cache-entries-max"),
        ("[server]\nallow-interfaces=eth7\n", "eth7"),
        ("[server]\ndeny-interfaces=eth0\n", "deny-interfaces"),
        ("[server]\nuse-ipv4= yes\n", "IPv4"),
        ("[server]\ndomain-name=lan\n", "lan"),
    ],
)
def test_a_setting_that_blinds_the_host_is_the_one_error(text: str, word: str, healthy: Facts) -> None:
    facts = with_conf(healthy, text)

    found = avahi_publishes(facts)

    assert failing(facts) == {"AG305": "error"}
    assert word in found.says and found.evidence[0].startswith(f"{PATH}:2: ")
    assert "restart" in found.hint


def test_a_setting_that_refuses_jobs_is_an_error(healthy: Facts) -> None:
    facts = with_conf(healthy, "[publish]\ndisable-user-service-publishing=yes\n")

    assert failing(facts) == {"AG305": "error"}


def test_a_setting_that_is_tight_is_a_warning(healthy: Facts) -> None:
    assert failing(with_conf(healthy, "[server]\ncache-entries-max=20\n")) == {"AG305": "warn"}


def test_a_chosen_host_name_is_information(healthy: Facts) -> None:
    assert avahi_publishes(with_conf(healthy, "[server]\nhost-name=box\n")).verdict == "info"


def test_without_a_lan_the_configuration_is_not_blamed(healthy: Facts) -> None:
    facts = replace(
        with_conf(healthy, "[server]\nallow-interfaces=eth0\n"), interfaces=healthy.interfaces[:1]
    )

    assert failing(facts) == {"AG201": "error"}


@pytest.mark.parametrize(
    ("conf", "asks"),
    [
        ("[publish]\ndisable-publishing=yes\n", True),
        ("[server]\nuse-ipv4=no\n", True),
        ("[server]\ndeny-interfaces=eth0\n", True),
        ("[server]\nallow-interfaces=eth7\n", False),
        ("[server]\ncache-entries-max=0\n", False),
        ("[server]\ncache-entries-max=0\n[publish]\npublish-addresses=no\n", True),
    ],
)
def test_what_somebody_seems_to_have_meant_has_a_question_of_its_own(
    conf: str, asks: bool, healthy: Facts
) -> None:
    found = avahi_publishes(with_conf(healthy, conf))

    assert found.verdict == "error" and found.fix
    question = found.fix.changes[0].question
    assert bool(question) is asks
    if asks:
        assert conf.strip().split("\n")[-1] in question


def test_the_restart_after_the_file_has_a_way_back(healthy: Facts) -> None:
    found = avahi_publishes(with_conf(healthy, "[server]\ncache-entries-max=0\n"))

    assert found.fix
    file, restart = found.fix.changes
    assert (file.kind, restart.undo) == ("file", restart.argv)
