"""One job of chaos on the lab: its commands, its journals, and what is seen of it from outside."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from chaos.journal import Group, Journals, training
from chaos.judge import Ended, Evidence, Wait
from chaos.plan import Job
from tests.lab.cluster import Cluster
from tests.lab.host import Command, Host
from tests.lab.process import Follower
from tests.lab.runs import launch, torchrun

POLL_S = 0.1
NAME = "chaos"
GONE_S = 5.0  # the workers of a killed launch: two seconds are promised, the rest is for a busy machine
END_S = 20.0  # Ctrl-C, and the end of a training that has finished: a second or two on an idle machine
REFUSED_S = 30.0  # a second start on one host, which imports no torch
RECORDS_S = 15.0  # records of a host that lost its power live for ten seconds
RESTARTS_MAX = 1000  # of torch: chaos counts them itself
BROWSE = ["avahi-browse", "-pt", "_torch-rdzv._tcp"]
# a frame of our own code in somebody's traceback, or asyncio's complaints about it
INSIDES = re.compile(r'File ".*/avahi_gpu/|Task was destroyed|never retrieved|was never awaited')


class JobLost(Exception):
    """There is no sense in going on with this job; the evidence says why."""


class Stage:
    """A job while it runs."""

    def __init__(self, job: Job, lab: Cluster, folder: Path) -> None:
        self.job, self.lab, self.folder = job, lab, folder
        self.journals = Journals(folder / "journal")
        self.evidence = Evidence(job)
        self.followers: dict[str, Follower] = {}
        self.past: list[tuple[str, Follower]] = []  # commands that have ended
        self._expected: dict[str, tuple[int, ...]] = {}  # hosts whose command is about to end

    @property
    def interrupted(self) -> tuple[int, ...]:
        """The exit codes of Ctrl-C; torchrun's is torch's own business."""
        return (130,) if self.job.way == "launch" else (1, 130, -2)

    def host(self, number: int) -> Host:
        return self.lab[number - 1]

    def command(self) -> Command:
        """Return what people type on every host."""
        job = self.job
        nodes = f"{job.min_nodes}:{job.hosts}" if job.min_nodes != job.hosts else str(job.hosts)
        script = (f"--max-restarts={RESTARTS_MAX}", "-m", "chaos.train", "--folder", str(self.folder))
        if job.way == "launch":
            own = ("--nnodes", nodes, "--job", NAME, "--nproc-per-node", "1")
            return launch(*own, "--lost-after", f"{job.lost_after_s:g}", "--", *script)
        rendezvous = (
            "--rdzv-backend=avahi",
            f"--rdzv-id={NAME}",
            f"--rdzv-conf=lost_after={job.lost_after_s:g}",
        )
        return torchrun(f"--nnodes={nodes}", "--nproc-per-node=1", *rendezvous, *script)

    def start(self, host: Host) -> None:
        """Start the job's command on a host."""
        self.followers[host.name] = host.follow(self.command())

    def start_again(self, host: Host) -> None:
        """Start it where it runs already: it must be refused."""
        answer = host.run(self.command(), timeout=REFUSED_S)
        said = (answer.stderr.splitlines() or [""])[-1]
        code = 125 if self.job.way == "launch" else 1
        self.evidence.ended.append(Ended(host.name, "a second start", answer.returncode, (code,), said))

    # --- ends ----------------------------------------------------------------------------------------------

    def expect_end(self, host: Host, *codes: int) -> None:
        """Say that the host's command is about to end."""
        self._expected[host.name] = codes

    def bury(self, host: Host, within_s: float = END_S) -> None:
        """Wait for the end of the host's command and write down its exit code."""
        follower = self.followers.pop(host.name)
        expected = self._expected.pop(host.name, ())
        self.past.append((host.name, follower))
        started = time.monotonic()
        try:
            code = follower.wait(within_s)
        except AssertionError:
            self.evidence.waits.append(Wait(f"{host.name}: the command ends", within_s, None))
            follower.end()
            return
        took_s = time.monotonic() - started
        self.evidence.waits.append(Wait(f"{host.name}: the command ends", within_s, took_s))
        last = (follower.lines or [""])[-1]
        self.evidence.ended.append(Ended(host.name, self.job.way, code, expected, last))

    def bury_the_unexpected(self) -> bool:
        """Write down commands that have ended by themselves; say whether there were any."""
        dead = [host for host in self.lab if self._has_ended(host)]
        for host in dead:
            self.bury(host)
        return bool(dead)

    def _has_ended(self, host: Host) -> bool:
        follower = self.followers.get(host.name)
        return follower is not None and follower.process.poll() is not None

    # --- waiting -------------------------------------------------------------------------------------------

    def wait(self, what: str, limit_s: float, reached: Callable[[], bool]) -> float:
        """Wait until something is so, and return how long it took. Raises JobLost where it is not in time."""
        started = time.monotonic()
        while not reached():
            if self.bury_the_unexpected():
                raise JobLost(what)
            if time.monotonic() > started + limit_s:
                self.evidence.waits.append(Wait(what, limit_s, None))
                raise JobLost(what)
            time.sleep(POLL_S)
        took_s = time.monotonic() - started
        self.evidence.waits.append(Wait(what, limit_s, took_s))
        return took_s

    def groups(self, since: float) -> set[Group]:
        """Return the groups that have trained since a moment."""
        self.evidence.lives = self.journals.read()
        return training(self.evidence.lives, since)

    def wait_for_all(self, what: str, limit_s: float) -> float:
        """Wait until all hosts whose command runs train in one group, from now on."""
        since = time.monotonic()
        names = set(self.followers)
        return self.wait(what, limit_s, lambda: any(set(g[1]) == names for g in self.groups(since)))

    def wait_for_survivors(self, out: set[int], limit_s: float) -> float:
        """Wait until a group without the hosts ``out`` trains."""
        since = time.monotonic()
        lost = {self.host(number).name for number in out}
        what = f"training goes on without {', '.join(sorted(lost))}"
        return self.wait(what, limit_s, lambda: any(not lost & set(g[1]) for g in self.groups(since)))

    def wait_for_calm(self, calm_s: float, limit_s: float) -> None:
        """Wait until no worker has started for a while."""
        self.wait("calm", limit_s, lambda: time.monotonic() > self.last_start() + calm_s)

    def last_start(self) -> float:
        self.evidence.lives = self.journals.read()
        return max((life.start for life in self.evidence.lives), default=0.0)

    # --- the end -------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """End the job as the plan says; then nothing of it may be left."""
        if self.job.ending == "finish":
            (self.folder / "finish").touch()
            for host in self.lab:
                self.expect_end(host, 0)
        else:
            for host in self.lab:
                self.expect_end(host, *self.interrupted)
                self.followers[host.name].ctrl_c()
        for host in self.lab:
            self.bury(host)
        self.find_leftovers("process", GONE_S, self.lab.strangers)
        for host in {self.lab[0], self.lab[len(self.lab) - 1]}:
            self.find_leftovers("record", RECORDS_S, lambda host=host: host.run(BROWSE).stdout.splitlines())

    def find_leftovers(self, what: str, limit_s: float, read: Callable[[], list[str]]) -> None:
        """Give what should be gone a moment to go, and write down what is left."""
        deadline = time.monotonic() + limit_s
        while (left := read()) and time.monotonic() < deadline:
            time.sleep(POLL_S)
        self.evidence.left += [f"{what} after the end: {line}" for line in left]

    def close(self) -> None:
        """End what still runs, and keep what everything has printed beside the journals."""
        for name, follower in self.followers.items():
            follower.end()
            self.past.append((name, follower))
        self.evidence.lives = self.journals.read()
        folder = self.folder / "output"
        folder.mkdir(exist_ok=True)
        for number, (name, follower) in enumerate(self.past):
            text = "".join(
                f"{moment:.2f} {line}\n" for moment, line in zip(follower.times, follower.lines, strict=False)
            )
            (folder / f"{name}.{number}.log").write_text(text)
            insides = [line for line in follower.lines if INSIDES.search(line)]
            self.evidence.noise += [f"{name} printed: {line}" for line in insides[:1]]
