"""A: avahi-daemon, its process, its bus and its configuration."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.lab.cluster import Cluster
from tests.lab.host import Host
from tests.lab.scenarios.scenario import Scenario

ACTIVATION = "[D-BUS Service]\nName=org.freedesktop.Avahi\nExec=/bin/sleep 60\nUser=root\n"
CONF = "/etc/avahi/avahi-daemon.conf"
ENDED_S = 2  # a daemon that cannot start has ended by then


def setting(section: str, line: str) -> Callable[[Cluster], None]:
    """Return what gives the first host this line in its avahi-daemon.conf and restarts the daemon."""

    def break_it(lab: Cluster) -> None:
        set_line(lab[0], section, line)
        restart(lab[0])

    return break_it


def set_line(host: Host, section: str, line: str) -> None:
    """Write the line below the header of its section, in the place of one with that key."""
    key = line.partition("=")[0]
    lines = [one for one in host.read(CONF).splitlines() if one.partition("=")[0] != key]
    lines.insert(lines.index(f"[{section}]") + 1, line)
    host.write(CONF, "\n".join(lines) + "\n")


def append(line: str) -> Callable[[Cluster], None]:
    """Return what adds this line to the end of the first host's file, as scripts do, and restarts."""

    def break_it(lab: Cluster) -> None:
        lab[0].write(CONF, f"{lab[0].read(CONF)}{line}\n")
        restart(lab[0])

    return break_it


def restart(host: Host) -> None:
    """Restart avahi-daemon, which may not come up again; wait until it has its name where it does."""
    host.stop_avahi()
    if host.run(["avahi-daemon", "--daemonize"]).returncode == 0 and "enable-dbus=no" not in host.read(CONF):
        host.wait_for_avahi()


def docker_bridge(lab: Cluster) -> None:
    """Give the first host what Docker makes: a bridge with an address, and a container's cable in it."""
    words = [
        "link add docker0 type bridge",
        "addr add 172.17.0.1/16 dev docker0",
        "link set docker0 up",
        "link add veth1a type veth peer name veth1b",
        "link set veth1a master docker0 up",
        "link set veth1b up",
    ]
    for word in words:
        lab[0].run(["ip", *word.split()], check=True)
    # of equals the interface that came last answers first: the bridge
    lab[0].restart_avahi()


def deny_docker_by_wildcard(lab: Cluster) -> None:
    """Deny the bridge in the way that has no effect."""
    docker_bridge(lab)
    set_line(lab[0], "server", "deny-interfaces=docker*,veth*")
    lab[0].restart_avahi()


def deny_the_lan_beside_docker(lab: Cluster) -> None:
    """Deny the LAN's own interface, with a bridge beside it."""
    docker_bridge(lab)
    set_line(lab[0], "server", "deny-interfaces=eth0")
    restart(lab[0])


def edit_without_restart(lab: Cluster) -> None:
    """Blind the daemon, then correct the file as somebody does who does not know that it is read once."""
    sound = lab[0].read(CONF)
    setting("server", "allow-interfaces=eth7")(lab)
    lab[0].write(CONF, sound)


def refuse_the_name(lab: Cluster) -> None:
    """Let the system bus refuse Avahi its name, as without the policy file of its package."""
    lab[0].write(
        "/etc/dbus-1/system.d/zz-local.conf",
        '<busconfig><policy user="avahi"><deny own="org.freedesktop.Avahi"/></policy></busconfig>\n',
    )
    ask = ["dbus-send", "--system", "--print-reply", "--dest=org.freedesktop.DBus", "/"]
    lab[0].run([*ask, "org.freedesktop.DBus.ReloadConfig"], check=True)
    lab[0].stop_avahi()
    lab[0].run(["avahi-daemon", "--daemonize"])


def kill_the_bus(lab: Cluster) -> None:
    """Kill dbus-daemon and wait until avahi-daemon has ended with it."""
    lab[0].stop_bus()
    while lab[0].run(["avahi-daemon", "--check"]).returncode == 0:
        time.sleep(0.1)


def freeze_the_daemon(lab: Cluster) -> None:
    """Stop the process, as SIGSTOP or a debugger does."""
    pid = lab[0].read("/run/avahi-daemon/pid").strip()
    lab[0].run(["kill", "-STOP", pid], check=True)


def activation_that_hangs(lab: Cluster) -> None:
    """Stop the daemon, and let the bus start something in its place that never answers."""
    lab[0].write("/etc/activation/avahi.service", ACTIVATION)
    lab[0].write(
        "/etc/dbus-1/system.d/zz-activation.conf",
        "<busconfig><servicedir>/etc/activation</servicedir></busconfig>\n",
    )
    ask = ["dbus-send", "--system", "--print-reply", "--dest=org.freedesktop.DBus", "/"]
    lab[0].run([*ask, "org.freedesktop.DBus.ReloadConfig"], check=True)
    lab[0].stop_avahi()


def missing_file(lab: Cluster) -> None:
    """Take the configuration away."""
    lab[0].path(CONF).unlink()
    restart(lab[0])


