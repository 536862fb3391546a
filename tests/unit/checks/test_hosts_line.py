"""The checks of nsswitch.conf and its module: what they call wrong and what they would write."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.checks.hosts_line import mdns_before_dns, mdns_family, mdns_module, nsswitch_valid
from avahi_gpu.checks.registry import run_checks
from avahi_gpu.model import Address, Facts, FileState, Finding, Lookup


def with_hosts(facts: Facts, hosts: str, **changed: object) -> Facts:
    content = f"passwd: files\n{hosts}\n".encode()
    state = replace(facts.nsswitch, content=content, **changed)  # type: ignore[arg-type]
    return replace(facts, nsswitch=state)


def errors(facts: Facts) -> list[Finding]:
    return [f for f in run_checks(facts) if f.verdict == "error"]


@pytest.mark.parametrize(
    "hosts",
    [
        "hosts: files dns",
        "hosts: files dns mdns4_minimal",
        "hosts: files resolve [!UNAVAIL=return] dns",
        "hosts: files mDNS4_minimal [NOTFOUND=return] dns",
    ],
)
def test_a_line_that_does_not_ask_mdns_first_is_the_one_error_and_gets_mended(
    hosts: str, healthy: Facts
) -> None:
    facts = with_hosts(healthy, hosts)

    found = errors(facts)

    assert [f.id for f in found] == ["AG104"]
    assert found[0].evidence == (f"/etc/nsswitch.conf:2: {hosts}",)
    assert found[0].fix is not None
    (change,) = found[0].fix.changes
    assert (change.kind, change.path, change.mode) == ("file", "/etc/nsswitch.conf", 0o644)
    assert change.before == facts.nsswitch.content
    mended = replace(facts, nsswitch=replace(facts.nsswitch, content=change.content))
    assert errors(mended) == []


def test_a_malformed_action_is_the_one_error_and_names_its_line(healthy: Facts) -> None:
    found = errors(with_hosts(healthy, "hosts: files mdns4_minimal [NOTFOUND=back] dns"))

    assert [f.id for f in found] == ["AG101"]
    assert "/etc/nsswitch.conf:2" in found[0].says
    assert found[0].fix is None and "by hand" in found[0].hint


def test_a_malformed_action_with_one_meaning_only_is_mended(healthy: Facts) -> None:
    facts = with_hosts(healthy, "hosts: files mdns4_minimal [NOT FOUND=return] dns")

    found = nsswitch_valid(facts)

    assert found.verdict == "error" and found.fix is not None
    assert b"[NOTFOUND=return]" in (found.fix.changes[0].content or b"")


def test_a_file_that_another_tool_owns_is_left_to_that_tool(healthy: Facts) -> None:
    facts = with_hosts(healthy, "hosts: files dns", link_target="/etc/authselect/nsswitch.conf")

    found = mdns_before_dns(facts)

    assert found.verdict == "error" and found.fix is None
    assert "authselect" in found.hint


def test_a_line_that_works_but_not_by_the_book_is_only_told(healthy: Facts) -> None:
    assert mdns_before_dns(with_hosts(healthy, "hosts: files mdns4_minimal dns")).verdict == "info"


def test_what_an_administrator_took_out_is_not_put_back_unasked(healthy: Facts) -> None:
    facts = with_hosts(healthy, "# hosts: files mdns4_minimal [NOTFOUND=return] dns\nhosts: files dns")

    found = mdns_before_dns(facts)

    assert found.verdict == "error" and found.fix is None and found.hint


def test_a_missing_file_gets_a_hosts_line(healthy: Facts) -> None:
    facts = replace(healthy, nsswitch=FileState("/etc/nsswitch.conf", None))

    assert nsswitch_valid(facts).verdict == "info"
    found = mdns_before_dns(facts)
    assert found.verdict == "error" and found.fix is not None
    assert found.fix.changes[0].before is None


def test_an_unreadable_file_is_unknown_not_broken(healthy: Facts) -> None:
    facts = replace(
        healthy, nsswitch=FileState("/etc/nsswitch.conf", None, mode=0o600, error="Permission denied")
    )

    found = {f.id: f.verdict for f in run_checks(facts)}

    assert (found["AG101"], found["AG102"], found["AG104"]) == ("unknown", "skip", "skip")


def test_a_file_of_no_sane_size_is_not_judged(healthy: Facts) -> None:
    state = replace(healthy.nsswitch, content=None, mode=0o644, error="larger than 65536 bytes")
    facts = replace(healthy, nsswitch=state)

    found = {f.id: f.verdict for f in run_checks(facts)}

    assert (found["AG101"], found["AG102"], found["AG104"]) == ("unknown", "skip", "skip")


def test_a_c_library_without_nsswitch_is_skipped(healthy: Facts) -> None:
    assert nsswitch_valid(replace(healthy, distribution="alpine")).verdict == "skip"


def test_the_module_is_installed_where_it_is_missing(healthy: Facts) -> None:
    found = errors(replace(healthy, nss_modules={"mdns4_minimal": False}))

    assert [f.id for f in found] == ["AG102"]
    assert found[0].evidence == ("there is no libnss_mdns4_minimal.so.2",)
    assert found[0].fix and found[0].fix.changes[0].argv[-1] == "libnss-mdns"


def test_without_a_module_on_the_line_the_wanted_one_is_looked_for(healthy: Facts) -> None:
    facts = with_hosts(replace(healthy, nss_modules={"mdns4_minimal": False}), "hosts: files dns")

    assert mdns_module(facts).verdict == "error"


def test_a_module_nobody_looked_for_is_unknown(healthy: Facts) -> None:
    assert mdns_module(replace(healthy, nss_modules={})).verdict == "unknown"


def without_ipv4(facts: Facts) -> Facts:
    loopback, lan = facts.interfaces
    six = (Address("fd77::1", 64, 6, "global"), Address("fe80::1", 64, 6, "link"))
    return replace(
        facts,
        interfaces=(loopback, replace(lan, addresses=six)),
        own_name=Lookup("gpu-node-1.local", ("127.0.0.1",), 0.01),
        peers=(),
    )


def test_a_lan_without_ipv4_needs_a_module_that_gives_ipv6(healthy: Facts) -> None:
    found = [f for f in errors(without_ipv4(healthy)) if f.area == "names"]

    assert [f.id for f in found] == ["AG116"]
    assert found[0].fix is not None and found[0].fix.changes[0].content is not None
    assert b"mdns_minimal [NOTFOUND=return]" in found[0].fix.changes[0].content
    assert mdns_family(with_hosts(without_ipv4(healthy), "hosts: files mdns_minimal dns")).verdict == "ok"


def test_a_lan_with_both_families_or_none_is_left_alone(healthy: Facts) -> None:
    loopback, lan = healthy.interfaces
    both = replace(lan, addresses=(*lan.addresses, Address("fd77::1", 64, 6, "global")))

    assert mdns_family(replace(healthy, interfaces=(loopback, both))).verdict == "ok"
    assert mdns_family(replace(healthy, interfaces=(loopback,))).verdict == "ok"


@pytest.mark.parametrize(
    ("hosts", "told"),
    [
        ("hosts: files mdns4_minmal [NOTFOUND=return] dns", ["mdns4_minmal is no module; mdns4_minimal"]),
        ("hosts: files myhostname mymachines dns", []),
    ],
)
def test_a_mistyped_module_is_named(hosts: str, told: list[str], healthy: Facts) -> None:
    (found,) = errors(with_hosts(healthy, hosts))

    assert [e.split(" may be")[0] for e in found.evidence if "is no module" in e] == told
