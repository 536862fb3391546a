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
ENDED_S = 40.0  # a second on an idle machine, long before they would end by themselves


@pytest.fixture(scope="module")
def lab() -> Iterator[Cluster]:
    """Three nodes; from the first one ssh leads to the others."""
    assert shutil.which("dropbear") and shutil.which("ssh"), "scripts/bootstrap installs both"
    with cluster(3) as hosts:
        set_up(hosts, forget=True)
        one = hosts[0]
        one.run(["mkdir", "-p", "/etc/ssh"], check=True)
        one.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/etc/ssh/lab_key"], check=True)
        one.write("/etc/ssh/ssh_config", CONFIG)
        servers = [serve_ssh(host, one.read("/etc/ssh/lab_key.pub")) for host in hosts[1:]]
        lines = [one.run(["ssh-keyscan", "-t", "ed25519", h.address], check=True).stdout for h in hosts[1:]]
        named = lines[1].replace(hosts[2].address, f"{hosts[2].name}.local")  # and is known by no address
        one.write(KNOWN, f"{hosts[1].name}.local,{lines[0]}{named}")
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
    deadline = time.monotonic() + ENDED_S
    while left := [line for host in lab for line in doctors_on(host)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


@pytest.mark.parametrize("faults", [("no key of ours", "a firewall"), ("no host key", "no avahi-gpu")])
def test_faults_of_ssh_are_told_for_what_they_are(faults: tuple[str, str], lab: Cluster) -> None:
    one, *others = lab
    known, allowed = one.read(KNOWN), others[0].read(ALLOWED)
    for fault, host in zip(faults, others, strict=True):
        if fault == "a firewall":
            rule = "table inet t { chain c { type filter hook input priority 0; tcp dport 22 drop; }; }\n"
            host.run(["nft", "-f", "-"], input=rule, check=True)
        elif fault == "no host key":
            one.write(KNOWN, "".join(line for line in known.splitlines(True) if host.name not in line))
        elif fault == "no key of ours":
            host.write(ALLOWED, "")
        else:
            host.write(ALLOWED, f'command="PATH=/nowhere; exec avahi-gpu" {allowed}')
    try:
        found = survey(one, "--ssh", "--wait", "8")
    finally:
        one.write(KNOWN, known)
        for host in others:
            host.write(ALLOWED, allowed)
            host.run(["nft", "flush", "ruleset"], check=True)

    told = {
        "a firewall": "gets no answer",
        "no host key": "does not know its host key",
        "no key of ours": "not let in without a password",
        "no avahi-gpu": "avahi-gpu is not found there",
    }
    why = {n["name"]: n["why"] for n in found.data["nodes"]}
    for fault, host in zip(faults, others, strict=True):
        assert told[fault] in why[host.name], why
    assert found.findings["AG620"]["verdict"] == "unknown"  # nobody at all was asked
