"""A name by /etc/hosts, by a name server and by mDNS: how long, after a change, and with a dead server."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.measure import Chapter, Series
from tests.lab.cluster import Cluster, cluster
from tests.lab.host import Host
from tests.lab.runs import BIN

LOOK_UP = Path(__file__).with_name("look_up.py")
WARM = 20  # look-ups of each kind in one process
SETTLE_S = 1.5  # as in bench.discovery: a daemon that starts registers its own records first
NODES = 3  # and a fourth host, which serves names
WITHIN_S = 60.0

FILE = "/etc/hosts"
SERVER = "dnsmasq on the LAN"
MDNS = "mDNS (nss-mdns, Avahi), asked before"
COLD = "mDNS, never asked before"
PEERS = "avahi-gpu peers --expect 3"


def measure(runs: int, tell: Callable[[str], None]) -> Iterator[Chapter]:
    """Measure all ways in turn on one LAN. Raises RuntimeError where dnsmasq is missing."""
    dnsmasq = shutil.which("dnsmasq")
    if dnsmasq is None:
        raise RuntimeError("dnsmasq is not here: apt-get install dnsmasq-base")
    with cluster(NODES + 1) as lab:
        for host in lab.hosts[:NODES]:
            host.run([BIN / "avahi-gpu", "setup", "--yes"], check=True, timeout=120)
        serve_names(lab, dnsmasq)
        asker = lab[0]
        asker.write("/etc/resolv.conf", f"nameserver {lab[NODES].address}\n")
        asker.write("/etc/hosts", f"{asker.read('/etc/hosts')}{lab[1].address} by-file\n")
        yield look_ups(lab, runs, tell)
        yield from changes(lab, runs, tell)
        lab[NODES].freeze()  # its kernel takes every question, and nobody answers
        yield dead_server(lab, tell)
        lab[NODES].thaw()


def serve_names(lab: Cluster, dnsmasq: str) -> None:
    """Start a name server for the domain ``lan`` on the last host; return when it answers."""
    records = [f"--host-record={host.name}.lan,{host.address}" for host in lab]
    words = ["--keep-in-foreground", "--no-resolv", "--no-hosts", "--conf-file=/dev/null", "--user=root"]
    server = lab[NODES].follow([dnsmasq, *words, "--local=/lan/", "--log-facility=-", *records])
    server.wait_for("started")


def ask(host: Host, name: str, runs: int) -> Sequence[float | str]:
    """Return the milliseconds of each look-up on ``host``."""
    done = host.run([sys.executable, LOOK_UP, name, str(runs)], check=True, timeout=WITHIN_S * runs)
    return [ms if found else f"not found after {ms / 1000:.1f} s" for ms, found in json.loads(done.stdout)]


def look_ups(lab: Cluster, runs: int, tell: Callable[[str], None]) -> Chapter:
    """Look the second node up from the first one."""
    asker, name = lab[0], lab[1].name
    series = {way: Series(way, unit="ms") for way in (FILE, SERVER, MDNS, COLD)}
    asked = {FILE: "by-file", SERVER: f"{name}.lan", MDNS: f"{name}.local"}
    for run in range(runs):
        tell(f"names, run {run + 1} of {runs}")
        asker.restart_avahi()
        time.sleep(SETTLE_S)
        series[COLD].add(ask(asker, f"{name}.local", 1)[0])
        for way, what in asked.items():
            for taken in ask(asker, what, WARM):
                series[way].add(taken)
    return Chapter(
        "names",
        "Finding the address of a name",
        "one getaddrinfo in a program that runs already; the name server is on the same LAN and lives",
        list(series.values()),
        baseline=SERVER,
    )


def changes(lab: Cluster, runs: int, tell: Callable[[str], None]) -> Iterator[Chapter]:
    """Give the second node another address, and see when the first one knows."""
    names, peers = Series("NAME.local, by glibc"), Series("avahi-gpu peers")
    moved, asker = lab[1], lab[0]
    chapter = Chapter(
        "names-change",
        "A node gets another address",
        "from the change on its card until another node has the new address",
        [names, peers],
    )
    for run in range(runs):
        for series, see in ((names, see_name), (peers, see_peers)):
            tell(f"a new address, run {run + 1} of {runs}: {series.name}")
            address = f"{lab.subnet}.{100 + 2 * run + (series is peers)}"
            series.add(see(asker, moved, address))
        yield chapter


def move(host: Host, address: str) -> float:
    """Replace the address of the host's card; return when, by the monotonic clock."""
    began = time.monotonic()
    # in this order: with the first address of a subnet the kernel drops its others
    host.run(["ip", "address", "delete", f"{host.address}/24", "dev", "eth0"], check=True)
    host.run(["ip", "address", "add", f"{address}/24", "dev", "eth0"], check=True)
    host.address = address
    return began


def see_name(asker: Host, moved: Host, address: str) -> float | str:
    """Return the seconds until glibc on ``asker`` has the new address."""
    waiting = asker.popen([sys.executable, LOOK_UP, f"{moved.name}.local", "until", address])
    began = move(moved, address)
    told, _ = waiting.communicate(timeout=WITHIN_S * 2)
    seen = json.loads(told)
    return "not in a minute" if seen is None else seen - began


def see_peers(asker: Host, moved: Host, address: str) -> float | str:
    """Return the seconds until ``peers`` on ``asker`` lists the new address, alive."""
    began = move(moved, address)
    while time.monotonic() < began + WITHIN_S:
        done = asker.run([BIN / "avahi-gpu", "peers", "--expect", str(NODES), "--json"])
        for peer in json.loads(done.stdout)["data"]["peers"]:
            if peer["address"] == address and peer["alive"]:
                return time.monotonic() - began
    return "not in a minute"


def dead_server(lab: Cluster, tell: Callable[[str], None]) -> Chapter:
    """Ask by all ways while the name server takes every question and answers none."""
    asker, name = lab[0], lab[1].name
    series = [Series(way) for way in (FILE, SERVER, MDNS)]
    peers = Series(PEERS)
    tell("names, while the name server is silent")
    for one, what in zip(series, ("by-file", f"{name}.lan", f"{name}.local"), strict=True):
        taken = ask(asker, what, 1)[0]
        one.add(taken if isinstance(taken, str) else taken / 1000)
    began = time.monotonic()
    asker.run([BIN / "avahi-gpu", "peers", "--expect", str(NODES)], check=True)
    peers.add(time.monotonic() - began)
    return Chapter(
        "names-dead",
        "Finding the address of a name, while the name server is silent",
        "nss-mdns asks the name server first whether somebody owns `local`, and waits for it; "
        "`avahi-gpu peers`, its own start included, asks Avahi alone",
        [*series, peers],
    )
