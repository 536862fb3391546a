"""How long it takes to find all nodes of a LAN, by us and by what people use otherwise."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.measure import Chapter, Series
from tests.lab.cluster import Cluster, cluster
from tests.lab.host import Command, Host
from tests.lab.runs import BIN

ZEROCONF_SCRIPT = Path(__file__).with_name("ask_zeroconf.py")
SETUP_S = 120.0  # ten at once on two cores
# a daemon that starts registers its own records for a second, and nobody answers twice within one (RFC 6762
# section 6): "cold" is a daemon that has settled and asks for the first time
SETTLE_S = 1.5

PEERS = "avahi-gpu peers --expect {} --json"
BROWSE = "avahi-browse -rptk _torch._tcp"
ZEROCONF = "python-zeroconf, sleep(2)"
OURS = "avahi_gpu.avahi.browse, expect={}"
ZEROCONF_SELF = "python-zeroconf, until the last one is there"

COLD = "avahi-daemon of the asking host was just started and has never asked"
WARM = "avahi-daemon of the asking host has asked before; python-zeroconf keeps nothing between two runs"


def measure(sizes: Sequence[int], runs: int, tell: Callable[[str], None]) -> Iterator[Chapter]:
    """Find that many nodes from the first one, its daemon cold and warm."""
    for size in sizes:
        tell(f"discovery, setup of {size} hosts")
        with cluster(size) as lab:
            with ThreadPoolExecutor(size) as together:
                list(together.map(set_up, lab))
            time.sleep(SETTLE_S)
            # python-zeroconf asks the LAN itself, whatever the daemon knows: one series for both tables
            zeroconf = Series(ZEROCONF), Series(ZEROCONF_SELF)
            for state in ("cold", "warm"):
                yield from compare(lab, state, runs, zeroconf, tell)


def set_up(host: Host) -> None:
    """Make the host a node, as a user does."""
    host.run([BIN / "avahi-gpu", "setup", "--yes"], check=True, timeout=SETUP_S)


def compare(
    lab: Cluster, state: str, runs: int, zeroconf: tuple[Series, Series], tell: Callable[[str], None]
) -> Iterator[Chapter]:
    """Measure all ways in turn, and again, so that noise of the machine hits all alike."""
    host, size = lab[0], len(lab)
    names = [host.name for host in lab]
    peers, ours, browse = Series(PEERS.format(size)), Series(OURS.format(size)), Series(BROWSE)
    about = COLD if state == "cold" else WARM
    chapters = (
        Chapter(
            f"discovery-{size}-{state}",
            f"Discovery of {size} nodes, {state}: the whole command",
            f"from the command's start to its end, with names, addresses and TXT of all nodes; {about}",
            [peers, browse, zeroconf[0]],
            baseline=BROWSE,
        ),
        Chapter(
            f"discovery-{size}-{state}-within",
            f"Discovery of {size} nodes, {state}: within a running program",
            "from the call to the last node's address and TXT",
            [ours, zeroconf[1]],
            baseline=ZEROCONF_SELF,
        ),
    )
    if state == "warm":
        ask_peers(host, names)
    for run in range(runs):
        tell(f"discovery of {size}, {state}, run {run + 1} of {runs}")
        ways: tuple[tuple[Series, Callable[[Host, list[str]], float | str]], ...] = (
            (peers, ask_peers),
            (ours, ask_library),
            (browse, ask_browse),
        )
        for series, ask in ways:
            if state == "cold":
                cool(host)
            series.add(ask(host, names))
        if state == "cold":
            whole, own = ask_zeroconf(host, names)
            zeroconf[0].add(whole)
            zeroconf[1].add(own)
        yield from chapters


def cool(host: Host) -> None:
    """Empty the cache of the host's daemon."""
    host.restart_avahi()
    time.sleep(SETTLE_S)


def timed(host: Host, command: Command) -> tuple[float, str]:
    """Return the seconds from start to end of a command, and what it printed."""
    began = time.monotonic()
    done = host.run(command)
    took = time.monotonic() - began
    if not done.stdout:
        raise RuntimeError(f"{command[0]} failed with {done.returncode}: {done.stderr}")
    return took, done.stdout


def ask_peers(host: Host, names: list[str]) -> float | str:
    """Run our command."""
    took, told = timed(host, [BIN / "avahi-gpu", "peers", "--expect", str(len(names)), "--json"])
    return checked(took, [peer["name"] for peer in json.loads(told)["data"]["peers"]], names)


def ask_library(host: Host, names: list[str]) -> float | str:
    """Call our library."""
    _, told = timed(host, [sys.executable, "-m", "bench.ask_avahi", str(len(names))])
    answer = json.loads(told)
    return checked(answer["seconds"], answer["names"], names)


def ask_browse(host: Host, names: list[str]) -> float | str:
    """Run avahi-browse; its resolved lines are ``=;interface;protocol;name;…``."""
    took, told = timed(host, ["avahi-browse", "-rptk", "_torch._tcp"])
    rows = [line.split(";") for line in told.splitlines() if line.startswith("=;")]
    return checked(took, [row[3] for row in rows], names)


def ask_zeroconf(host: Host, names: list[str]) -> tuple[float | str, float | str]:
    """Run the script with its sleep; return the seconds of all of it, and those until all were there."""
    took, told = timed(host, [sys.executable, ZEROCONF_SCRIPT, host.address, str(len(names))])
    answer = json.loads(told)
    whole = checked(took, answer["names"], names)
    return whole, whole if isinstance(whole, str) else float(answer["seconds"])


def checked(took: float, found: list[str], names: list[str]) -> float | str:
    """Return the seconds where all nodes were found, else how many: a fast wrong answer is no success."""
    count = len(set(found) & set(names))
    return took if count == len(names) else f"found {count} of {len(names)}"
