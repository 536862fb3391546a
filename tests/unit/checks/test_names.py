"""The checks of what glibc answers and of the published name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.checks.names import (
    hosts_loopback,
    lookups_fast,
    nameservers,
    own_name_resolves,
    published_name,
)
from avahi_gpu.checks.registry import run_checks
from avahi_gpu.model import Facts, Lookup, ModuleAnswer, Status

OWN = "gpu-node-1.local"


def failing(facts: Facts) -> dict[str, str]:
    return {f.id: f.verdict for f in run_checks(facts) if f.verdict in ("warn", "error")}


def test_debians_loopback_line_is_explained_not_blamed(healthy: Facts) -> None:
    facts = replace(
        healthy,
        kernel_name=Lookup("gpu-node-1", ("127.0.1.1",), 0.001),
        etc_hosts=replace(healthy.etc_hosts, content=b"127.0.0.1 localhost\n127.0.1.1\tgpu-node-1 # me\n"),
    )

    found = hosts_loopback(facts)

    assert failing(facts) == {}
    assert found.verdict == "info" and "127.0.1.1" in found.says
    assert found.evidence == ("/etc/hosts:2: 127.0.1.1 gpu-node-1",)


def test_a_bare_name_that_does_not_resolve_is_information(healthy: Facts) -> None:
    facts = replace(healthy, kernel_name=Lookup("gpu-node-1", (), 0.1, "name not found"))

    assert hosts_loopback(facts).verdict == "info"


def test_an_own_name_that_does_not_resolve_is_one_error(healthy: Facts) -> None:
    facts = replace(healthy, own_name=Lookup(OWN, (), 0.01, "name not found"))

    assert failing(facts) == {"AG105": "error"}


@pytest.mark.parametrize(
    ("status", "caches", "words", "mends"),
    [
        ("unavail", (), "/run/avahi-daemon/socket", True),
        ("success", ("nscd",), "nscd --invalidate hosts", False),
        ("success", (), "before it on the hosts line", False),
        ("notfound", (), "restart of avahi-daemon", False),
    ],
)
def test_what_the_module_alone_says_shows_where_to_look(
    healthy: Facts, status: Status, caches: tuple[str, ...], words: str, mends: bool
) -> None:
    said = (ModuleAnswer("mdns4_minimal", status, loaded=True),)
    facts = replace(
        healthy,
        own_name=Lookup(OWN, (), 0.01, "name not found"),
        names=replace(healthy.names, own_by_module=said, caches=caches),
    )

    found = own_name_resolves(facts)

    assert failing(facts) == {"AG105": "error"}
    assert words in found.hint and (found.fix is not None) == mends
    assert f"mdns4_minimal by itself: {status}" in found.evidence


def test_a_look_up_that_ran_out_of_time_names_the_name_server(healthy: Facts) -> None:
    found = own_name_resolves(replace(healthy, own_name=Lookup(OWN, (), 17.0, "timeout")))

    assert found.verdict == "error" and "10.77.0.254" in found.hint
    assert "/etc/resolv.conf: nameserver 10.77.0.254" in found.evidence


def test_a_dead_name_server_is_named_as_the_cause_of_slowness(healthy: Facts) -> None:
    facts = replace(healthy, own_name=Lookup(OWN, ("10.77.0.1",), 10.02))

    found = lookups_fast(facts)

    assert failing(facts) == {"AG106": "warn"}
    assert "10.77.0.254" in found.hint


def test_slowness_without_a_name_server_blames_none(healthy: Facts) -> None:
    facts = replace(
        healthy,
        own_name=Lookup(OWN, ("10.77.0.1",), 3.0),
        resolv_conf=replace(healthy.resolv_conf, content=b"# nothing\n"),
    )

    assert "nsswitch.conf" in lookups_fast(facts).hint


@pytest.mark.parametrize(
    ("addresses", "word"),
    [(("127.0.1.1",), "no peer can reach"), (("172.16.9.9",), "no address of this machine")],
)
def test_a_wrong_answer_is_an_error_and_shows_the_line(
    addresses: tuple[str, ...], word: str, healthy: Facts
) -> None:
    facts = replace(
        healthy,
        own_name=Lookup(OWN, addresses, 0.001),
        etc_hosts=replace(healthy.etc_hosts, content=f"{addresses[0]} {OWN}\n".encode()),
    )

    found = own_name_resolves(facts)

    assert found.verdict == "error" and word in found.says
    assert found.evidence == (f"/etc/hosts:1: {addresses[0]} {OWN}",)


def test_loopback_beside_a_lan_address_is_no_error(healthy: Facts) -> None:
    facts = replace(healthy, own_name=Lookup(OWN, ("10.77.0.1", "127.0.0.1"), 0.001))

    assert own_name_resolves(facts).verdict == "ok"


@pytest.mark.parametrize(
    ("kernel", "published", "verdict"),
    [
        ("gpu-node-1", "gpu-node-1", "ok"),
        ("GPU-node-1", "gpu-node-1", "ok"),
        ("gpu-node-1.example.com", "gpu-node-1", "ok"),
        ("gpu-node-1", "gpu-node-2", "error"),
        ("box", "box-2", "error"),
        ("box9", "box10", "error"),
        ("box", "other", "warn"),  # somebody's choice, or a host name changed since
        ("gpu-node-4", "gpu-node-2", "warn"),  # Avahi only counts upwards
        ("box", "", "unknown"),
    ],
)
def test_a_name_that_was_taken_is_told_from_one_that_was_chosen(
    kernel: str, published: str, verdict: str, healthy: Facts
) -> None:
    facts = replace(healthy, hostname=kernel, daemon=replace(healthy.daemon, host_name=published))

    assert published_name(facts).verdict == verdict


def test_name_servers_are_read_in_their_order() -> None:
    text = b"# nameserver 9.9.9.9\nnameserver 10.0.0.1\nsearch lan\nnameserver\tfe80::1%eth0\n"

    assert nameservers(text) == ("10.0.0.1", "fe80::1%eth0")
    assert nameservers(None) == ()


@pytest.mark.parametrize(
    ("rival", "words", "mended"),
    [
        ("", "nobody else has the name", True),
        ("10.77.0.1", "another program on this machine", False),
        ("10.77.0.9", "another machine on the LAN", False),
    ],
)
def test_who_has_the_name_decides_what_is_to_be_done(
    rival: str, words: str, mended: bool, healthy: Facts
) -> None:
    daemon = replace(healthy.daemon, host_name="gpu-node-2")
    facts = replace(healthy, daemon=daemon, names=replace(healthy.names, rival=rival))

    (found,) = run_checks(facts, only=("AG107",))

    assert found.verdict == "error" and words in found.says
    assert (found.fix is not None) == mended
    assert not rival or rival in found.evidence[-1]
