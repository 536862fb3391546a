"""nsswitch.conf behind links, and a vendor's: read, judged, changed and taken back in a tree of its own."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path

import pytest

from avahi_gpu.changes import journal
from avahi_gpu.checks.hosts_line import mdns_before_dns
from avahi_gpu.host.machine import library_folders, read_hosts_line
from avahi_gpu.host.system import System
from avahi_gpu.model import Facts
from tests.unit.changes.facts import bare_facts
from tests.unit.changes.test_journal import snapshot

PLAIN = b"# whoever's\npasswd: files\nhosts: files dns\n"
GOOD = PLAIN.replace(b"files dns", b"files mdns4_minimal [NOTFOUND=return] dns")
ETC = "etc/nsswitch.conf"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("etc", "run", "var/lib/site", "usr/etc", "usr/share"):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


def facts_of(system: System) -> Facts:
    return replace(bare_facts(), nsswitch=read_hosts_line(system))


def mend(system: System) -> None:
    """Make the change that is wanted; afterwards nothing is, and undo brings the tree back to the byte."""
    before = snapshot(system.root)
    found = mdns_before_dns(facts_of(system))
    assert found.fix is not None
    journal.apply(found.fix.changes, system)
    assert mdns_before_dns(facts_of(system)).verdict == "ok"
    assert system.read("/etc/nsswitch.conf").content == GOOD
    unwinding = journal.plan_undo(system)
    assert journal.undo(unwinding, system).failed == ()
    assert snapshot(system.root) == before


@pytest.mark.parametrize("target", ["/var/lib/site/nsswitch.conf", "../var/lib/site/nsswitch.conf", "mine"])
def test_the_file_behind_an_administrators_link_is_changed_and_the_link_stays(
    root: Path, target: str
) -> None:
    (root / ETC).symlink_to(target)
    file = root / target.lstrip("/") if target[0] == "/" else (root / "etc" / target)
    file.write_bytes(PLAIN)

    mend(System(root))

    assert (root / ETC).is_symlink()


def test_a_vendors_file_is_overridden_in_etc_and_counts_again_after_undo(root: Path) -> None:
    (root / "usr/etc/nsswitch.conf").write_bytes(PLAIN)
    libraries = root / library_folders(platform.machine())[1].lstrip("/")
    libraries.mkdir(parents=True)
    (libraries / "libc.so.6").write_bytes(b"\x7fELF\0/etc/nsswitch.conf\0/usr/etc/nsswitch.conf\0")

    mend(System(root))

    assert (root / "usr/etc/nsswitch.conf").read_bytes() == PLAIN
    assert not (root / ETC).exists()


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("/usr/share/nsswitch.conf", "cp --remove-destination"),
        ("/run/nsswitch.conf", "find that program"),
        ("/var/lib/site/gone", "remove the link"),
    ],
)
def test_other_links_are_told(root: Path, target: str, hint: str) -> None:
    (root / ETC).symlink_to(target)
    if "gone" not in target:
        (root / target.lstrip("/")).write_bytes(PLAIN)

    found = mdns_before_dns(facts_of(System(root)))

    assert found.verdict == "error" and found.fix is None
    assert hint in found.hint
