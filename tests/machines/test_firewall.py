"""setup --firewall on Debian with nftables, ufw and firewalld: open for the LAN, after a boot too."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.lab.tree import Picture, changed, take_picture
from tests.machines.lab import Lab
from tests.machines.machine import Machine

pytestmark = pytest.mark.machines

SETUP = ["avahi-gpu", "setup", "--yes"]
OPEN = [*SETUP, "--firewall", "--json"]
HIGH_PORT = 45123  # as gloo and NCCL get one from the kernel
SERVICE_PORT = 8888  # of a program that is no part of a job
CONNECT_S = 2.0  # dropped packets are not answered at all; on a LAN others are in a millisecond
LISTEN = """
import socket, sys, time
held = [socket.create_server(("0.0.0.0", int(port))) for port in sys.argv[1:]]
print("listening", flush=True)
time.sleep(600)
"""
CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), float(sys.argv[3])).close()
except OSError:
    sys.exit(1)
"""
RULES = """#!/usr/sbin/nft -f

flush ruleset

table inet filter {
	chain input {
		type filter hook input priority filter; policy drop;
		ct state established,related accept
		iif lo accept
		tcp dport 22 accept
		pkttype host reject
	}
}
"""
SAVED = """*filter
:INPUT DROP [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -i lo -j ACCEPT
-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT
"""
# what iptables-persistent does, by its unit's name
RESTORE = """[Unit]
DefaultDependencies=no
Before=network-pre.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/iptables-restore /etc/iptables/rules.v4
ExecStart=/usr/sbin/ip6tables-restore /etc/iptables/rules.v6
[Install]
WantedBy=multi-user.target
"""
# netbase brings it along on real machines; firewalld does not start without
PROTOCOLS = (
    "ip 0 IP\nicmp 1 ICMP\nigmp 2 IGMP\ntcp 6 TCP\nudp 17 UDP\ndccp 33 DCCP\nipv6 41 IPv6\ngre 47 GRE\n"
    "esp 50 ESP\nah 51 AH\nipv6-icmp 58 IPv6-ICMP\nospf 89 OSPF\nvrrp 112 VRRP\nsctp 132 SCTP\n"
)


def nftables(machine: Machine) -> None:
    machine.apt_install("nftables")
    machine.write("/etc/nftables.conf", RULES, 0o755)
    machine.run(["systemctl", "enable", "--now", "nftables"], check=True)


def nftables_in_parts(machine: Machine) -> None:
    """As on Fedora: the file that is loaded has nothing but includes."""
    machine.apt_install("nftables")
    machine.run(["mkdir", "/etc/nftables"], check=True)
    machine.write("/etc/nftables/main.nft", RULES)
    machine.write("/etc/nftables.conf", 'include "/etc/nftables/*.nft"\n', 0o755)
    machine.run(["systemctl", "enable", "--now", "nftables"], check=True)


def ufw(machine: Machine) -> None:
    machine.apt_install("ufw", "procps")
    machine.run(["ufw", "allow", "ssh"], check=True)
    machine.run(["ufw", "--force", "enable"], check=True)


def iptables(machine: Machine) -> None:
    machine.apt_install("iptables")
    machine.run(["mkdir", "/etc/iptables"], check=True)
    machine.write("/etc/iptables/rules.v4", f"{SAVED}-A INPUT -j REJECT\nCOMMIT\n", 0o640)
    machine.write("/etc/iptables/rules.v6", f"{SAVED}-A INPUT -p ipv6-icmp -j ACCEPT\nCOMMIT\n")
    machine.write("/etc/systemd/system/netfilter-persistent.service", RESTORE)
    machine.run(["systemctl", "enable", "--now", "netfilter-persistent"], check=True)


def firewalld(machine: Machine) -> None:
    machine.write("/etc/protocols", PROTOCOLS)
    machine.apt_install("firewalld", "nftables")
    machine.run(["firewall-cmd", "--state"], check=True)


def together(lab: Lab, work: Callable[[Machine], Any]) -> list[Any]:
    with ThreadPoolExecutor(len(lab)) as pool:
        return list(pool.map(work, lab))


def reaches(one: Machine, other: Machine, port: int) -> bool:
    argv = ["python3", "-c", CONNECT, other.address, str(port), str(CONNECT_S)]
    return one.run(argv).returncode == 0


def answered(machine: Machine) -> Any:
    done = machine.run(OPEN, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)["data"]


def reached(lab: Lab) -> set[tuple[str, int]]:
    """Return what each machine reaches of a job and of another program on the other one."""
    found = set()
    one, two = lab
    for here, there in ((one, two), (two, one)):
        listener = there.follow(["python3", "-c", LISTEN, str(HIGH_PORT), str(SERVICE_PORT)])
        listener.wait_for("listening")
        found |= {(there.name, p) for p in (HIGH_PORT, SERVICE_PORT) if reaches(here, there, p)}
        listener.end()
    return found


def all_see_all(lab: Lab) -> None:
    for told in together(lab, lambda m: m.run(["avahi-gpu", "peers", "--expect", "2", "--json"], timeout=90)):
        peers = json.loads(told.stdout)["data"]["peers"]
        assert {p["name"]: p["alive"] for p in peers} == {"machine-1": True, "machine-2": True}


def rules(machine: Machine) -> str:
    """Return all rules that are in force, by whatever shows them."""
    show = "nft --stateless list ruleset 2>/dev/null || { iptables -S && ip6tables -S; }"
    return machine.run(["sh", "-c", show], check=True).stdout


def pictures(lab: Lab) -> Iterator[Picture]:
    yield from (take_picture(machine) for machine in lab)


def opens_and_shuts(lab: Lab, first: Callable[[Machine], None], second: Callable[[Machine], None]) -> None:
    one, two = lab
    opened = {(one.name, HIGH_PORT), (two.name, HIGH_PORT)}
    together(lab, lambda machine: machine.install_avahi_gpu())
    together(lab, lambda machine: machine.run(SETUP, timeout=180, check=True))
    together(lab, lambda machine: (first if machine is one else second)(machine))
    before = list(pictures(lab))
    shut = [rules(machine) for machine in lab]
    assert reached(lab) == set()

    made = together(lab, answered)

    assert all(data["changed"] for data in made)
    assert reached(lab) == opened
    all_see_all(lab)
    after = list(pictures(lab))

    together(lab, lambda machine: machine.reboot())

    assert reached(lab) == opened
    all_see_all(lab)
    assert [data["changes"] for data in together(lab, answered)] == [[], []]
    assert [changed(*both) for both in zip(after, pictures(lab), strict=True)] == [[], []]

    undo = ["avahi-gpu", "undo", "--last", "--yes"]
    together(lab, lambda machine: machine.run(undo, timeout=180, check=True))

    # byte for byte, and so shut after the next boot as it is now
    assert [changed(*both) for both in zip(before, pictures(lab), strict=True)] == [[], []]
    assert [rules(machine) for machine in lab] == shut
    assert reached(lab) == set()


def test_nftables_and_ufw_let_the_lan_in_after_a_reboot_too_and_undo_shuts_them(
    make_machines: Callable[..., Lab],
) -> None:
    opens_and_shuts(make_machines(2), nftables, ufw)


@pytest.mark.faults  # firewalld takes seconds for each rule
@pytest.mark.parametrize("other", [iptables, nftables_in_parts])
def test_firewalld_and_others_do_too(
    make_machines: Callable[..., Lab], other: Callable[[Machine], None]
) -> None:
    opens_and_shuts(make_machines(2), firewalld, other)
