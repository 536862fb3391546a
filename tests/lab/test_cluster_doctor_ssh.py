"""``doctor --cluster --ssh``: a real ssh starts the doctors of the others; its faults are told apart."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator

import pytest

from tests.lab.cluster import Cluster, cluster
from tests.lab.doctoring import set_up
from tests.lab.host import Host
from tests.lab.process import Follower
from tests.lab.surveying import survey

pytestmark = pytest.mark.lab

CONFIG = "Host *\n  IdentityFile /etc/ssh/lab_key\n  UserKnownHostsFile /dev/null\n"
HOME = "/run/home"  # the real one of root is the outer machine's
ALLOWED = f"{HOME}/.ssh/authorized_keys"
KNOWN = "/etc/ssh/ssh_known_hosts"


@pytest.fixture(scope="module")
def lab() -> Iterator[Cluster]:
    """Three nodes; from the first one ssh leads to the second, and to the third but for a fault at a time."""
    assert shutil.which("dropbear") and shutil.which("ssh"), "scripts/bootstrap installs both"
    with cluster(3) as hosts:
        set_up(hosts, forget=True)
        one = hosts[0]
        one.run(["mkdir", "-p", "/etc/ssh"], check=True)
        one.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/etc/ssh/lab_key"], check=True)
        one.write("/etc/ssh/ssh_config", CONFIG)
        servers = [serve_ssh(host, one.read("/etc/ssh/lab_key.pub")) for host in hosts[1:]]
        lines = [one.run(["ssh-keyscan", "-t", "ed25519", h.address], check=True).stdout for h in hosts[1:]]
        one.write(KNOWN, "".join(lines))
        yield hosts
        for server in servers:
            server.end()


def serve_ssh(host: Host, key: str) -> Follower:
    """Start an ssh server that lets ``key`` in, with a home folder of its own."""
    host.write("/etc/passwd", host.read("/etc/passwd").replace(":/root:", f":{HOME}:"))
    host.run(["install", "-d", "-m", "700", HOME, f"{HOME}/.ssh"], check=True)
    host.write(ALLOWED, key)
    host.run(["dropbearkey", "-t", "ed25519", "-f", "/run/hostkey"], check=True)
    server = host.follow(["dropbear", "-F", "-E", "-s", "-r", "/run/hostkey"])
    server.wait_for("Not backgrounding")
    return server


def doctors_on(host: Host) -> list[str]:
    return [line for line in host.strangers() if "doctor --serve" in line]


def test_the_others_are_started_and_end_with_the_question(lab: Cluster) -> None:
    found = survey(lab[0], "--ssh", "--fail-on", "warn")

    assert (found.exit_code, found.states) == (0, {}), found.tell()
    deadline = time.monotonic() + 10
    while left := [line for host in lab for line in doctors_on(host)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def test_a_host_key_known_by_name_alone_is_enough(lab: Cluster) -> None:
    known = lab[0].read(KNOWN)
    lab[0].write(KNOWN, known.replace(lab[1].address, "gpu-node-2.local"))
    try:
        found = survey(lab[0], "--ssh")
    finally:
        lab[0].write(KNOWN, known)

    assert (found.exit_code, found.states) == (0, {}), found.tell()


@pytest.mark.parametrize("fault", ["route", "nobody", "host key", "auth", "command"])
def test_a_fault_of_ssh_is_told_for_what_it_is(fault: str, lab: Cluster) -> None:
    one, three = lab[0], lab[2]
    known, allowed = one.read(KNOWN), three.read(ALLOWED)
    rule = {"route": "drop", "nobody": "reject with tcp reset"}.get(fault)
    if rule:
        table = f"table inet t {{ chain c {{ type filter hook input priority 0; tcp dport 22 {rule}; }}; }}\n"
        three.run(["nft", "-f", "-"], input=table, check=True)
    elif fault == "host key":
        one.write(KNOWN, "".join(line for line in known.splitlines(True) if three.address not in line))
    elif fault == "auth":
        three.write(ALLOWED, "")
    else:
        three.write(ALLOWED, f'command="PATH=/nowhere; exec avahi-gpu" {allowed}')
    try:
        found = survey(one, "--ssh", "--wait", "8")
    finally:
        one.write(KNOWN, known)
        three.write(ALLOWED, allowed)
        if rule:
            three.run(["nft", "delete", "table", "inet", "t"], check=True)

    told = {
        "route": "gets no answer",
        "nobody": "no ssh server listens there",
        "host key": "does not know its host key",
        "auth": "not let in without a password",
        "command": "avahi-gpu is not found there",
    }
    assert found.of("warn") == ["AG620"], found.tell()
    assert "gpu-node-3: " in found.says("AG620") and told[fault] in found.says("AG620")
    assert found.node(2)["asked"] and not found.node(3)["asked"]
