"""Trainings that are watched while something is done to them: ours, and torchrun's own c10d."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.job import BY_HAND, Way, note_down, running
from tests.lab.cluster import Cluster, cluster
from tests.lab.host import Command, Host
from tests.lab.process import Follower
from tests.lab.runs import Runs, launch, torchrun

HOSTS = 3
START_S = 120.0
POLL_S = 0.02
LOST_AFTER_S = 5.0  # our default; c10d is given the same silence in every one of its settings
C10D_LAST_CALL_S = 3  # what ours has; its default of 30 s would only make it slower

SCRIPT = str(Path(__file__).with_name("training.py"))
TRAINING = ["--steps", "100000", "--slow", "0.05", "--save-every", "4", "--checkpoint", "/var/tmp/bench.pt"]
OURS = "avahi-gpu launch"
C10D = "torchrun --rdzv-backend=c10d"
ABOUT_C10D = (
    "c10d was given all that helps it: endpoint, is_host, local address, interface, --max-restarts=3, "
    f"last_call_timeout={C10D_LAST_CALL_S}, keep_alive_interval=1, keep_alive_max_attempt={LOST_AFTER_S:g}, "
    f"read_timeout={LOST_AFTER_S:g}, TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"
)

_SETTLED = re.compile(r"step 8 loss")  # by then every node has a checkpoint and training runs evenly
_ROUND = re.compile(r"round \d+: (\d+) nodes")
_WORKER = re.compile(r"worker \d+ of (\d+) runs at ([\d.]+)")
_BEGIN = re.compile(r"training (?:starts|resumes after step \d+) with (\d+) processes")
_STEP = re.compile(r"step \d+ loss")


class NoTraining(RuntimeError):
    """The training that something was to be done to did not begin."""


def by_launch(*options: str) -> Way:
    """Ours, with further options of ``launch``."""
    return lambda _lab, _host: (launch("--nnodes", "2:3", *options, SCRIPT, "0", *TRAINING), {})


def by_c10d(group_timeout_s: float) -> Way:
    """torchrun's c10d; its workers give up on a peer silent for ``group_timeout_s``, 0: half an hour."""

    def command(lab: Cluster, host: Host) -> tuple[Command, Mapping[str, str]]:
        conf = {
            "is_host": int(host is lab[0]),
            "last_call_timeout": C10D_LAST_CALL_S,
            "keep_alive_interval": 1,
            "keep_alive_max_attempt": int(LOST_AFTER_S),
            "read_timeout": int(LOST_AFTER_S),
        }
        words = (
            "--nnodes=2:3",
            "--nproc-per-node=1",
            "--rdzv-backend=c10d",
            f"--rdzv-endpoint={lab[0].address}:29400",
            "--rdzv-id=bench",
            f"--local-addr={host.address}",
            f"--rdzv-conf={','.join(f'{k}={v}' for k, v in conf.items())}",
            "--max-restarts=3",
        )
        # without the variable a worker that was restarted joins a stale mesh, and the job dies of it
        environment = {**BY_HAND, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        return torchrun(*words, SCRIPT, f"{group_timeout_s:g}", *TRAINING), environment

    return command


class Training:
    """One training on all hosts of a lab."""

    def __init__(self, lab: Cluster, job: Runs) -> None:
        self.lab = lab
        self.job = job

    def settle(self, within_s: float = START_S) -> None:
        """Wait until all train. Raises NoTraining where they do not."""
        deadline = time.monotonic() + within_s
        while not self.lines(_SETTLED, self.job.followers):
            if time.monotonic() > deadline or any(f.process.poll() is not None for f in self.job.followers):
                note_down("training did not begin", self.job.transcript())
                raise NoTraining("training did not begin")
            time.sleep(POLL_S)

    def others(self, victim: int) -> list[Follower]:
        """Return the runs of all hosts but one."""
        return [f for i, f in enumerate(self.job.followers) if i != victim]

    @staticmethod
    def ended(runs: Sequence[Follower]) -> bool:
        """Whether nobody is left."""
        return all(f.process.poll() is not None for f in runs)

    @staticmethod
    def lines(
        what: re.Pattern[str], runs: Sequence[Follower], after: float = 0.0
    ) -> list[tuple[float, re.Match[str]]]:
        """Return the moments of all such lines after a moment, in the order of time."""
        found = [
            (moment, match)
            for run in runs
            for moment, line in zip(list(run.times), list(run.lines), strict=False)
            if moment > after and (match := what.search(line))
        ]
        return sorted(found, key=lambda pair: pair[0])

    def round_of(self, size: int, runs: Sequence[Follower], after: float) -> float | None:
        """Return when a new round of that many nodes stood."""
        return next((at for at, m in self.lines(_ROUND, runs, after) if int(m[1]) == size), None)

    def running_again(self, size: int, runs: Sequence[Follower], after: float) -> float | None:
        """Return when the last of ``runs`` had its worker's first line in a group of ``size``."""
        firsts = []
        for run in runs:
            moments = [float(m[2]) for _, m in self.lines(_WORKER, [run], after) if int(m[1]) == size]
            firsts.append(next((at for at in moments if at > after), None))
        return None if None in firsts else max(at for at in firsts if at is not None)

    def trains_again(self, size: int, runs: Sequence[Follower], after: float) -> float | None:
        """Return when the first step of a training came that has begun anew with ``size`` processes."""
        begun = next((at for at, m in self.lines(_BEGIN, runs, after) if int(m[1]) == size), None)
        return None if begun is None else self.step_after(begun, runs)

    def step_after(self, moment: float, runs: Sequence[Follower]) -> float | None:
        """Return when the next step came."""
        return next((at for at, _ in self.lines(_STEP, runs, moment)), None)

    def restarts(self, after: float) -> int:
        """Return how many workers have begun since a moment."""
        return len(self.lines(_WORKER, self.job.followers, after))


@contextmanager
def trained(way: Way) -> Iterator[Training]:
    """Train on three fresh hosts until it runs evenly. Raises NoTraining."""
    with cluster(HOSTS) as lab, running(lab, way) as job:
        training = Training(lab, job)
        training.settle()
        yield training
