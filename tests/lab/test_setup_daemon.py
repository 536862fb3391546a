"""setup and avahi-daemon itself: whatever its configuration says, one run leads to a node, or back."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.cluster import Cluster
from tests.lab.host import Host
from tests.lab.scenarios.daemon import CONF, set_line
from tests.lab.tree import changed, take_picture

SETUP = ["avahi-gpu", "setup", "--yes"]
UNDO = ["avahi-gpu", "undo", "--yes"]
NSSWITCH = "/etc/nsswitch.conf"
MDNS_ALLOW = "/etc/mdns.allow"
NAME_SERVER = Path(__file__).with_name("name_server.py")
PID_FILE = "/run/avahi-daemon/pid"

# a daemon in front of the real one that does not come up with a configuration that names interfaces
REFUSES = """#!/bin/sh
case "$*" in *--daemonize*)
    if grep -q ^allow-interfaces %s; then %s; fi;;
esac
exec %s "$@"
"""
FRONT = {"PATH": f"/run/front:{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin"}

REAL = shutil.which("avahi-daemon", path="/usr/sbin:/usr/bin")

MakeCluster = Callable[..., Cluster]


def add_bridge(host: Host) -> None:
    """Give the host what Docker makes, before any avahi-daemon has seen it."""
    for words in (
        "link add docker0 type bridge",
        "addr add 172.17.0.1/16 dev docker0",
        "link set docker0 up",
    ):
        host.run(["ip", *words.split()], check=True)


def pid_of(host: Host) -> str:
    return host.run(["cat", PID_FILE]).stdout.strip()


def address_of(host: Host, name: str, *, within_s: float = 30.0) -> str:
    """Return what glibc says, '' for nothing."""
    return host.run(["getent", "ahostsv4", name], timeout=within_s).stdout.partition(" ")[0]


def steps_of(output: str) -> list[str]:
    return [line.removeprefix("… ") for line in output.splitlines() if line.startswith("… ")]


def test_all_that_is_wrong_is_mended_before_the_first_start(make_cluster: MakeCluster) -> None:
    """Malformed, made to hide, blind, and a bridge beside: one run, one start, every comment kept."""
    host = make_cluster(1, bare=True).hosts[0]
    add_bridge(host)
    for section, line in (
        ("server", "cache-entries-max=0"),
        ("server", "use-ipv4 = no"),
        ("publish", "disable-publishing=yes"),
        ("publish", "publish-addresses=no"),
    ):
        set_line(host, section, line)
    host.write(CONF, f"# mine\n{host.read(CONF)}%the end\n")
    before = take_picture(host)

    done = host.run([*SETUP, "--diff"], timeout=90)

    assert done.returncode == 0, done.stdout + done.stderr
    steps = steps_of(done.stdout)
    assert [s for s in steps if s.startswith(("start", "stop", "restart"))] == ["start avahi-daemon"], steps
    conf = host.read(CONF).splitlines()
    assert conf[0] == "# mine" and conf[-1] == "%the end"
    assert {"allow-interfaces=eth0", "use-ipv4=yes", "disable-publishing=no", "publish-addresses=yes"} <= set(
        conf
    )
    assert "#cache-entries-max=0" in conf
    assert address_of(host, f"{host.name}.local") == host.address
    pid = pid_of(host)
    again = host.run(SETUP, timeout=90)
    assert again.stdout.startswith("nothing to do\n")
    assert pid_of(host) == pid

    host.run(UNDO, check=True)
    assert changed(before, take_picture(host)) == []


PRIOR = {
    "dbus is off": ("server", "enable-dbus=no"),
    "publishing is off": ("publish", "disable-publishing=yes"),
    "addresses are not published": ("publish", "publish-addresses=no"),
    "jobs may not publish": ("publish", "disable-user-service-publishing=yes"),
    "IPv4 is off": ("server", "use-ipv4=no"),
    "another domain": ("server", "domain-name=lan"),
    "the LAN is denied": ("server", "deny-interfaces=eth0"),
    "no such interface": ("server", "allow-interfaces=eth7"),
    "nothing is remembered": ("server", "cache-entries-max=0"),
    "one object a client": ("server", "objects-per-client-max=1"),
}
QUICK = ("dbus is off",)


@pytest.mark.parametrize(
    "prior", [pytest.param(one, marks=() if one in QUICK else pytest.mark.faults) for one in PRIOR]
)
def test_a_running_daemon_is_restarted_once_and_undo_restarts_it_too(
    prior: str, make_cluster: MakeCluster
) -> None:
    host = make_cluster(1, bare=True).hosts[0]
    section, line = PRIOR[prior]
    set_line(host, section, line)
    host.run(["avahi-daemon", "--daemonize"], check=True)
    pid = pid_of(host)
    before = take_picture(host)

    done = host.run(SETUP, timeout=120)

    assert done.returncode == 0, done.stdout + done.stderr
    steps = steps_of(done.stdout)
    assert [s for s in steps if "avahi-daemon" in s and CONF not in s] == ["restart avahi-daemon"]
    assert pid_of(host) != pid
    assert line not in host.read(CONF).splitlines()
    assert address_of(host, f"{host.name}.local") == host.address

    pid = pid_of(host)
    undone = host.run(UNDO, check=True)
    assert changed(before, take_picture(host)) == []
    assert pid_of(host) != pid  # what it had read is out of force as well
    assert "restart it" not in undone.stdout


@pytest.fixture
def bridged(make_cluster: MakeCluster) -> Host:
    """A host whose running daemon uses a bridge, and in front of it a daemon that refuses the cure."""
    host = make_cluster(1, bare=True).hosts[0]
    add_bridge(host)
    host.start_avahi()
    return host


def refuse(host: Host, how: str) -> None:
    host.write("/run/front/avahi-daemon", REFUSES % (CONF, how, REAL), 0o755)


@pytest.mark.faults  # on a booted machine CI tries it
def test_a_configuration_that_the_daemon_refuses_is_taken_back(bridged: Host) -> None:
    """Our rules take it and the daemon does not: the machine is as before, and the next run mends it."""
    pid, conf = pid_of(bridged), bridged.read(CONF)
    refuse(bridged, "exit 1")

    done = bridged.run(SETUP, timeout=120, env=FRONT)

    assert done.returncode == 1, done.stdout
    assert "does not come up with the new /etc/avahi/avahi-daemon.conf, which was taken back" in done.stderr
    assert "avahi-daemon runs as it did before" in done.stderr
    assert bridged.read(CONF) == conf
    bridged.wait_for_avahi()
    assert pid_of(bridged) != pid
    bridged.run(SETUP, check=True, timeout=120)
    assert "allow-interfaces=eth0" in bridged.read(CONF)
    bridged.run(UNDO, check=True)
    assert bridged.read(CONF) == conf
    bridged.wait_for_avahi()


@pytest.mark.parametrize("after", [pytest.param(SETUP, id="setup"), pytest.param(UNDO, id="undo")])
@pytest.mark.faults
def test_killed_as_the_daemon_refuses_the_next_run_brings_it_back(bridged: Host, after: list[str]) -> None:
    conf = bridged.read(CONF)
    refuse(bridged, "kill -9 $(pgrep -o -f 'avahi-gpu setup'); exit 1")

    bridged.run(SETUP, timeout=120, env=FRONT)
    assert "allow-interfaces=eth0" in bridged.read(CONF)
    assert bridged.run(["avahi-daemon", "--check"]).returncode != 0

    refuse(bridged, "exit 1")
    done = bridged.run(after, timeout=120, env=FRONT)
    assert done.returncode == (1 if after is SETUP else 0), done.stdout + done.stderr
    assert bridged.read(CONF) == conf
    bridged.wait_for_avahi()
    bridged.run(SETUP, check=True, timeout=120)


def test_where_dns_owns_local_mdns_is_asked_on_request_alone(make_cluster: MakeCluster) -> None:
    """--yes leaves the company's domain alone; with --mdns-allow both kinds of names resolve."""
    lab = make_cluster(2)
    host, peer = lab.hosts
    server = host.follow([sys.executable, "-S", "-E", "-s", NAME_SERVER, "127.0.0.1", "company"])
    server.wait_for("ready")
    host.write("/etc/resolv.conf", "nameserver 127.0.0.1\n")
    host.write(MDNS_ALLOW, "# ours\n*\n")  # without effect: the module on the hosts line does not read it
    line, allow = host.read(NSSWITCH), host.read(MDNS_ALLOW)

    told = host.run(SETUP, timeout=90)

    assert told.returncode == 1
    assert "claims the domain local" in told.stderr and "avahi-gpu setup --mdns-allow" in told.stderr
    assert (host.read(NSSWITCH), host.read(MDNS_ALLOW)) == (line, allow)
    assert address_of(host, "intranet.local") == "198.51.100.7"

    done = host.run([*SETUP, "--mdns-allow"], timeout=90)

    assert done.returncode == 0, done.stdout + done.stderr
    assert address_of(host, f"{peer.name}.local") == peer.address
    assert address_of(host, "intranet.local") == "198.51.100.7"  # after the five seconds that Avahi waits
    assert address_of(host, "www.example.org", within_s=3.0) == "198.51.100.8"  # at once: no "*" any more
    assert host.run(SETUP, timeout=90).stdout.startswith("nothing to do\n")
    host.run([*UNDO], check=True)
    assert (host.read(NSSWITCH), host.read(MDNS_ALLOW)) == (line, allow)
    server.end()
