"""/etc/hosts and the own name, judged on facts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.checks.own_name import (
    hosts_file_readable,
    lan_address,
    local_names_not_hidden,
    own_name_here,
    own_name_known,
    own_name_not_localhost,
)
from avahi_gpu.checks.registry import run_checks
from avahi_gpu.model import Facts, HostFacts, Lookup, OwnName, PinnedName
from tests.unit.checks.conftest import file_of

LOCALHOST = "127.0.0.1 localhost\n"
UNKNOWN = OwnName("gpu-node-1", "gpu-node-1", (), "Name or service not known")


def with_hosts(facts: Facts, text: str, addresses: tuple[str, ...] = (), **host: object) -> Facts:
    return replace(
        facts,
        etc_hosts=file_of("/etc/hosts", text.encode()),
        kernel_name=Lookup(facts.hostname, addresses, 0.001, "" if addresses else "name not found"),
        host=replace(facts.host, **host),  # type: ignore[arg-type]
    )


def mended(facts: Facts, outcome: object) -> str:
    fix = outcome.fix  # type: ignore[attr-defined]
    assert fix is not None and len(fix.changes) == 1
    return str(fix.changes[0].content.decode())


def test_a_name_that_nobody_knows_gets_a_line(healthy: Facts) -> None:
    facts = with_hosts(healthy, LOCALHOST, own_name=UNKNOWN)

    found = own_name_known(facts)

    assert found.verdict == "error" and "/etc/hosts does not name it" in found.evidence
    assert mended(facts, found) == f"{LOCALHOST}10.77.0.1\tgpu-node-1\n"


def test_a_line_that_is_there_and_does_not_help_is_not_written_again(healthy: Facts) -> None:
    found = own_name_known(with_hosts(healthy, "10.77.0.1 gpu-node-1\n", own_name=UNKNOWN))

    assert found.verdict == "error" and found.fix is None


def test_what_only_follows_from_an_unknown_name_is_not_said(healthy: Facts) -> None:
    facts = with_hosts(healthy, LOCALHOST, own_name=UNKNOWN)

    verdicts = {f.id: f.verdict for f in run_checks(facts)}

    assert verdicts["AG320"] == "error"
    assert {verdicts[id] for id in ("AG103", "AG321", "AG322")} == {"skip"}


def test_a_name_on_the_line_of_localhost_gets_its_own(healthy: Facts) -> None:
    text = "127.0.0.1 localhost gpu-node-1.lan gpu-node-1\n::1 localhost\n"
    own = OwnName("gpu-node-1", "localhost", (("localhost", "127.0.0.1"),))
    facts = with_hosts(healthy, text, ("127.0.0.1",), own_name=own)

    found = own_name_not_localhost(facts)

    assert found.verdict == "error"
    assert (
        mended(facts, found) == "127.0.0.1 localhost\n10.77.0.1\tgpu-node-1.lan gpu-node-1\n::1 localhost\n"
    )


def test_a_machine_without_a_name_is_told_so(healthy: Facts) -> None:
    own = OwnName("localhost", "localhost", (("localhost", "127.0.0.1"),))

    found = own_name_not_localhost(
        replace(with_hosts(healthy, LOCALHOST, own_name=own), hostname="localhost")
    )

    assert found.verdict == "error" and "no host name of its own" in found.says and found.fix is None


@pytest.mark.parametrize("fqdn", ["gpu-node-1", "gpu-node-1.example.org"])
def test_any_other_name_is_fine(fqdn: str, healthy: Facts) -> None:
    own = OwnName("gpu-node-1", fqdn, (("gpu-node-1", "127.0.1.1"),))

    assert own_name_not_localhost(with_hosts(healthy, LOCALHOST, own_name=own)).verdict == "ok"


def test_what_was_not_read_is_unknown(healthy: Facts) -> None:
    late = replace(healthy, host=HostFacts(), unread={"host.own_name": "no answer within 5 s"})

    found = own_name_not_localhost(late)

    assert found.verdict == "unknown" and "no answer within 5 s" in found.says


def test_an_address_of_the_past_is_replaced(healthy: Facts) -> None:
    facts = with_hosts(healthy, f"{LOCALHOST}10.9.9.9 gpu-node-1 # old\n", ("10.9.9.9",))

    found = own_name_here(facts)

    assert found.verdict == "error" and "10.9.9.9" in found.says
    assert mended(facts, found) == f"{LOCALHOST}10.77.0.1\tgpu-node-1\n"


def test_an_old_line_beside_a_right_one_is_a_warning(healthy: Facts) -> None:
    text = f"{LOCALHOST}10.9.9.9 gpu-node-1 gate\n10.77.0.1 gpu-node-1\n"
    facts = with_hosts(healthy, text, ("10.77.0.1", "10.9.9.9"))

    found = own_name_here(facts)

    assert found.verdict == "warn"
    assert mended(facts, found) == f"{LOCALHOST}10.9.9.9 gate\n10.77.0.1 gpu-node-1\n"


def test_a_name_server_is_named_where_the_file_does_not_say_so(healthy: Facts) -> None:
    found = own_name_here(with_hosts(healthy, LOCALHOST, ("203.0.113.9",)))

    assert found.verdict == "warn" and "a name server does" in found.evidence[0]


@pytest.mark.parametrize("addresses", [("127.0.1.1",), ("10.77.0.1",), ("::1", "127.0.0.1")])
def test_loopback_and_the_lan_are_here(addresses: tuple[str, ...], healthy: Facts) -> None:
    assert own_name_here(with_hosts(healthy, LOCALHOST, addresses)).verdict == "ok"


@pytest.mark.parametrize(
    ("line", "pinned", "verdict"),
    [
        ("10.77.0.1 gpu-node-1.local", None, "info"),
        ("127.0.1.1 gpu-node-1.local", None, "error"),
        ("10.9.9.9 GPU-NODE-1.local.", None, "error"),
        ("127.0.0.1 gpu-node-2.local", None, "error"),
        ("10.77.0.1 gpu-node-2.local", None, "error"),
        ("10.77.0.2 gpu-node-2.local", ("10.77.0.2", "gpu-node-2.local", True), "info"),
        # nobody's word: never a guess
        ("10.9.9.9 gpu-node-2.local", None, "info"),
        ("10.9.9.9 gpu-node-2.local", ("", "", False), "info"),
        ("10.9.9.9 gpu-node-2.local", ("10.77.0.2", "", None), "info"),
        # its second card, which mDNS does not tell of on this LAN
        ("10.9.9.9 gpu-node-2.local", ("10.77.0.2", "", True), "info"),
        ("10.9.9.9 gpu-node-2.local", ("10.77.0.2", "gpu-node-2.local", True), "info"),
        ("10.9.9.9 gpu-node-2.local", ("10.77.0.2", "", False), "error"),
        ("10.77.0.3 gpu-node-2.local", ("10.77.0.2", "gpu-node-3.local", True), "error"),
        ("10.9.9.9 a.gpu-node-2.local gpu-node-2", None, "ok"),
    ],
)
def test_a_pinned_name_is_wrong_only_where_that_is_sure(
    line: str, pinned: tuple[str, str, bool | None] | None, verdict: str, healthy: Facts
) -> None:
    asked: tuple[PinnedName, ...] = ()
    if pinned is not None:
        told, holder, answers = pinned
        address = line.split(maxsplit=1)[0]
        asked = (PinnedName(1, "gpu-node-2.local", address, (told,) if told else (), holder, answers),)
    facts = with_hosts(healthy, f"{line}\n", pinned_names=asked)

    assert local_names_not_hidden(facts).verdict == verdict


def test_wrong_names_alone_are_taken_out(healthy: Facts) -> None:
    text = (
        "127.0.1.1 gpu-node-1.local gpu-node-1\n# x\n127.0.1.1 gpu-node-2.local\n10.77.0.1 gpu-node-1.local\n"
    )
    facts = with_hosts(healthy, text)

    assert mended(facts, local_names_not_hidden(facts)) == (
        "127.0.1.1 gpu-node-1\n# x\n10.77.0.1 gpu-node-1.local\n"
    )


def test_a_file_that_cannot_be_written_gets_no_fix(healthy: Facts) -> None:
    facts = with_hosts(healthy, LOCALHOST, own_name=UNKNOWN)
    facts = replace(facts, etc_hosts=replace(facts.etc_hosts, writable=False))

    assert own_name_known(facts).fix is None


def test_lines_without_effect_are_told(healthy: Facts) -> None:
    found = hosts_file_readable(with_hosts(healthy, "gpu-node-2 10.0.0.2\n# fine\n\n10.0.0.1 a\n"))

    assert found.verdict == "info" and found.evidence == ("/etc/hosts:1: gpu-node-2 10.0.0.2",)


def test_without_a_lan_there_is_no_address(healthy: Facts) -> None:
    assert lan_address(replace(healthy, interfaces=healthy.interfaces[:1])) is None


def test_a_name_that_another_machine_has_is_not_written_down(healthy: Facts) -> None:
    facts = with_hosts(replace(healthy, daemon=replace(healthy.daemon, host_name="gpu-node-2")), LOCALHOST)
    facts = replace(facts, host=replace(facts.host, own_name=UNKNOWN))

    assert own_name_known(facts).verdict == "skip"


def test_one_answer_of_two_is_enough(healthy: Facts) -> None:
    assert own_name_known(with_hosts(healthy, LOCALHOST)).verdict == "ok"


def test_who_else_writes_the_file_is_said(healthy: Facts) -> None:
    plain = with_hosts(healthy, LOCALHOST, own_name=UNKNOWN)
    cloud = with_hosts(healthy, f"# manage_etc_hosts\n{LOCALHOST}", own_name=UNKNOWN)
    locked = replace(plain, etc_hosts=replace(plain.etc_hosts, writable=False))

    assert "cloud-init" in own_name_known(cloud).hint
    assert "lsattr" in own_name_known(locked).hint
    assert "networking.hosts" in own_name_known(replace(plain, distribution="nixos")).hint
    assert "cannot be written" not in own_name_known(plain).hint
