"""The checks of glibc's mDNS modules and of mdns.allow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.checks.mdns_modules import mdns_module_loads, name_caches, reverse_fast
from avahi_gpu.checks.registry import run_checks
from avahi_gpu.model import Facts, FileState, Lookup, ModuleAnswer

ALLOW = "/etc/mdns.allow"
MINIMAL = "files mdns4_minimal [NOTFOUND=return] dns"
TRAILING = "files mdns4_minimal [NOTFOUND=return] dns mdns4"


def on(facts: Facts, services: str, allow: bytes | None = None) -> Facts:
    """These facts with this hosts line and this mdns.allow."""
    return replace(
        facts,
        nsswitch=replace(facts.nsswitch, content=f"hosts: {services}\n".encode()),
        mdns_allow=FileState(ALLOW, allow, mode=None if allow is None else 0o644),
        nss_modules={**facts.nss_modules, "mdns4": True},
    )


def failing(facts: Facts) -> dict[str, str]:
    return {f.id: f.verdict for f in run_checks(facts) if f.verdict in ("warn", "error")}


def written(facts: Facts) -> dict[str, bytes | None]:
    (found,) = [f for f in run_checks(facts) if f.verdict == "error"]
    assert found.fix is not None
    return {c.path: c.content for c in found.fix.changes}


def test_a_module_that_cannot_be_loaded_is_the_one_error(healthy: Facts) -> None:
    broken = ModuleAnswer("mdns4_minimal", "unavail", error="file too short", loaded=False)
    facts = replace(
        healthy,
        names=replace(healthy.names, own_by_module=(broken,)),
        own_name=Lookup("gpu-node-1.local", (), 0.01, "name not found"),
    )

    assert failing(facts) == {"AG110": "error"}
    assert mdns_module_loads(facts).evidence == ("file too short",)


@pytest.mark.parametrize(
    ("services", "allow", "found"),
    [
        (MINIMAL, b".local\n.local.\n", {}),
        (MINIMAL, b"", {}),
        (MINIMAL, b".local\n.lan\n", {"AG111": "error"}),
        (MINIMAL, b"*\n", {"AG111": "error"}),
        ("files mdns4 dns", b".local\n.lan\n", {}),
        ("files mdns4 [NOTFOUND=return] dns", b".lan\n", {"AG114": "error"}),
        ("files mdns4 [NOTFOUND=return] dns", b"", {"AG114": "error"}),
        ("files mdns4 [NOTFOUND=return] dns", b"*\n", {"AG115": "error"}),
        ("files mdns4_minimal [NOTFOUND=return] mdns4 dns", b".lan\n", {"AG112": "warn"}),
        (TRAILING, None, {"AG112": "error"}),
        ("files mdns4 dns mdns4", b".local\n", {"AG112": "error"}),
        (TRAILING, b".lan\n", {"AG112": "warn"}),
        ("files mdns4 [NOTFOUND=return] dns", None, {}),
    ],
)
def test_each_kind_of_hosts_line_and_mdns_allow(
    healthy: Facts, services: str, allow: bytes | None, found: dict[str, str]
) -> None:
    assert failing(on(healthy, services, allow)) == found


def test_fixes_lead_to_what_no_check_complains_of(healthy: Facts) -> None:
    cases = [
        (MINIMAL, b".lan\n"),
        ("files mdns4 dns", b".lan\n"),
        ("files mdns4 dns", b"# all\n*\n"),
        (TRAILING, None),
    ]
    for services, allow in cases:
        facts = on(healthy, services, allow)
        new = written(facts)
        line = new.get("/etc/nsswitch.conf") or facts.nsswitch.content or b""
        after = on(facts, line.decode().removeprefix("hosts: ").strip(), new.get(ALLOW, allow))

        assert failing(after) == {}, services


def test_a_full_module_that_costs_nothing_now_is_a_warning(healthy: Facts) -> None:
    facts = on(healthy, TRAILING)
    quick = Lookup("192.0.2.1", (), 0.01, "no name found")
    slow = replace(quick, elapsed_s=5.0)

    assert reverse_fast(replace(facts, names=replace(facts.names, reverse=quick))).verdict == "warn"
    found = reverse_fast(replace(facts, names=replace(facts.names, reverse=slow)))
    assert found.verdict == "error" and any("5.0 s" in line for line in found.evidence)


def test_a_cache_is_information(healthy: Facts) -> None:
    assert name_caches(replace(healthy, names=replace(healthy.names, caches=("nscd",)))).verdict == "info"
    assert name_caches(replace(healthy, names=replace(healthy.names, caches=("sssd",)))).verdict == "ok"


@pytest.mark.parametrize(
    ("mode", "words"), [(None, "its socket /run/avahi-daemon/socket is gone"), (0o600, "only some users may")]
)
def test_the_socket_that_the_module_asks_is_there_for_all(
    healthy: Facts, mode: int | None, words: str
) -> None:
    socket = FileState("/run/avahi-daemon/socket", None, mode=mode)
    lost = Lookup("gpu-node-1.local", (), 0.0, "name not found")
    facts = replace(healthy, avahi=replace(healthy.avahi, socket=socket), own_name=lost)

    (found,) = [f for f in run_checks(facts) if f.verdict == "error"]

    assert found.id == "AG120" and words in found.says
