"""How long it takes to find all nodes, by us and by what people use otherwise."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.measure import Chapter, Series
from tests.lab.cluster import Cluster
from tests.lab.host import Host

HERE = Path(__file__).parent
# after a restart of a daemon its neighbours hold answers back for 0.7 s (RFC 6762 section 7.3), and its own
# records are probed for another second: "cold" is a daemon that asks for the first time, not one that starts
SETTLE_S = 1.5

ANNOUNCED_S = 3.0  # a new record is told twice, a second apart: whoever starts in between knows it for free

SERVICE = """<?xml version="1.0" standalone='no'?><!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<service-group><name replace-wildcards="yes">%h</name><service><type>_torch._tcp</type><port>29500</port>
<txt-record>txtvers=1</txt-record><txt-record>id=0123456789a{number}</txt-record></service></service-group>
"""

PEERS = "avahi-gpu peers --expect 3"
LIBRARY = "… the look-up in it"
BROWSE = "avahi-browse -rptk _torch._tcp"
ZEROCONF = "python-zeroconf, sleep(2)"


def measure(lab: Cluster, runs: int, tell: Callable[[str], None]) -> list[Chapter]:
    """Find three nodes from the first one, its daemon cold and warm."""
    for host in lab:
        host.write("/etc/avahi/services/torch.service", SERVICE.format(number=host.number))
        host.restart_avahi()
    time.sleep(ANNOUNCED_S)
    host = lab[0]
    chapters = []
    for state in ("cold", "warm"):
        series = {
            PEERS: Series(PEERS, BROWSE),
            LIBRARY: Series(LIBRARY, BROWSE),
            BROWSE: Series(BROWSE),
            ZEROCONF: Series(ZEROCONF, BROWSE),
        }
        for run in range(runs):
            tell(f"discovery, {state}, run {run + 1} of {runs}")
            for name, command in tools(len(lab)).items():
                if state == "cold":
                    cool(host)
                elif run == 0:
                    command(host)
                series[name].seconds.append(command(host))
        about = (
            "until all three nodes are resolved, the program's start included; the daemon on the asking host "
            + ("has never asked for them" if state == "cold" else "knows them already")
        )
        chapters.append(Chapter(f"Discovery of three nodes, {state}", about, list(series.values())))
    for each in lab:
        each.run(["rm", "/etc/avahi/services/torch.service"], check=True)
    return chapters


def cool(host: Host) -> None:
    """Empty the cache of the host's daemon."""
    host.restart_avahi()
    time.sleep(SETTLE_S)


def tools(count: int) -> dict[str, Callable[[Host], float]]:
    """Return what is measured, by name."""
    return {
        PEERS: lambda host: timed_peers(host, count),
        LIBRARY: lambda host: own_time(host, [sys.executable, "-m", "bench.ask_avahi", str(count)], count),
        BROWSE: lambda host: timed_browse(host, count),
        ZEROCONF: lambda host: timed_zeroconf(host, count),
    }


def timed_peers(host: Host, count: int) -> float:
    began = time.monotonic()
    done = host.run([Path(sys.executable).with_name("avahi-gpu"), "peers", "--expect", str(count), "--json"])
    took = time.monotonic() - began
    check([peer["name"] for peer in json.loads(done.stdout)["data"]["peers"]], count)
    return took


def own_time(host: Host, command: list[str], count: int) -> float:
    """Return the seconds that a program of ours measured by itself."""
    told = json.loads(host.run(command, check=True).stdout)
    check(told["names"], count)
    return float(told["seconds"])


def timed_browse(host: Host, count: int) -> float:
    began = time.monotonic()
    done = host.run(["avahi-browse", "-rptk", "_torch._tcp"], check=True)
    took = time.monotonic() - began
    rows = [line.split(";") for line in done.stdout.splitlines() if line.startswith("=;")]
    check([row[3] for row in rows], count)
    return took


def timed_zeroconf(host: Host, count: int) -> float:
    began = time.monotonic()
    done = host.run([sys.executable, HERE / "ask_zeroconf.py", host.address], check=True)
    took = time.monotonic() - began
    check(json.loads(done.stdout), count)
    return took


def check(names: list[str], count: int) -> None:
    """Fail where not all nodes were found: a fast wrong answer is no measurement."""
    if len(set(names)) != count:
        raise RuntimeError(f"found {sorted(set(names))}, not {count} nodes")
