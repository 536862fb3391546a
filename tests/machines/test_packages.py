"""Packages on a real Debian: nothing is half done where they cannot be had, and others may be at apt too."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.machines.lab import Lab
from tests.machines.machine import Machine

pytestmark = pytest.mark.machines

SETUP = ["avahi-gpu", "setup", "--yes"]
SOURCES = "/etc/apt/sources.list"
NSSWITCH = "/etc/nsswitch.conf"
LOCAL = "deb [trusted=yes] file:/srv/archive ./\n"
UNREACHED = "deb [trusted=yes] http://192.0.2.1/debian bookworm main\n"
HOLD = """import fcntl, time
with open("/var/lib/dpkg/lock-frontend", "w") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    print("held", flush=True)
    time.sleep(600)
"""

BREAK = """set -e
mkdir -p /root/broken/DEBIAN
cd /root/broken/DEBIAN
printf 'Package: broken\\nVersion: 1\\nArchitecture: all\\n' >control
printf 'Maintainer: N <n@example.org>\\nDescription: x\\n' >>control
printf '#!/bin/sh\\nexit 1\\n' >postinst
chmod 755 postinst
dpkg-deb --build /root/broken /root/broken.deb
dpkg --install /root/broken.deb || true
"""


def refused(machine: Machine) -> str:
    """Run setup, see that it fails by apt and leaves /etc alone; return what it says."""
    before = machine.run(["sh", "-c", "cd /etc && find . -type f | sort | xargs sha256sum"]).stdout
    done = machine.run(SETUP, timeout=120)
    assert done.returncode == 1, done.stdout + done.stderr
    assert machine.run(["sh", "-c", "cd /etc && find . -type f | sort | xargs sha256sum"]).stdout == before
    assert machine.run(["sh", "-c", "command -v avahi-daemon"]).returncode != 0
    assert len(done.stderr.splitlines()) == 2, done.stderr  # what is, what to do
    return done.stderr


def resolves(machine: Machine, name: str) -> bool:
    return machine.run(["getent", "hosts", name]).returncode == 0


def test_packages_come_whole_or_not_at_all(make_machines: Callable[..., Lab]) -> None:
    machine = make_machines(1)[0]
    machine.install_avahi_gpu()

    # the archive does not have them
    machine.write(SOURCES, "")
    assert "universe on Ubuntu" in refused(machine)

    # nobody answers there
    machine.write(SOURCES, UNREACHED)
    machine.run(["ip", "route", "add", "unreachable", "192.0.2.0/24"], check=True)
    assert "reaches its package archive" in refused(machine)

    # dpkg was interrupted: it has left its notes of what it was doing, and setup lets it go on
    machine.write(SOURCES, LOCAL)
    machine.run(["apt-get", "update"], check=True)
    machine.run(
        ["sh", "-c", "sed -n '/^Package: bash$/,/^$/p' /var/lib/dpkg/status > /var/lib/dpkg/updates/0001"],
        check=True,
    )

    # a slip in nsswitch.conf, for which no program knows any user: mended before the packages' scripts run;
    # somebody else is at apt: he is waited for by name; packages may not start daemons: setup may
    plain = machine.read(NSSWITCH) or b""
    slip = plain.replace(b"files dns", b"files mdns4_minimal [NOT FOUND=return] dns")
    machine.write(NSSWITCH, slip)
    machine.write("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0o755)
    holder = machine.follow(["python3", "-c", HOLD])
    holder.wait_for("held")
    setup = machine.follow(SETUP)
    setup.wait_for("wait for python3 (process ", 60)
    holder.end()

    assert setup.wait(180) == 0, setup.output
    assert "dpkg --force-confdef --force-confold --configure -a" in setup.output
    assert "machine-1 is a node" in setup.output
    assert "calls for more:\n  install" not in setup.output
    assert resolves(machine, "machine-1.local")
    setup.end()
    machine.run(["avahi-gpu", "undo", "--yes"], check=True)
    assert machine.read(NSSWITCH) == slip


@pytest.mark.faults  # two installations more than CI has time for
def test_debians_own_edits_are_lived_with(make_machines: Callable[..., Lab]) -> None:
    """It edits nsswitch.conf when libnss-mdns is installed, and takes the module out when that is removed."""
    machine = make_machines(1)[0]
    machine.install_avahi_gpu()
    plain = machine.read(NSSWITCH) or b""

    # another package cannot be set up, and apt fails by it each time: no reason not to go on
    machine.run(["sh", "-c", BREAK], check=True)
    planned = json.loads(machine.run(["avahi-gpu", "setup", "--check", "--json"]).stdout)
    done = machine.run(SETUP, check=True, timeout=180).stdout

    assert "came, but another package is broken: dpkg: error processing package broken" in done
    machine.run(["dpkg", "--purge", "broken"], check=True)

    debians = machine.read(NSSWITCH)
    assert b"mdns4_minimal [NOTFOUND=return]" in (debians or b"")
    assert NSSWITCH in [c.get("path") for c in planned["data"]["changes"]]  # nobody knew what Debian would do
    assert "… correct the hosts line" not in done
    machine.run(["avahi-gpu", "undo", "--yes"], check=True)
    assert machine.read(NSSWITCH) == debians  # not ours, and not to be undone

    # where the edit was ours, the package's removal takes it out too: names go on, and so does undo
    machine.write(NSSWITCH, plain)
    machine.run(SETUP, check=True, timeout=120)
    assert b"mdns4_minimal [NOTFOUND=return]" in (machine.read(NSSWITCH) or b"")
    machine.run(["apt-get", "purge", "--yes", "libnss-mdns"], check=True, timeout=120)
    assert resolves(machine, "localhost") and resolves(machine, "machine-1")
    again = json.loads(machine.run([*SETUP, "--json"], check=True, timeout=180).stdout)
    assert [c["kind"] for c in again["data"]["changes"]] == ["package"]
    assert resolves(machine, "machine-1.local")

    machine.run(["apt-get", "purge", "--yes", "libnss-mdns"], check=True, timeout=120)
    machine.run(["avahi-gpu", "undo", "--yes"], check=True)
    assert machine.read(NSSWITCH) == plain