def crowded(lab: Cluster) -> None:
    """Set the limit of processes that old files have: it counts those of the other hosts' daemons too."""
    set_line(lab[0], "rlimits", "rlimit-nproc=1")
    lab[0].stop_avahi()
    # its parent would wait 20 s for the word of a child that has ended
    lab[0].run(["timeout", "--signal=KILL", str(ENDED_S), "avahi-daemon", "--daemonize"])


SCENARIOS = (
    Scenario(
        "A-01",
        "own-name-is-dockers-bridge",
        "a bridge docker0 with 172.17.0.1: the own name resolves to it",
        "AG309",
        docker_bridge,
        mends=True,
    ),
    Scenario(
        "A-03",
        "deny-by-wildcard",
        "`deny-interfaces=docker*,veth*` beside a bridge docker0: no effect",
        "AG309",
        deny_docker_by_wildcard,
        mends=True,
    ),
    Scenario(
        "A-03",
        "corrected-and-not-restarted",
        "a wrong `allow-interfaces` was corrected, and the daemon not restarted",
        "AG308",
        edit_without_restart,
        mends=True,
    ),
    Scenario(
        "A-18",
        "the-bus-is-dead",
        "dbus-daemon was killed, and avahi-daemon ended with it",
        "AG301",
        kill_the_bus,
        mends=True,
    ),
    Scenario(
        "A-18",
        "the-bus-refuses-the-name",
        "a policy file of the bus denies Avahi its name",
        "AG304",
        refuse_the_name,
    ),
    Scenario(
        "A-18",
        "the-daemon-is-not-there",
        "avahi-daemon was stopped",
        "AG304",
        lambda lab: lab[0].stop_avahi(),
        mends=True,
    ),
    Scenario(
        "A-19",
        "activation-hangs",
        "the bus would start a program that never answers in the place of a stopped avahi-daemon",
        "AG304",
        activation_that_hangs,
        mends=True,
    ),
    Scenario(
        "A-03",
        "deny-the-lan-beside-a-bridge",
        "`deny-interfaces=eth0` beside a bridge docker0: the second cause shows when the first is mended",
        "AG305",
        deny_the_lan_beside_docker,
        mends=True,
    ),
    Scenario(
        "A-04",
        "no-configuration",
        "avahi-daemon.conf is missing",
        "AG303",
        missing_file,
        mends=True,
    ),
    Scenario(
        "A-24",
        "limit-of-processes",
        "`rlimit-nproc=1`: the daemon cannot start its helper",
        "AG303",
        crowded,
        mends=True,
    ),
    Scenario(
        "A-19",
        "the-daemon-is-frozen",
        "the process was stopped by a signal",
        "AG304",
        freeze_the_daemon,
        mends=True,
    ),
    Scenario(
        "A-03",
        "allow-an-interface-that-is-not-there",
        "`allow-interfaces=eth7`, and no such card",
        "AG305",
        setting("server", "allow-interfaces=eth7"),
        mends=True,
    ),
    Scenario(
        "A-03",
        "allow-an-alias",
        "`allow-interfaces=eth0:0`: an alias is no interface",
        "AG305",
        setting("server", "allow-interfaces=eth0:0"),
        mends=True,
    ),
    Scenario(
        "A-03",
        "deny-the-lan",
        "`deny-interfaces=eth0`, the only card",
        "AG305",
        setting("server", "deny-interfaces=eth0"),
        mends=True,
    ),
    Scenario(
        "A-04",
        "key-in-the-wrong-section",
        "`echo deny-interfaces=docker0 >> avahi-daemon.conf`: it lands under [rlimits], and the daemon stops",
        "AG303",
        append("deny-interfaces=docker0"),
        mends=True,
    ),
    Scenario(
        "A-04",
        "blank-before-the-equals-sign",
        "`use-ipv4 = yes`",
        "AG303",
        setting("server", "use-ipv4 = yes"),
        mends=True,
    ),
    Scenario(
        "A-17",
        "daemon-without-dbus",
        "`enable-dbus=no`: the process lives, and no program can ask it",
        "AG305",
        setting("server", "enable-dbus=no"),
        mends=True,
    ),
    Scenario(
        "A-25",
        "publishing-is-off",
        "`disable-publishing=yes`",
        "AG305",
        setting("publish", "disable-publishing=yes"),
        mends=True,
    ),
    Scenario(
        "A-25",
        "addresses-are-not-published",
        "`publish-addresses=no`: the service is listed and has no address",
        "AG305",
        setting("publish", "publish-addresses=no"),
        mends=True,
    ),
    Scenario(
        "A-25",
        "programs-may-not-publish",
        "`disable-user-service-publishing=yes`: no job can be published",
        "AG305",
        setting("publish", "disable-user-service-publishing=yes"),
        mends=True,
    ),
    Scenario(
        "A-25",
        "nothing-is-remembered",
        "`cache-entries-max=0`: nothing is found",
        "AG305",
        setting("server", "cache-entries-max=0"),
        mends=True,
    ),
)
