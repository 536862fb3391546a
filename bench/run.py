"""All measurements of ``make bench``, in one run on the lab, as tables."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench import agreement, discovery, recovery, start
from bench.measure import Chapter, as_data, show
from tests.lab.host import BootFailed

PARTS = ("discovery", "agreement", "start", "recovery")
INTERRUPTED = 130


@dataclass(frozen=True)
class Plan:
    """How often each thing is measured."""

    discovery: int = 5
    sizes: tuple[int, ...] = (3,)
    agreement: int = 30
    start: int = 5
    recovery: int = 5
    c10d: int = 1  # of what torchrun's own backend gets over; the rest is measured once
    c10d_s: float = 30.0  # how long it is given: its keep-alives notice a dead node after 15 s
    impatient: int = 0
    impatient_s: float = 3.0  # the shorter --lost-after


FULL = Plan()
QUICK = Plan(discovery=2, agreement=5, start=2, recovery=1)
THOROUGH = Plan(sizes=(3, 10), start=10, c10d=5, impatient=5)


def main(words: Sequence[str]) -> int:
    """Measure and print the tables; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    much = parser.add_mutually_exclusive_group()
    much.add_argument("--quick", action="store_true", help="few runs of each: to try it, not to quote it")
    much.add_argument("--thorough", action="store_true", help="ten nodes as well, and a shorter --lost-after")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part alone; may be repeated")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every single measurement there")
    options = parser.parse_args(words)
    if os.geteuid() != 0:
        parser.error("virtual hosts need root: sudo make bench")
    began = time.monotonic()

    def tell(text: str) -> None:
        sys.stderr.write(f"[{time.monotonic() - began:4.0f} s] {text}\n")
        sys.stderr.flush()

    machine = describe_machine()
    print(sentence_of(machine), end="\n\n", flush=True)
    chapters: list[Chapter] = []
    code = 0
    try:
        plan = QUICK if options.quick else THOROUGH if options.thorough else FULL
        for chapter in measure(plan, options.only or PARTS, tell):
            chapters.append(chapter)
            print(show(chapter), flush=True)
        tell(f"done; load of the machine {load()} over the last 1, 5 and 15 minutes")
    except KeyboardInterrupt:
        tell("interrupted; the virtual hosts are gone")
        code = INTERRUPTED
    except (BootFailed, RuntimeError, AssertionError, subprocess.SubprocessError) as failure:
        tell(f"a measurement failed: {failure}")
        code = 1
    if options.json is not None:
        data = {"version": 1, "complete": code == 0, "machine": machine, "load_at_end": load()}
        options.json.write_text(
            json.dumps({**data, "chapters": [as_data(c) for c in chapters]}, indent=1) + "\n"
        )
    return code


def measure(plan: Plan, parts: Sequence[str], tell: Callable[[str], None]) -> Iterator[Chapter]:
    """Yield the chapters of the parts that are asked for, each when it is complete."""
    if "discovery" in parts:
        for size in plan.sizes:
            yield from discovery.measure(size, plan.discovery, tell)
    if "agreement" in parts:
        yield from agreement.measure(plan.agreement, tell)
    if "start" in parts:
        yield from start.measure(plan.start, tell)
    if "recovery" in parts:
        yield from recovery.measure(plan.recovery, plan.c10d, plan.c10d_s, tell)
        if plan.impatient:
            yield from recovery.measure_impatient(plan.impatient, plan.impatient_s, tell)


def describe_machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    daemon = subprocess.run(["avahi-daemon", "--version"], capture_output=True, text=True, check=False).stdout
    return {
        "avahi_gpu": version("avahi-gpu"),
        "torch": version("torch"),
        "zeroconf": version("zeroconf"),
        "avahi": daemon.strip() or "avahi-daemon",
        "python": platform.python_version(),
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", "Linux"),
        "cores": os.cpu_count(),
        "load_at_start": load(),
    }


def sentence_of(machine: dict[str, Any]) -> str:
    """Return the machine in two lines."""
    return (
        "avahi-gpu {avahi_gpu}, torch {torch}, {avahi}, python-zeroconf {zeroconf}, Python {python},\n"
        "{system}; virtual hosts on one machine of {cores} cores, load {load_at_start} before the start"
    ).format(**machine)


def load() -> str:
    """Return the load of the machine over the last 1, 5 and 15 minutes."""
    return " ".join(f"{value:.2f}" for value in os.getloadavg())
