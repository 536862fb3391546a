"""From the loss of a node to training that goes on with two of three: ours, and torchrun's own c10d."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench.job import BY_HAND, Way, running
from bench.measure import Chapter, Series
from tests.lab.cluster import Cluster, cluster
from tests.lab.host import BASE, Command, Host
from tests.lab.process import Follower
from tests.lab.runs import TRAIN, Runs, launch, torchrun

HOSTS = 3
START_S = 120.0
OURS_S = 60.0  # more than that is no recovery
POLL_S = 0.02
TRAINING = f"{TRAIN} --steps 100000 --slow 0.05 --save-every 4 --checkpoint /var/tmp/bench.pt".split()
C10D_LAST_CALL_S = 3  # what ours has; its default of 30 s would only make it slower

OURS = "avahi-gpu launch"
C10D = "torchrun --rdzv-backend=c10d"
NEXT_STEP = "{}: next step of training"
_SETTLED = re.compile(r"step 8 loss")  # by then every node has a checkpoint and training runs evenly
_ROUND = re.compile(r"round \d+: 2 nodes")
_RESUMED = re.compile(r"training resumes after step \d+ with 2 processes")
_STEP = re.compile(r"step \d+ loss")


@dataclass(frozen=True)
class Fault:
    """What is done to which of the three hosts. ``recovers``: whether torchrun's c10d gets over it."""

    name: str
    about: str
    victim: int
    strike: Callable[[Host], None]
    recovers: bool = False


@dataclass(frozen=True)
class Recovery:
    """Seconds from the fault to the new round and to the next step; in words where one is missed."""

    round: float | str
    step: float | str


def cut(host: Host) -> None:
    """Pull the cable: nobody is told, both sides hear silence."""
    host.cut()


def kill(host: Host) -> None:
    """End every process of the job on a host by SIGKILL; its kernel closes their connections."""
    for pid in host.outer_pids():
        with suppress(OSError):  # it has died with its parent
            if pid != host.pid and Path(f"/proc/{pid}/comm").read_text().strip() not in BASE:
                os.kill(pid, signal.SIGKILL)


SILENT = "from the cut; 5 s of silence pass before a node counts as lost (--lost-after, the default)"
LOUD = "from SIGKILL, which broken connections tell at once"
FAULTS = (
    Fault("the leader's cable is pulled", SILENT, 0, cut),
    Fault("a member's cable is pulled", SILENT, 2, cut),
    Fault("the leader's processes are killed", LOUD, 0, kill),
    Fault("a member's processes are killed", LOUD, 2, kill, recovers=True),
)
ABOUT_C10D = (
    "c10d was given all that helps it: endpoint, is_host, local address, interface, --max-restarts=3, "
    f"last_call_timeout={C10D_LAST_CALL_S}, TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"
)


def measure(runs: int, c10d_runs: int, c10d_s: float, tell: Callable[[str], None]) -> Iterator[Chapter]:
    """Lose a node in mid-training, ``runs`` times each way; with c10d once where it never gets over it."""
    for fault in FAULTS:
        chapter = measure_ours(fault, runs, (), tell)
        c10d = Series(NEXT_STEP.format(C10D))
        count = c10d_runs if fault.recovers else min(1, c10d_runs)
        for run in range(count):
            tell(f"recovery, {fault.name}, c10d, run {run + 1} of {count}, at most {c10d_s:g} s")
            c10d.add(time_recovery(fault, by_c10d, c10d_s).step)
        chapter.about += f"; {ABOUT_C10D}"
        chapter.series.append(c10d)
        chapter.baseline = c10d.name if c10d.seconds else ""
        yield chapter


def measure_impatient(runs: int, lost_after_s: float, tell: Callable[[str], None]) -> Iterator[Chapter]:
    """Pull the leader's cable with a shorter --lost-after."""
    option = ("--lost-after", f"{lost_after_s:g}")
    chapter = measure_ours(FAULTS[0], runs, option, tell)
    chapter.title += f", {' '.join(option)}"
    chapter.about = "from the cut"
    yield chapter


def measure_ours(fault: Fault, runs: int, options: Sequence[str], tell: Callable[[str], None]) -> Chapter:
    """Return the chapter of one fault, with our own two rows."""
    formed, step = Series(f"{OURS}: new round"), Series(NEXT_STEP.format(OURS))
    for run in range(runs):
        tell(f"recovery, {fault.name}{''.join(f' {o}' for o in options)}, run {run + 1} of {runs}")
        found = time_recovery(fault, by_launch(*options), OURS_S)
        formed.add(found.round)
        step.add(found.step)
    return Chapter(f"Recovery with --nnodes 2:3: {fault.name}", fault.about, [formed, step])


def by_launch(*options: str) -> Way:
    return lambda _lab, _host: (launch("--nnodes", "2:3", *options, *TRAINING), {})


def by_c10d(lab: Cluster, host: Host) -> tuple[Command, Mapping[str, str]]:
    words = (
        "--nnodes=2:3",
        "--nproc-per-node=1",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={lab[0].address}:29400",
        "--rdzv-id=bench",
        f"--local-addr={host.address}",
        f"--rdzv-conf=is_host={int(host is lab[0])},last_call_timeout={C10D_LAST_CALL_S}",
        "--max-restarts=3",
    )
    # without the variable a worker that was restarted joins a stale mesh, and the job dies of it
    return torchrun(*words, *TRAINING), {**BY_HAND, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


def time_recovery(fault: Fault, way: Way, within_s: float) -> Recovery:
    """Train on three fresh hosts, lose one, watch the two others."""
    with cluster(HOSTS) as lab, running(lab, way) as job:
        wait_until_settled(job)
        fault.strike(lab[fault.victim])
        struck = time.monotonic()
        survivors = [f for i, f in enumerate(job.followers) if i != fault.victim]
        missed = f"nothing within {within_s:g} s"
        while (step := next_step(survivors, struck)) is None and time.monotonic() < struck + within_s:
            if all(f.process.poll() is not None for f in survivors):
                missed = f"job lost, all nodes ended after {time.monotonic() - struck:.0f} s"
                break
            time.sleep(POLL_S)
        formed = moment_of(_ROUND, survivors, struck)
        return Recovery(
            missed if formed is None else formed - struck, missed if step is None else step - struck
        )


def wait_until_settled(job: Runs) -> None:
    """Wait until all three train. Raises RuntimeError where they do not."""
    deadline = time.monotonic() + START_S
    while moment_of(_SETTLED, job.followers) is None:
        if time.monotonic() > deadline or any(f.process.poll() is not None for f in job.followers):
            raise RuntimeError(f"training did not begin:\n{job.transcript()}")
        time.sleep(POLL_S)


def moment_of(what: re.Pattern[str], followers: Sequence[Follower], after: float = 0.0) -> float | None:
    """Return when the first such line after a moment came from any of them."""
    found = [
        moment
        for follower in followers
        for moment, line in zip(follower.times, list(follower.lines), strict=False)
        if moment > after and what.search(line)
    ]
    return min(found, default=None)


def next_step(followers: Sequence[Follower], struck: float) -> float | None:
    """Return when the first step came after training has resumed with two processes."""
    resumed = moment_of(_RESUMED, followers, struck)
    return None if resumed is None else moment_of(_STEP, followers, resumed)
