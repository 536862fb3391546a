"""All measurements of ``make bench``, in one run on the lab, as one table."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version

from bench import discovery, failover, start
from bench.measure import Chapter, show
from tests.lab.cluster import cluster

RUNS = 5
CHAPTERS = ("discovery", "start", "recovery")


def main(words: Sequence[str]) -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="of each measurement; the median counts")
    parser.add_argument("--only", choices=CHAPTERS, help="one chapter")
    options = parser.parse_args(words)
    if os.geteuid() != 0:
        parser.error("virtual hosts need root: sudo make bench")
    began = time.monotonic()

    def tell(text: str) -> None:
        sys.stderr.write(f"[{time.monotonic() - began:4.0f} s] {text}\n")

    chapters = measure(options.only, options.runs, tell)
    print(describe_machine())
    print(show(chapters), end="", flush=True)
    tell("done")
    return 0


def measure(only: str | None, runs: int, tell: Callable[[str], None]) -> list[Chapter]:
    """Return the chapters that are asked for."""
    chapters: list[Chapter] = []
    if only in (None, "discovery"):
        with cluster(3) as lab:
            chapters += discovery.measure(lab, runs, tell)
    if only in (None, "start"):
        with cluster(3) as lab:
            chapters += start.measure(lab, runs, tell)
    if only in (None, "recovery"):
        chapters += failover.measure(runs, tell)
    return chapters


def describe_machine() -> str:
    """Return what the figures depend on."""
    avahi = subprocess.run(["avahi-daemon", "--version"], capture_output=True, text=True, check=False).stdout
    load = os.getloadavg()[0]
    return (
        f"avahi-gpu {version('avahi-gpu')}, torch {version('torch')}, {avahi.strip() or 'avahi-daemon'}, "
        f"Python {platform.python_version()}\n"
        f"three virtual hosts on one machine of {os.cpu_count()} cores, load {load:.1f} at the end"
    )
