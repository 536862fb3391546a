"""A and F: what keeps avahi-daemon from starting, and what was written past it."""

from __future__ import annotations

from tests.lab.cluster import Cluster
from tests.lab.scenarios.daemon import restart
from tests.lab.scenarios.names import hosts_line
from tests.lab.scenarios.network import base, rules
from tests.lab.scenarios.scenario import Scenario

PID_FILE = "/run/avahi-daemon/pid"


def old_pid_file(lab: Cluster) -> None:
    """Stop the daemon, and leave the number of another process, as a container does that is started anew."""
    host = lab[0]
    host.stop_avahi()
    sleeper = host.popen(["sh", "-c", "echo $$; exec sleep 600"])
    assert sleeper.stdout is not None
    host.write(PID_FILE, sleeper.stdout.readline())
    assert host.run(["avahi-daemon", "--daemonize"]).returncode != 0


def no_user(lab: Cluster) -> None:
    """Take the daemon's user away, as a copied /etc does."""
    host = lab[0]
    host.stop_avahi()
    lines = host.read("/etc/passwd").splitlines(keepends=True)
    host.write("/etc/passwd", "".join(line for line in lines if not line.startswith("avahi:")))
    assert host.run(["avahi-daemon", "--daemonize"]).returncode != 0


def own_name_published_twice(lab: Cluster) -> None:
    """Publish the own name with an old address beside the right one."""
    lab[0].write("/etc/avahi/hosts", f"10.77.255.9 {lab[0].name}.local\n")
    restart(lab[0])


SCENARIOS = (
    Scenario(
        "A-18",
        "pid-file-of-another-process",
        "a pid file that was left behind names a process that is now another program",
        "AG304",
        old_pid_file,
        mends=True,
    ),
    Scenario(
        "F-08",
        "no-user-for-avahi",
        "the user `avahi` is missing: the daemon does not start",
        "AG304",
        no_user,
    ),
    Scenario(
        "F-07",
        "variable-leads-to-no-bus",
        "`DBUS_SYSTEM_BUS_ADDRESS` names a socket that is not there",
        "AG301",
        lambda _: None,
        env={"DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/host/run/dbus/system_bus_socket"},
    ),
    Scenario(
        "F-06",
        "avahi-hosts-has-the-own-name",
        "/etc/avahi/hosts publishes the own name under an old address",
        "AG313",
        own_name_published_twice,
        mends=True,
    ),
    Scenario(
        "F-04",
        "firewall-without-loopback",
        "nft drops what comes in on `lo`",
        "AG200",
        rules(base("input", "iif lo drop")),
    ),
    Scenario(
        "F-05",
        "hosts-line-without-files",
        "`hosts: mdns4_minimal [NOTFOUND=return] dns`: /etc/hosts is never read",
        "AG320",
        hosts_line("mdns4_minimal [NOTFOUND=return] dns"),
        mends=True,
    ),
)
