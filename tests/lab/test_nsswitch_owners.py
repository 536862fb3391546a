"""setup where nsswitch.conf is somebody else's: each owner has a way of its own, and undo goes it back."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.cluster import Cluster
from tests.lab.host import Host
from tests.lab.tree import Picture, changed, take_picture

NSSWITCH = "/etc/nsswitch.conf"
STAND_IN = Path(__file__).with_name("authselect.py")
# the real programs, of version 1.4 or later, and of 1.2; built so that their profiles are at hand
REAL = os.environ.get("AUTHSELECT", "")
REAL_OLD = os.environ.get("AUTHSELECT_OLD", "")
FOLDERS = (
    "/etc/authselect/custom",
    "/etc/dconf/db/distro.d/locks",
    "/etc/pam.d",
    "/var/lib/authselect/backups",
)
BIN = "/var/lib/bin"

MakeCluster = Callable[..., Cluster]


class Site:
    """A host before setup, and the commands that are run on it."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.path = f"{BIN}:{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin"

    def run(self, line: str, code: int | None = 0) -> str:
        done = self.host.run(line.split(), env={"PATH": self.path})
        assert code is None or done.returncode == code, (line, done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def finds_itself(self) -> bool:
        return self.host.run(["getent", "hosts", f"{self.host.name}.local"]).returncode == 0

    def picture(self) -> Picture:
        return take_picture(self.host)

    def bring_authselect(self, real: str = REAL) -> None:
        self.host.run(["mkdir", "-p", BIN, *FOLDERS], check=True)
        if real:
            # its libraries lie beside it; its profiles are where it was built to look for them
            start = f'#!/bin/sh\nLD_LIBRARY_PATH={Path(real).parent} exec {real} "$@"\n'
            self.host.write(f"{BIN}/authselect", start, 0o755)
        else:
            self.host.write(f"{BIN}/authselect", f"#!{sys.executable}\n{STAND_IN.read_text()}", 0o755)


@pytest.fixture
def site(make_cluster: MakeCluster) -> Site:
    return Site(make_cluster(1, bare=True)[0])


def test_authselect_is_asked_for_its_feature_and_undo_asks_it_back(site: Site) -> None:
    site.bring_authselect()
    site.run("authselect select local with-mkhomedir --force")
    before = site.picture()

    done = site.run("avahi-gpu setup --yes")

    assert "authselect enable-feature with-mdns4" in done
    assert "hosts: files myhostname mdns4_minimal [NOTFOUND=return] resolve" in done  # what it comes to
    assert "is a node" in done
    assert site.finds_itself()
    assert site.run("authselect current --raw") == "local with-mkhomedir with-mdns4\n"
    assert site.run("avahi-gpu setup --yes").startswith("nothing to do\n")

    site.run("avahi-gpu undo --yes")

    assert changed(before, site.picture()) == []
    assert site.run("authselect current --raw") == "local with-mkhomedir\n"

    # the administrator switches it off himself: undo does not do so again
    site.run("avahi-gpu setup --yes --only names")
    site.run("authselect disable-feature with-mdns4")

    assert "No longer in force, so not taken back: let authselect write" in site.run("avahi-gpu undo --yes")

    # versions from 1.4 on write all of their files anew, and say nothing of edits in them
    path = "/etc/authselect/system-auth"
    site.host.write(path, site.host.read(path) + "# and a line of the administrator's\n")
    edited = site.picture()

    refused = site.run("avahi-gpu setup --yes --only names", 1)

    assert "keep your edits in a profile of your own" in refused
    assert changed(edited, site.picture()) == []

    # the line right by hand: it works, until authselect writes it anew
    path = "/etc/authselect/nsswitch.conf"
    site.host.write(path, site.host.read(path).replace("myhostname", "myhostname mdns4_minimal"))

    told = site.run("avahi-gpu doctor --only AG125", None)

    assert "authselect will take mDNS off the hosts line" in told
    assert "authselect enable-feature with-mdns4" in told


@pytest.mark.faults  # RHEL 8 and 9; the decision itself is in tests/unit/checks/test_authselect.py
def test_before_authselect_1_3_the_users_own_file_is_edited_and_applied(site: Site) -> None:
    site.bring_authselect(REAL_OLD)
    site.host.write("/etc/authselect/user-nsswitch.conf", site.host.read(NSSWITCH))
    site.run("authselect select sssd --force")
    before, state = site.picture(), take_picture(site.host, "/var/lib/authselect")

    done = site.run("avahi-gpu setup --yes")

    assert "is a node" in done and site.finds_itself()
    site.run("authselect check")  # it takes its files for its own
    assert site.run("avahi-gpu setup --yes").startswith("nothing to do\n")

    site.run("avahi-gpu undo --yes")

    assert changed(before, site.picture()) == []
    assert changed(state, take_picture(site.host, "/var/lib/authselect")) == []
    site.run("authselect check")


def test_where_the_c_library_reads_no_nsswitch_conf_the_rest_is_to_be_set_up(site: Site) -> None:
    site.host.run(["rm", "/etc/os-release"], check=True)  # a link to a file that all hosts share
    site.host.write("/etc/os-release", "ID=alpine\n")

    planned = site.run("avahi-gpu setup --check", 5)

    assert "names are left out: this system's C library does not read nsswitch.conf" in planned
    assert "torch.service" in planned and NSSWITCH not in planned


@pytest.mark.faults  # tests/unit/changes/test_nsswitch_owners.py does the most of it without hosts
def test_links_mounts_and_locks(site: Site) -> None:
    """The file behind an administrator's link, or a mount, is edited; everybody else's is told and left."""
    host = site.host
    plain = host.read(NSSWITCH)
    own = "/var/lib/site/nsswitch.conf"
    good = plain.replace("files dns", "files mdns4_minimal [NOTFOUND=return] dns")
    host.write(own, plain)
    host.run(["ln", "-sf", own, NSSWITCH], check=True)
    before = site.picture()

    site.run("avahi-gpu setup --yes --only names", None)
    assert host.read(own) == good
    assert changed(before, site.picture()) == []
    site.run("avahi-gpu undo --yes")
    assert host.read(own) == plain

    def refused(words: str) -> None:
        before = site.picture()
        assert words in site.run("avahi-gpu setup --yes --only names", 1)
        assert changed(before, site.picture()) == []
        assert host.read(own) == plain

    host.run(["ln", "-sf", "/var/lib/nowhere", NSSWITCH], check=True)
    refused("is a link to /var/lib/nowhere, which is not there")

    vendors = "/usr/share/libc-bin/nsswitch.conf"
    if Path(vendors).exists():
        host.run(["ln", "-sf", vendors, NSSWITCH], check=True)
        refused(f"cp --remove-destination {vendors} {NSSWITCH}")

    # a mount of its own, as in containers: a rename over it is not possible
    host.run(["rm", NSSWITCH], check=True)
    host.write(NSSWITCH, "")
    host.run(["mount", "--bind", own, NSSWITCH], check=True)
    site.run("avahi-gpu setup --yes --only names", None)
    assert host.read(NSSWITCH) == host.read(own) == good
    site.run("avahi-gpu undo --yes")
    assert host.read(NSSWITCH) == host.read(own) == plain

    host.run(["mount", "-o", "remount,bind,ro", NSSWITCH], check=True)
    refused("change it in the image that this system starts from")
    host.run(["umount", NSSWITCH], check=True)

    host.write(NSSWITCH, plain)
    if host.run(["chattr", "+i", NSSWITCH]).returncode == 0:  # not every file system has attributes
        refused(f"chattr -i {NSSWITCH} && avahi-gpu setup")
        host.run(["chattr", "-i", NSSWITCH], check=True)
