"""How long ``avahi-gpu doctor`` takes and how much memory, on healthy nodes and under faults."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from bench.discovery import SETTLE_S, set_up
from bench.measure import Chapter, Series, Wanted
from tests.lab.cluster import Cluster, cluster
from tests.lab.doctoring import together_on
from tests.lab.host import SCRIPT, Host
from tests.lab.runs import BIN

TIMED = Path(__file__).with_name("timed_run.py")
HAND = Path(__file__).with_name("by_hand.sh")

LOCAL_S = 1.0  # wanted, at most
PEERS_S = 1.5
FAULT_S = 15.0
PEAK_MB = 80.0

DOCTOR = "avahi-gpu doctor"
LOCAL = "avahi-gpu doctor --ignore cluster"
BY_HAND = "by hand: avahi-browse, getent, ping …"
LOADED = "python -c 'import typer'"
WITHIN_S = 60.0
# answers nothing, as a name server that is dead behind a router
SILENT_SERVER = """
import socket, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    sock.bind(("127.0.0.1", 53))
    print("ready", flush=True)
    time.sleep(3600)
"""

Run = tuple[float, float, int]  # seconds, MB, exit code


def measure(sizes: Sequence[int], runs: int, faulty: int, tell: Callable[[str], None]) -> Iterator[Chapter]:
    """Ask on clusters of these sizes, the asking host included; then with each fault, ``faulty`` times."""
    peak = Chapter(
        "doctor-memory", "The doctor's peak memory", "the largest resident size of the process", []
    )
    for size in sizes:
        tell(f"doctor, setup of {size} hosts")
        with cluster(size) as lab:
            together_on(list(lab), set_up)
            time.sleep(SETTLE_S)
            yield from measure_healthy(lab, runs, peak, tell)
    yield peak
    yield from measure_faults(faulty, tell)


def measure_healthy(lab: Cluster, runs: int, peak: Chapter, tell: Callable[[str], None]) -> Iterator[Chapter]:
    """Run the doctor in turns with what else there is."""
    peers = len(lab) - 1
    doctor, local = Series(DOCTOR, wanted=Wanted(PEERS_S) if peers == 3 else None), Series(LOCAL)
    if peers == 3:
        local.wanted = Wanted(LOCAL_S)
    hand, loaded = Series(BY_HAND), Series(LOADED)
    memory = Series(f"{DOCTOR}, {_peers(peers)}", unit="MB", wanted=Wanted(PEAK_MB))
    peak.series.append(memory)
    chapter = Chapter(
        f"doctor-{peers}",
        f"The doctor on a healthy node, {_peers(peers)}",
        "from the command's start to its end; without the area cluster nobody else is looked for",
        [doctor, local, hand, loaded],
        baseline=BY_HAND,
    )
    ways: dict[str, tuple[Series, Sequence[str | Path]]] = {
        DOCTOR: (doctor, [BIN / "avahi-gpu", "doctor"]),
        LOCAL: (local, [BIN / "avahi-gpu", "doctor", "--ignore", "cluster"]),
        BY_HAND: (hand, ["sh", HAND]),
        LOADED: (loaded, [sys.executable, "-c", "import typer"]),
    }
    for run in range(runs):
        tell(f"doctor, {_peers(peers)}, run {run + 1} of {runs}")
        for name, (series, command) in ways.items():
            seconds, megabytes, code = timed(lab[0], command)
            healthy = code == 0 or name == BY_HAND
            series.add(seconds if healthy else f"ended with {code}")
            if name == DOCTOR and healthy:
                memory.add(megabytes)
        yield chapter


def measure_faults(runs: int, tell: Callable[[str], None]) -> Iterator[Chapter]:
    """Run the doctor while something hangs: it must end, whatever it finds."""
    series = {name: Series(name, wanted=Wanted(FAULT_S)) for name in FAULTS}
    chapter = Chapter(
        "doctor-faults",
        "The doctor under faults",
        "from the command's start to its end, on one of two nodes",
        list(series.values()),
    )
    with cluster(2) as lab:
        together_on(list(lab), set_up)
        time.sleep(SETTLE_S)
        for run in range(runs):
            for name, fault in FAULTS.items():
                tell(f"doctor, {name}, run {run + 1} of {runs}")
                with fault(lab):
                    seconds, _, code = timed(lab[0], [BIN / "avahi-gpu", "doctor"])
                series[name].add(seconds if code in (0, 1) else f"ended with {code}")
                yield chapter


def timed(host: Host, command: Sequence[str | Path]) -> Run:
    """Run a command on a host."""
    told = host.run([*SCRIPT, TIMED, *command], check=True, timeout=WITHIN_S).stdout
    answer = json.loads(told)
    return float(answer["seconds"]), float(answer["peak_mb"]), int(answer["code"])


# --- faults ------------------------------------------------------------------------------------------------


@contextmanager
def dead_name_server(lab: Cluster) -> Iterator[None]:
    """The only name server takes questions and answers none."""
    host = lab[0]
    before = host.read("/etc/resolv.conf")
    server = host.popen([sys.executable, "-c", SILENT_SERVER])
    assert server.stdout is not None
    server.stdout.readline()
    host.write("/etc/resolv.conf", "nameserver 127.0.0.1\n")
    try:
        yield
    finally:
        host.write("/etc/resolv.conf", before)
        server.end()


def stopped(program: str) -> Callable[[Cluster], AbstractContextManager[None]]:
    """Return what stops a daemon in the middle of whatever it does."""

    @contextmanager
    def stop(lab: Cluster) -> Iterator[None]:
        lab[0].send_signal(program, signal.SIGSTOP)
        try:
            yield
        finally:
            lab[0].send_signal(program, signal.SIGCONT)

    return stop


@contextmanager
def nobody_there(lab: Cluster) -> Iterator[None]:
    """The other node has said goodbye."""
    lab[1].stop_avahi()
    try:
        yield
    finally:
        lab[1].start_avahi()
        time.sleep(SETTLE_S)


FAULTS: dict[str, Callable[[Cluster], AbstractContextManager[None]]] = {
    "no fault": lambda _: nullcontext(),
    "the name server does not answer": dead_name_server,
    "the D-Bus system bus hangs": stopped("dbus-daemon"),
    "avahi-daemon hangs": stopped("avahi-daemon"),
    "nobody else is there": nobody_there,
}


def _peers(count: int) -> str:
    return "alone" if not count else f"{count} peers"
