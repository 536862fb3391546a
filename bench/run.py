"""All measurements of ``make bench``, in one run on the lab, as tables."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench import (
    agreement,
    cost,
    discovery,
    doctor,
    idle_lab,
    names,
    newcomer,
    outage,
    recovery,
    start,
    watching,
)
from bench.measure import Chapter
from bench.results import Results
from bench.table import SUMMARY, fill, mark_down, show, summary
from tests.lab.host import BootFailed

INTERRUPTED = 130
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """How often each thing is measured."""

    discovery: int = 5
    discovered: tuple[int, ...] = (3,)
    agreement: int = 30
    sizes: tuple[int, ...] = (3, 6, 10, 20)
    sized: int = 5
    start: int = 6  # a multiple of the ways, so that each is first equally often
    recovery: int = 5
    outage: int = 5
    c10d: int = 2  # of each loss that c10d is measured beside
    c10d_s: float = 25.0  # how long it is given
    c10d_outage: int = 1
    doctor: int = 9
    doctored: tuple[int, ...] = (1, 4, 10)
    doctor_faults: int = 3
    newcomer: int = 3
    names: int = 5
    windows: int = 5
    window_s: float = 6.0
    watch: int = 10
    idle: tuple[int, ...] = (3, 6, 10, 20, 30, 40)
    idle_s: float = 60.0


FULL = Plan()
QUICK = Plan(
    discovery=2,
    agreement=5,
    sizes=(3, 6),
    sized=2,
    start=2,
    recovery=1,
    outage=1,
    c10d=1,
    c10d_s=20.0,
    doctor=2,
    doctored=(1, 4),
    doctor_faults=1,
    newcomer=1,
    names=1,
    windows=2,
    window_s=5.0,
    watch=2,
    idle=(3,),
    idle_s=5.0,
)
THOROUGH = Plan(
    discovered=(3, 10),
    sized=10,
    start=12,
    recovery=10,
    outage=10,
    doctor=20,
    doctor_faults=5,
    newcomer=5,
    names=10,
    c10d=5,
    c10d_outage=5,
    window_s=12.0,
)

# in the order in which they are measured: what everything else stands on comes first
PARTS: dict[str, Callable[[Plan, Tell], Iterator[Chapter]]] = {
    "agreement": lambda plan, tell: agreement.measure(plan.agreement, tell),
    "sizes": lambda plan, tell: agreement.measure_sizes(plan.sizes, plan.sized, tell),
    "start": lambda plan, tell: start.measure(plan.start, tell),
    "cost": lambda plan, tell: cost.measure(plan.windows, plan.window_s, tell),
    "recovery": lambda plan, tell: recovery.measure(plan.recovery, plan.c10d, plan.c10d_s, tell),
    "outage": lambda plan, tell: outage.measure(plan.outage, plan.c10d_outage, tell),
    "doctor": lambda plan, tell: doctor.measure(plan.doctored, plan.doctor, plan.doctor_faults, tell),
    "newcomer": lambda plan, tell: newcomer.measure(plan.newcomer, tell),
    "discovery": lambda plan, tell: discovery.measure(plan.discovered, plan.discovery, tell),
    "names": lambda plan, tell: names.measure(plan.names, tell),
    "watch": lambda plan, tell: watching.measure(plan.watch, tell),
    "idle": lambda plan, tell: idle_lab.measure(plan.idle, plan.idle_s, tell),
}

# as the page has them
SUMMARY_ORDER = (
    "newcomer",
    "start",
    "agreement",
    "sizes",
    "recovery",
    "outage",
    "cost",
    "doctor",
    "discovery",
    "names",
    "watch",
    "idle",
)


def main(words: Sequence[str]) -> int:
    """Measure and print the tables; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    much = parser.add_mutually_exclusive_group()
    much.add_argument("--quick", action="store_true", help="few runs of each: to try it, not to quote it")
    much.add_argument("--thorough", action="store_true", help="twice as many runs, and ten nodes to discover")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part alone; may be repeated")
    parser.add_argument("--skip", choices=PARTS, action="append", default=[], help="all but this part")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="keep every single measurement there, from the first on; parts that the file has already stay "
        "in it unless they are measured again",
    )
    parser.add_argument("--render", type=Path, metavar="FILE", help="measure nothing: show such a file")
    parser.add_argument("--into", type=Path, metavar="PAGE", help="with --render: fill the tables of a page")
    options = parser.parse_args(words)
    if options.render is not None:
        return render(options.render, options.into)
    if options.into is not None:
        parser.error("--into needs --render FILE")
    if os.geteuid() != 0:
        parser.error("virtual hosts need root: sudo make bench")
    plan = QUICK if options.quick else THOROUGH if options.thorough else FULL
    try:
        results = Results(options.json, describe_machine())
    except (ValueError, KeyError, TypeError, OSError) as fault:
        parser.error(f"--json {options.json}: {fault}")
    parts = [part for part in options.only or PARTS if part not in options.skip]
    return run(plan, parts, results)


