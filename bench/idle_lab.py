"""What nodes cost while nobody trains: multicast, by a packet capture on the bridge, and processors."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress

from bench.cost import CORE, RATE, cpu_of, daemons
from bench.measure import Chapter, Series, Wanted
from tests.lab.cluster import Cluster, cluster
from tests.lab.host import REPOSITORY, Host
from tests.lab.network import BRIDGE
from tests.lab.process import Process
from tests.lab.runs import BIN

SETUP_S = 300.0  # forty nodes on two cores
SETUPS_AT_ONCE = 4
STARTS_AT_ONCE = 4  # forty at once on two cores: avahi-daemon does not answer in time
SETTLE_S = 20.0  # announcements, and the first questions of those who watch
START_S = 300.0  # on two cores, until all who watch have drawn all nodes
# the kernel keeps 1024 neighbours for all network namespaces together (net.ipv4.neigh.default.gc_thresh3):
# beyond 32 hosts of one machine not all can talk with all
ALL_WATCH_AT_MOST = 32
LIMIT_HOSTS = 10  # for so many a figure is wanted
CPU_WANTED, RATE_WANTED = 2.0, 2.0

WATCHERS: dict[str, str] = {
    "nobody": "nobody watches",
    "one": "one node watches",
    "all": "every node watches",
}


def measure(sizes: Sequence[int], window_s: float, tell: Callable[[str], None]) -> Iterator[Chapter]:
    """Let that many nodes be, with nobody, one and all of them watching."""
    multicast = {
        key: Chapter(
            f"idle-multicast-{key}",
            f"Idle nodes, {words}: mDNS that each sends",
            f"windows of {window_s:g} s; IP packets, by a capture on the bridge; one value a node",
            [],
        )
        for key, words in WATCHERS.items()
    }
    processors = {
        key: Chapter(
            f"idle-cpu-{key}",
            f"Idle nodes, {words}: processor of the whole lab",
            f"windows of {window_s:g} s; avahi-daemon of all nodes, and the processes of those who watch",
            [],
        )
        for key, words in WATCHERS.items()
    }
    for size in sizes:
        tell(f"idle, setup of {size} hosts")
        with cluster(size) as lab, capture(lab) as ear:
            with ThreadPoolExecutor(SETUPS_AT_ONCE) as together:
                list(together.map(set_up, lab))
            expect_all(lab, heard(ear))
            for key, words in WATCHERS.items():
                watching = {"nobody": 0, "one": 1, "all": size}[key]
                if watching > ALL_WATCH_AT_MOST:
                    continue
                with watch(lab, watching) as watchers:
                    tell(f"idle, {size} hosts, {words}")
                    time.sleep(SETTLE_S)
                    window = look(lab, ear, watchers, window_s)
                add(multicast[key], processors[key], size, watching, window)
                yield multicast[key]
                yield processors[key]


def set_up(host: Host) -> None:
    """Make the host a node, as a user does."""
    host.run([BIN / "avahi-gpu", "setup", "--yes"], check=True, timeout=SETUP_S)


Window = tuple[list[float], float, list[float]]


def add(multicast: Chapter, processors: Chapter, size: int, watching: int, window: Window) -> None:
    """Take in what was measured of one size."""
    rates, daemon, watchers = window
    wanted = Wanted(RATE_WANTED) if size == LIMIT_HOSTS else None
    multicast.series.append(Series(f"{size} hosts", values=rates, unit=RATE, wanted=wanted))
    share = Wanted(CPU_WANTED) if size == LIMIT_HOSTS and not watching else None
    processors.series.append(Series(f"{size} hosts: avahi-daemon, all", [daemon], unit=CORE, wanted=share))
    if watching:
        name = f"{size} hosts: each `peers --watch`"
        processors.series.append(Series(name, values=watchers, unit=CORE))


def look(lab: Cluster, ear: subprocess.Popen[str], watchers: Sequence[Process], window_s: float) -> Window:
    """Return kB/s of multicast of each node, % of a core of all daemons, and of each who watches."""
    cards = [card_of(host) for host in lab]
    pids = [pid for host in lab for pid in daemons(host)]
    own = [pid for watcher in watchers if (pid := watcher.inner_pid) is not None]
    began, counted = time.monotonic(), heard(ear)
    before = {pid: cpu_of(pid) for pid in [*pids, *own]}
    time.sleep(window_s)
    wall, now = time.monotonic() - began, heard(ear)
    used = {pid: 100 * (cpu_of(pid) - spent) / wall for pid, spent in before.items()}
    nothing = [0, 0, 0]
    rates = [(now.get(c, nothing)[0] - counted.get(c, nothing)[0]) / wall / 1000 for c in cards]
    return rates, sum(used[pid] for pid in pids), [used[pid] for pid in own]


def card_of(host: Host) -> str:
    """Return the hardware address of a host."""
    return host.read("/sys/class/net/eth0/address").strip()


def expect_all(lab: Cluster, counts: dict[str, list[int]]) -> None:
    """Raise RuntimeError where the capture has not heard the announcement of each new node."""
    deaf = [host.name for host in lab if counts.get(card_of(host), [0])[0] <= 0]
    if deaf:
        raise RuntimeError(f"the packet capture has not heard {', '.join(deaf)}")


def heard(ear: subprocess.Popen[str]) -> dict[str, list[int]]:
    """Return what the capture has counted so far."""
    assert ear.stdin is not None and ear.stdout is not None
    ear.stdin.write("\n")
    ear.stdin.flush()
    counts: dict[str, list[int]] = json.loads(ear.stdout.readline())
    return counts


@contextmanager
def capture(lab: Cluster) -> Iterator[subprocess.Popen[str]]:
    """Listen on the lab's bridge."""
    enter = ["nsenter", f"--net=/proc/{lab[0].switch}/ns/net"]
    line = [*enter, sys.executable, "-m", "bench.capture", BRIDGE]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(line, cwd=REPOSITORY, text=True, **pipes) as ear:
        assert ear.stdout is not None and ear.stdin is not None
        if "listening" not in ear.stdout.readline():
            raise RuntimeError("the packet capture does not listen")
        try:
            yield ear
        finally:
            ear.stdin.close()


@contextmanager
def watch(lab: Cluster, count: int) -> Iterator[list[Process]]:
    """Let the first ``count`` nodes watch, each on a terminal of its own; return when all see all."""
    deadline = time.monotonic() + START_S
    with ExitStack() as stack:
        terminals: list[Terminal] = []
        for first in range(0, count, STARTS_AT_ONCE):
            for host in lab.hosts[first : min(count, first + STARTS_AT_ONCE)]:
                terminals.append(Terminal(host, len(lab)))
                stack.callback(terminals[-1].close)
            while not all(terminal.sees_all for terminal in terminals):
                if time.monotonic() > deadline:
                    raise RuntimeError("not all who watch see all nodes")
                time.sleep(0.1)
        yield [terminal.process for terminal in terminals]


class Terminal:
    """A live table that somebody looks at: what is drawn is read and thrown away."""

    def __init__(self, host: Host, nodes: int) -> None:
        self.sees_all = False
        self._head = f"{nodes} nodes, {nodes} alive".encode()
        self._ours, theirs = pty.openpty()
        streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
        self.process = host.popen([BIN / "avahi-gpu", "peers", "--watch"], env={"TERM": "xterm"}, **streams)
        os.close(theirs)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with suppress(OSError):
            while part := os.read(self._ours, 65536):
                self.sees_all = self.sees_all or self._head in part

    def close(self) -> None:
        self.process.end()
        os.close(self._ours)
