"""Chaos: jobs on the lab under one fault after the other, and the verdict.

    python -m chaos [--seed N] [--jobs N] [--faults N] [--only JOB] [--json FILE] [--plan]

What it checks stands in ``judge``, what it does in ``plan``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from chaos import faults
from chaos.judge import Counts, Evidence, Violation, Window, count, judge
from chaos.plan import Burst, Job, make, taken_out
from chaos.stage import JobLost, Stage
from tests.lab.cluster import cluster
from tests.lab.host import BootFailed
from tests.lab.process import CommandFailed

JOBS, FAULTS = 10, 100
START_S = 90.0  # six hosts import torch on two cores, twice; 10 s when nothing else runs
RECOVER_S = 60.0  # DESIGN: a group within 10 s; then torch is imported again, on two cores
CALM_MORE_S = 1.0  # after --lost-after: nothing of an earlier fault comes to light any more
INTERRUPTED = 130

Tell = Callable[[str], None]


def run_job(job: Job, folder: Path, tell: Tell) -> Evidence:
    """Do one job of the plan; whatever happens, what is known of it comes back."""
    with cluster(job.hosts) as lab:
        stage = Stage(job, lab, folder)
        try:
            for host in lab:
                if host.number != job.late:
                    stage.start(host)
            tell(f"  all train after {stage.wait_for_all('the start', START_S):.1f} s")
            for burst in job.bursts:
                run_burst(stage, burst, tell)
            stage.finish()
        except JobLost as lost:
            tell(f"  LOST: {lost}")
        except (CommandFailed, RuntimeError, BootFailed, subprocess.SubprocessError, OSError) as error:
            stage.evidence.errors.append(f"{type(error).__name__}: {error}")
        finally:
            stage.close()
    return stage.evidence


def run_burst(stage: Stage, burst: Burst, tell: Tell) -> None:
    """Strike, mend, and wait until all train together again."""
    job = stage.job
    calm_s = job.lost_after_s + CALM_MORE_S
    if burst.quiet:
        stage.wait_for_calm(calm_s, RECOVER_S)
        stage.wait_for_all("calm", RECOVER_S)
    begin = time.monotonic()
    for fault in burst.faults:
        faults.strike(stage, fault)
        time.sleep(fault.pause_s)
    if burst.survived:
        stage.wait_for_survivors(taken_out(burst.faults, job.hosts), RECOVER_S)
    else:
        time.sleep(burst.hold_s)
    for fault in burst.faults:
        faults.mend(stage, fault)
    took_s = stage.wait_for_all(f"all train after: {burst}", RECOVER_S)
    if burst.quiet:
        time.sleep(calm_s)
        stage.evidence.windows.append(Window(begin, time.monotonic(), f"the quiet burst {burst}"))
    tell(f"  {burst}: all train after {took_s:.1f} s")


def main(words: Sequence[str]) -> int:
    """Run the plan and print the verdict; 0: no promise was broken, 1: one was, 130: interrupted."""
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="decides everything that is done")
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--faults", type=int, default=FAULTS, help="over all jobs together")
    parser.add_argument("--only", type=int, metavar="JOB", help="this job of the plan alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the counts and the verdict there")
    parser.add_argument("--plan", action="store_true", help="show what would be done, and do nothing")
    options = parser.parse_args(words)
    plan = make(options.seed, options.jobs, options.faults)
    if options.plan:
        for job in plan:
            print(job, *(f"  {burst}" for burst in job.bursts), sep="\n")
        return 0
    if os.geteuid() != 0:
        parser.error("virtual hosts need root: sudo make chaos")
    began = time.monotonic()

    def tell(text: str) -> None:
        print(f"[{time.monotonic() - began:4.0f} s] {text}", flush=True)

    folder = Path(tempfile.mkdtemp(prefix="avahi-gpu-chaos-"))
    verdicts: list[tuple[Evidence, list[Violation], Counts]] = []
    code = 0
    try:
        for job in plan:
            if options.only in (None, job.number):
                tell(str(job))
                own = folder / f"job-{job.number}"
                own.mkdir()
                evidence = run_job(job, own, tell)
                violations = judge(evidence)
                for violation in violations:
                    tell(f"  VIOLATION {violation}")
                verdicts.append((evidence, violations, count(evidence)))
                tell(f"  {sentence_of(verdicts[-1][2])}")
    except KeyboardInterrupt:
        tell("interrupted; the virtual hosts are gone")
        code = INTERRUPTED
    data = summary(options.seed, verdicts)
    print(show(data), flush=True)
    if data["violations"]:
        code = code or 1
        again = f"python -m chaos --seed {options.seed} --jobs {options.jobs} --faults {options.faults}"
        for evidence, violations, _ in verdicts:
            if violations:
                number = evidence.job.number
                print(f"again: {again} --only {number}; journals and output: {folder}/job-{number}")
    else:
        shutil.rmtree(folder)
    if options.json is not None:
        options.json.write_text(json.dumps({"version": 1, "complete": code == 0, **data}, indent=1) + "\n")
    return code


def sentence_of(counts: Counts) -> str:
    """Return what a job came to in a line."""
    return (
        f"{counts.rounds} rounds, {counts.starts} starts of workers, {counts.steps} steps committed, "
        f"{counts.redone} of them done again before, {counts.thrown_away} checkpoints thrown away"
    )


def summary(seed: int, verdicts: Sequence[tuple[Evidence, list[Violation], Counts]]) -> dict[str, Any]:
    """Return the verdict over all jobs as data."""
    kinds = Counter(fault.kind for evidence, _, _ in verdicts for fault in evidence.job.faults)
    recoveries = [
        wait.took_s
        for evidence, _, _ in verdicts
        for wait in evidence.waits
        if wait.took_s is not None and wait.what.startswith(("all train", "training goes on"))
    ]
    totals = [asdict(counts) for _, _, counts in verdicts]
    return {
        "seed": seed,
        "jobs": len(verdicts),
        "faults": sum(kinds.values()),
        "by_kind": dict(sorted(kinds.items())),
        **{
            key: sum(t[key] for t in totals) for key in ("rounds", "starts", "steps", "redone", "thrown_away")
        },
        "restarts_counted": sum(t["restarts"] for t in totals),  # by torch, of each job's unluckiest node
        "quiet_bursts": sum(len(evidence.windows) for evidence, _, _ in verdicts),
        "recovery_s": {
            "median": round(statistics.median(recoveries), 1) if recoveries else None,
            "most": round(max(recoveries), 1) if recoveries else None,
        },
        "violations": [
            {"job": evidence.job.number, **asdict(violation)}
            for evidence, violations, _ in verdicts
            for violation in violations
        ],
    }


def show(data: dict[str, Any]) -> str:
    """Return the verdict for people."""
    kinds = ", ".join(f"{kind} {n}" for kind, n in data["by_kind"].items())
    broken = len(data["violations"])
    return (
        f"seed {data['seed']}: {data['jobs']} jobs, {data['faults']} faults ({kinds})\n"
        f"{data['rounds']} rounds, {data['starts']} starts of workers, {data['steps']} steps committed, "
        f"{data['redone']} done again before they were, {data['thrown_away']} checkpoints thrown away, "
        f"{data['quiet_bursts']} quiet bursts, {data['restarts_counted']} restarts that torch counted\n"
        f"from the mending to all training: median {data['recovery_s']['median']} s, "
        f"at most {data['recovery_s']['most']} s\n"
        + (f"{broken} VIOLATIONS" if broken else "no promise was broken")
    )
