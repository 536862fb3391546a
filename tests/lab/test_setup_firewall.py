"""setup --firewall on hosts whose nftables drop: the LAN's machines come in, and nobody else."""

from __future__ import annotations

import json
import time

import pytest

from tests.lab.cluster import cluster
from tests.lab.doctoring import doctor
from tests.lab.host import Host
from tests.lab.runs import ALLREDUCE, launch, on_all
from tests.lab.tree import changed, take_picture

SETUP = ["avahi-gpu", "setup"]
HIGH_PORT = 45123  # as gloo and NCCL get one from the kernel
SERVICE_PORT = 8888  # of a program that is no part of a job
CONNECT_S = 2.0  # dropped packets are not answered at all; on a LAN others are in a millisecond
LISTEN_S = 20.0  # a Python that starts on a busy machine
LISTEN = """
import socket, sys
for port in map(int, sys.argv[1:]):
    s = socket.create_server(("0.0.0.0", port)); globals()[f"s{port}"] = s
print("listening", flush=True)
sys.stdin.read()
"""
CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[2], int(sys.argv[3])), float(sys.argv[4]), (sys.argv[1], 0)).close()
except OSError:
    sys.exit(1)
"""


def wall(blocked: str) -> str:
    """Rules as many hosts have them: what is asked for comes in, and ssh, and nobody from one machine."""
    return f"""
table inet filter {{
    chain input {{
        type filter hook input priority filter; policy drop;
        ip saddr {blocked} drop
        ct state established,related accept
        iif lo accept
        icmp type echo-request accept
        tcp dport 22 accept
    }}
    chain output {{ type filter hook output priority filter; policy accept; }}
}}
"""


def ruleset(host: Host) -> str:
    return host.run(["nft", "--stateless", "list", "ruleset"], check=True).stdout


def reaches(host: Host, source: str, address: str, port: int) -> bool:
    argv = ["python3", "-c", CONNECT, source, address, str(port), str(CONNECT_S)]
    return host.run(argv, timeout=60).returncode == 0


def test_the_lan_is_let_in_and_nobody_else_and_undo_shuts_it_again() -> None:
    with cluster(2, bare=True) as lab:
        one, two = lab.hosts
        blocked, stranger = f"{lab.subnet}.66", "10.99.0.2"
        one.run(["nft", "-f", "-"], input=wall(blocked), check=True)
        one.run(["ip", "route", "add", "10.99.0.0/24", "dev", "eth0"], check=True)
        two.run([*SETUP, "--yes"], check=True)
        before = ruleset(one)

        shut = one.run([*SETUP, "--yes"], timeout=60)

        assert shut.returncode == 1
        assert "drops mDNS" in shut.stderr and "setup --firewall" in shut.stderr
        assert ruleset(one) == before
        assert doctor(one, "--only", "AG204").errors == ["AG204"]

        check = one.run([*SETUP, "--check", "--firewall", "--json"], timeout=60)
        assert check.returncode == 5
        argvs = [c["argv"] for c in json.loads(check.stdout)["data"]["changes"]]
        assert [argv[:6] for argv in argvs] == [["nft", "add", "rule", "inet", "filter", "input"]] * 3
        assert f"{lab.subnet}.0/24" in argvs[0] and "5353" in argvs[0]
        assert ruleset(one) == before

        done = one.run([*SETUP, "--firewall", "--yes"], timeout=60)

        assert done.returncode == 0, done.stdout + done.stderr
        assert "ends with the next boot" in done.stdout  # nothing here loads rules at boot
        found = one.run(["getent", "hosts", f"{two.name}.local"], timeout=30, check=True).stdout
        assert found.split()[0] == two.address
        # only now: Avahi answers from the address that it was told of last
        for address in (f"{blocked}/24", f"{stranger}/24"):
            two.run(["ip", "address", "add", address, "dev", "eth0"], check=True)
        listener = one.popen(["python3", "-c", LISTEN, str(HIGH_PORT), str(SERVICE_PORT)], stdin=-1)
        until = time.monotonic() + LISTEN_S
        while not reaches(one, "127.0.0.1", "127.0.0.1", HIGH_PORT):
            assert time.monotonic() < until
        assert reaches(two, two.address, one.address, HIGH_PORT)
        assert not reaches(two, two.address, one.address, SERVICE_PORT)
        assert not reaches(two, stranger, one.address, HIGH_PORT)
        assert not reaches(two, blocked, one.address, HIGH_PORT)

        opened = ruleset(one)
        again = one.run([*SETUP, "--firewall", "--yes", "--json"], timeout=60, check=True)
        assert json.loads(again.stdout)["data"] == {"changes": [], "changed": False}
        assert ruleset(one) == opened

        undone = one.run(["avahi-gpu", "undo", "--yes"], timeout=60, check=True)
        assert ruleset(one) == before, undone.stdout
        assert not reaches(two, two.address, one.address, HIGH_PORT)
        listener.kill()


@pytest.mark.faults  # torch is loaded twice
def test_what_is_opened_is_enough_for_a_job_of_gloo() -> None:
    with cluster(2, bare=True) as lab:
        for host in lab:
            host.run(["nft", "-f", "-"], input=wall(f"{lab.subnet}.66"), check=True)
            host.run(["nft", "add", "rule", "inet", "filter", "input", "reject"], check=True)
            host.run([*SETUP, "--firewall", "--yes"], timeout=90, check=False)
        # the first one was alone when it looked; a rule that drops single machines before one that drops all
        # leaves no place for ours that would be certain
        assert "10.77" not in ruleset(lab[0]).replace(f"{lab.subnet}.66", "")
        for host in lab:
            host.run(["nft", "flush", "ruleset"], check=True)
            host.run(["nft", "-f", "-"], input=wall("10.66.0.1"), check=True)
            host.run(["nft", "add", "rule", "inet", "filter", "input", "reject"], check=True)
            done = host.run([*SETUP, "--firewall", "--yes"], timeout=90)
            assert done.returncode == 0, done.stdout + done.stderr

        with on_all(lab.hosts, launch("--nnodes", "2", ALLREDUCE)) as job:
            assert job.codes() == [0, 0]
            assert [(rank, size) for rank, size, _, _ in job.sums()] == [(0, 2), (1, 2)]


def test_a_machine_that_is_on_a_public_network_alone_is_refused_and_left_as_it_is() -> None:
    with cluster(1, bare=True, subnet="203.0.113") as lab:
        (host,) = lab
        host.run(["nft", "-f", "-"], input=wall("203.0.113.66"), check=True)
        before, rules = take_picture(host), ruleset(host)

        done = host.run([*SETUP, "--firewall", "--yes"], timeout=60)

        assert done.returncode == 1
        assert "203.0.113.0/24 on eth0 is not a private network" in done.stderr
        assert "run: nft add rule inet filter input" in done.stderr
        assert changed(before, take_picture(host)) == [] and ruleset(host) == rules