def run(plan: Plan, parts: Sequence[str], results: Results) -> int:
    """Measure the parts one after the other; return the exit code. What was measured is kept in any case."""
    began = time.monotonic()

    def tell(text: str) -> None:
        sys.stderr.write(f"[{time.monotonic() - began:4.0f} s] {text}\n")
        sys.stderr.flush()

    print(sentence_of(results.machine), end="\n\n", flush=True)
    code = 0
    for part in parts:
        part_began = time.monotonic()
        results.begin(part, load_at_start=load(), plan=asdict(plan))
        try:
            for chapter in PARTS[part](plan, tell):
                results.put(part, chapter)
            results.end(part, took_s=round(time.monotonic() - part_began, 1))
        except KeyboardInterrupt:
            tell("interrupted; the virtual hosts are gone")
            code = INTERRUPTED
        except (BootFailed, RuntimeError, AssertionError, OSError, subprocess.SubprocessError) as failure:
            tell(f"{part} failed: {failure}")  # the other parts are measured all the same
            code = 1
        for chapter in results.of(part):
            print(show(chapter), flush=True)
        if code == INTERRUPTED:
            break
    tell(f"done; load of the machine {load()} over the last 1, 5 and 15 minutes")
    return code


def render(file: Path, page: Path | None) -> int:
    """Print the tables of a file as Markdown, or put them into a page; return the exit code."""
    try:
        results = Results(file, {})
        chapters = results.all(SUMMARY_ORDER)
        if chapters and page is not None:
            text, unknown = fill(page.read_text(), chapters, circumstances(results))
            page.write_text(text)
            for key in unknown:
                print(f"{page}: nothing was measured for {key}", file=sys.stderr)
            return 1 if unknown else 0
    except (ValueError, KeyError, TypeError, OSError) as fault:
        print(f"{file}: {fault}", file=sys.stderr)
        return 2
    if not chapters:
        print(f"{file}: no measurements", file=sys.stderr)
        return 2
    print(f"## {SUMMARY}\n\n{summary(chapters)}")
    for chapter in chapters:
        print(f"## {chapter.title}\n\n<!-- {chapter.key} --> {chapter.about}\n\n{mark_down(chapter)}")
    return 0


def circumstances(results: Results) -> str:
    """Return on which machine, how often and beside what load the parts were measured."""
    loads = [float(part["load_at_start"].split()[0]) for part in results.parts.values()]
    open_ended = [name for name, part in results.parts.items() if not part["complete"]]
    left = f" Not complete: {', '.join(open_ended)}." if open_ended else ""
    seconds = sum(part.get("took_s", 0.0) for part in results.parts.values())
    return (
        f"{sentence_of(results.machine)}. Where a part began, the load of the last minute was "
        f"{min(loads):.2f} to {max(loads):.2f}, that of the parts before it included; "
        f"all took {seconds / 60:.0f} minutes.{left}"
    )


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
