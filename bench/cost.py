"""What the control channel costs each node while a round runs: CPU and bytes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.job import BY_HAND, Way, running
from bench.measure import Chapter, Series, Wanted
from bench.nodes import BenchNode, close, form, loaded
from tests.lab.cluster import Cluster, cluster
from tests.lab.host import Host
from tests.lab.process import Follower
from tests.lab.runs import Runs, launch, torchrun

HOSTS = 3
SETTLE_S = 5.0  # the round's beginning is not its running
CORE, RATE = "% of a core", "kB/s"
CPU_WANTED, RATE_WANTED = 0.1, 1.0
ROLES = {"the leader": 0, "a member": 1}
KEY = "5eed" * 16  # any: it guards nothing here
START_S = 60.0
IDLE = str(Path(__file__).with_name("idle.py"))
IDLE_LINE = "idle worker runs"

COUNTERS = """
table inet bench {
    counter control { }
    counter mdns { }
    chain in {
        type filter hook input priority 0;
        iif lo accept
        tcp sport 29400-29419 counter name control accept
        tcp dport 29400-29419 counter name control accept
        udp dport 5353 counter name mdns
    }
    chain out {
        type filter hook output priority 0;
        oif lo accept
        tcp sport 29400-29419 counter name control accept
        tcp dport 29400-29419 counter name control accept
        udp dport 5353 counter name mdns
    }
}
"""


def measure(windows: int, window_s: float, tell: Callable[[str], None]) -> Iterator[Chapter]:
    """Let a round run and look what it costs, in ``windows`` of some seconds."""
    with cluster(HOSTS) as lab:
        yield from measure_channel(lab, windows, window_s, tell)
        yield from measure_launch(lab, windows, window_s, tell)


def measure_channel(
    lab: Cluster, windows: int, window_s: float, tell: Callable[[str], None]
) -> Iterator[Chapter]:
    """The rendezvous alone: its thread's CPU, bytes on the control ports, and mDNS apart."""
    share = {r: Series(f"{r}: rendezvous thread", unit=CORE, wanted=Wanted(CPU_WANTED)) for r in ROLES}
    rate = {r: Series(f"{r}: control ports", unit=RATE, wanted=Wanted(RATE_WANTED)) for r in ROLES}
    keyed_share = {r: Series(f"{r}, with a cluster key: rendezvous thread", unit=CORE) for r in ROLES}
    keyed_rate = {r: Series(f"{r}, with a cluster key: control ports", unit=RATE) for r in ROLES}
    mdns = {r: Series(f"{r}: mDNS", unit=RATE) for r in ROLES}
    daemon = {r: Series(f"{r}: avahi-daemon", unit=CORE) for r in ROLES}
    tables = (share, rate, keyed_share, keyed_rate, mdns, daemon)
    chapter = Chapter(
        "cost",
        "The control channel while a round of three runs",
        f"windows of {window_s:g} s, nothing else on the hosts; bytes of IP packets, both ways together",
        [series for by_role in tables for series in by_role.values()],
    )
    for number in ROLES.values():
        lab[number].run(["nft", "-f", "-"], input=COUNTERS, check=True)
    with loaded(lab.hosts) as nodes:
        for key, shares, rates in (("", share, rate), (KEY, keyed_share, keyed_rate)):
            form(nodes, "keyed" if key else "plain", key)
            time.sleep(SETTLE_S)
            for window in range(windows):
                tell(f"cost{', with a key' if key else ''}, window {window + 1} of {windows}")
                before = {role: Look(nodes[number]) for role, number in ROLES.items()}
                time.sleep(window_s)
                for role, number in ROLES.items():
                    was, now = before[role], Look(nodes[number])
                    wall = now.at - was.at
                    shares[role].add(100 * (now.thread_s - was.thread_s) / wall)
                    rates[role].add((now.control - was.control) / wall / 1000)
                    if not key:
                        mdns[role].add((now.mdns - was.mdns) / wall / 1000)
                        daemon[role].add(100 * (now.daemon_s - was.daemon_s) / wall)
                yield chapter
            close(nodes)


