"""Who shares mDNS's port, and how bad that is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.checks.registry import run_checks
from avahi_gpu.model import Facts, Finding, MdnsSocket, ResolvedMdns

OURS = (
    MdnsSocket(4, "0.0.0.0", 100, 105, 77, "avahi-daemon"),
    MdnsSocket(6, "::", 101, 105, 77, "avahi-daemon"),
)


def judge(facts: Facts, *more: MdnsSocket, resolved: ResolvedMdns | None = None) -> Finding:
    network = replace(facts.network, mdns_sockets=(*OURS, *more))
    if resolved is not None:
        network = replace(network, resolved_mdns=resolved)
    return next(f for f in run_checks(replace(facts, network=network)) if f.id == "AG209")


def other(program: str, pid: int | None = 900, uid: int = 1000) -> MdnsSocket:
    return MdnsSocket(4, "0.0.0.0", 200, uid, pid, program)


def test_the_daemon_alone_is_fine(healthy: Facts) -> None:
    assert judge(healthy).verdict == "ok"


@pytest.mark.parametrize("program", ["chrome", "spotify", "kdeconnectd", "vlc", "firefox-bin"])
def test_programs_that_only_listen_are_a_warning(program: str, healthy: Facts) -> None:
    assert judge(healthy, other(program)).verdict == "warn"


def test_a_program_that_nobody_knows_is_an_error_with_its_number(healthy: Facts) -> None:
    found = judge(healthy, other("python3"))

    assert (found.verdict, found.fix) == ("error", None)
    assert "python3 (process 900)" in found.evidence[0]


def test_a_second_daemon_is_an_error(healthy: Facts) -> None:
    assert "two avahi-daemons" in judge(healthy, other("avahi-daemon")).says


def test_a_process_of_another_world_is_said_to_be_one(healthy: Facts) -> None:
    found = judge(healthy, other("", pid=None))

    assert found.verdict == "error" and "not seen from here" in found.evidence[0]


@pytest.mark.parametrize(
    ("resolved", "verdict"),
    [
        (ResolvedMdns("yes", (("eth0", "yes"),)), "error"),
        (ResolvedMdns("yes", (("eth0", "no"),)), "warn"),
        (ResolvedMdns("yes"), "warn"),
        (ResolvedMdns("no", (("eth0", "yes"),)), "warn"),
    ],
)
def test_systemd_resolved_counts_where_it_is_on(resolved: ResolvedMdns, verdict: str, healthy: Facts) -> None:
    found = judge(healthy, other("systemd-resolve", uid=101), resolved=resolved)

    assert found.verdict == verdict
    assert found.fix is not None
    file, restart = found.fix.changes
    assert b"MulticastDNS=no" in (file.content or b"") and restart.argv[0] == "systemctl"


def test_an_ordinary_user_sees_no_owners_and_is_not_alarmed(healthy: Facts) -> None:
    hidden = tuple(replace(s, pid=None, program="") for s in OURS)
    facts = replace(healthy, network=replace(healthy.network, mdns_sockets=hidden))
    alone = next(f for f in run_checks(facts) if f.id == "AG209")
    more = (*hidden, other("", pid=None))
    facts = replace(healthy, network=replace(healthy.network, mdns_sockets=more))
    shared = next(f for f in run_checks(facts) if f.id == "AG209")

    assert (alone.verdict, shared.verdict) == ("ok", "warn")