class Look:
    """What a node has used up to a moment."""

    def __init__(self, node: BenchNode) -> None:
        told = node.host.run(["nft", "-j", "list", "counters", "table", "inet", "bench"], check=True).stdout
        counters = [part["counter"] for part in json.loads(told)["nftables"] if "counter" in part]
        counted = {c["name"]: int(c["bytes"]) for c in counters}
        self.control, self.mdns = counted["control"], counted["mdns"]
        self.daemon_s = sum(map(cpu_of, daemons(node.host)))
        node.tell("cost")
        answer = node.answer("cost")
        self.thread_s, self.at = float(answer["cost"]), float(answer["at"])


def measure_launch(
    lab: Cluster, windows: int, window_s: float, tell: Callable[[str], None]
) -> Iterator[Chapter]:
    """The whole process on each node, against that of torchrun by hand; the workers sleep."""
    ours = Series("avahi-gpu launch: all threads but torch's own", unit=CORE)
    whole = {name: Series(f"{name}: whole process", unit=CORE) for name in WAYS}
    chapter = Chapter(
        "cost-process",
        "The process on each node while its workers run",
        f"windows of {window_s:g} s, the mean of three hosts; torch looks at its workers ten times a second",
        [ours, *whole.values()],
        baseline=f"{STATIC}: whole process",
    )
    tell("cost, start of jobs whose workers sleep")
    with running(lab, WAYS[OURS]) as one, running(lab, WAYS[STATIC]) as other:
        jobs = {OURS: one, STATIC: other}
        for job in jobs.values():
            await_workers(job)
        time.sleep(SETTLE_S)
        for window in range(windows):
            tell(f"cost of processes, window {window + 1} of {windows}")
            began = time.monotonic()
            before = {name: usage(job) for name, job in jobs.items()}
            time.sleep(window_s)
            after = {name: usage(job) for name, job in jobs.items()}
            wall = time.monotonic() - began
            for name in jobs:
                whole[name].add(100 * (after[name][0] - before[name][0]) / wall / HOSTS)
            ours.add(100 * (after[OURS][1] - before[OURS][1]) / wall / HOSTS)
            yield chapter


def by_launch(_lab: Cluster, _host: Host) -> tuple[list[str | Path], dict[str, str]]:
    return launch("--nnodes", str(HOSTS), IDLE), {}


def by_hand(lab: Cluster, host: Host) -> tuple[list[str | Path], dict[str, str]]:
    words = (f"--nnodes={HOSTS}", "--nproc-per-node=1", f"--node-rank={host.number - 1}")
    return torchrun(*words, f"--master-addr={lab[0].address}", "--master-port=29800", IDLE), BY_HAND


OURS, STATIC = "avahi-gpu launch", "torchrun, all by hand (static)"
WAYS: dict[str, Way] = {OURS: by_launch, STATIC: by_hand}


def await_workers(job: Runs) -> None:
    """Wait until every worker runs. Raises RuntimeError."""
    deadline = time.monotonic() + START_S
    while not all(IDLE_LINE in follower.output for follower in job.followers):
        if time.monotonic() > deadline:
            raise RuntimeError(f"the workers did not start:\n{job.transcript()}")
        time.sleep(0.1)


def usage(job: Runs) -> tuple[float, float]:
    """Return the seconds of CPU of a job's processes, workers aside: in all, and without main threads."""
    pids = [pid_of(follower) for follower in job.followers]
    total, main = sum(map(cpu_of, pids)), sum(cpu_of_task(Path(f"/proc/{p}/task/{p}")) for p in pids)
    return total, total - main


def pid_of(follower: Follower) -> int:
    """Return the process id of a command as this machine sees it. Raises RuntimeError where it has ended."""
    pid = follower.process.inner_pid
    if pid is None:
        raise RuntimeError(f"a job has ended:\n{follower.output}")
    return pid


def daemons(host: Host) -> list[int]:
    """Return the process ids of a host's avahi-daemon."""
    return [p for p in host.outer_pids() if Path(f"/proc/{p}/comm").read_text().strip() == "avahi-daemon"]


def cpu_of(pid: int) -> float:
    """Return the seconds of CPU that the living threads of a process have used (proc(5), schedstat)."""
    return sum(map(cpu_of_task, Path(f"/proc/{pid}/task").iterdir()))


def cpu_of_task(task: Path) -> float:
    return int((task / "schedstat").read_text().split()[0]) / 1e9
