"""The table of docs/reference/field-reports.md, made of the scenarios themselves.

``python -m tests.lab.scenarios.page`` writes it anew; a contract test fails where it is out of date.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from avahi_gpu.checks.registry import all_checks
from tests.lab.scenarios import ALL
from tests.lab.scenarios.scenario import Scenario

PAGE = Path(__file__).resolve().parents[3] / "docs/reference/field-reports.md"
BEGIN, END = "<!-- scenarios: begin -->", "<!-- scenarios: end -->"

# reports that are no fault of a machine that a doctor could find: what is done about each, and what proves it
ELSEWHERE: dict[str, tuple[str, str]] = {
    "A-31": ("limits of Avahi's D-Bus objects", "every browser is freed: tests/bus/test_browser.py"),
    "A-35": ("each node elects itself", "launch ends with who is missed: tests/lab/test_launch.py; A-06"),
    "C-08": ("torch looks the names of peers up for its log", "launch spares it: host/resolver.py"),
    "C-10": ("the store's host is not rank 0", "the leader is rank 0: tests/lab/test_rendezvous.py"),
    "C-11": ("only static rendezvous avoids names", "no name is resolved at all: tests/lab/test_launch.py"),
    "C-12": ("the master's death ends the job", "survived: tests/lab/test_faults.py"),
    "C-15": (
        "nodes with different numbers of GPUs",
        "no fault: told as AG614 and AG631; launch works with it",
    ),
    "C-21": ("each node trains alone in silence", "as A-35, and as A-06 where two share a name"),
    "E-01": ("signals lost before the subscription", "handler first: tests/bus/test_browser.py"),
    "E-02": ("a call after the bus died never returns", "deadlines: tests/bus/test_connection.py"),
    "E-04": ("the bus object needs a running loop", "made inside one: avahi/bus.py"),
    "E-05": ("introspection, handlers of exact arity", "messages without it: avahi/bus.py"),
    "E-06": ("a browser is dead after Avahi's restart", "browses anew: tests/bus/test_browser.py"),
}


def make_table(scenarios: Iterable[Scenario]) -> str:
    """Return the Markdown table: one line a scenario, in the order of reports."""
    slugs = {c.id: c.slug for c in all_checks()}
    lines = ["| report | what is broken | first error | mended by `--fix` |", "|---|---|---|---|"]
    for one in sorted(scenarios, key=lambda s: (s.entry, s.name)):
        found = " and ".join(f"[{id}](../findings/{id}.md) {slugs[id]}" for id in (one.finding, *one.also))
        lines.append(f"| {one.entry} | {one.broken} | {found} | {'yes' if one.mends else 'no'} |")
    lines += ["", "| report | what it is | what is done |", "|---|---|---|"]
    lines += [f"| {entry} | {what} | {done} |" for entry, (what, done) in sorted(ELSEWHERE.items())]
    return "\n".join(lines)


def with_table(page: str) -> str:
    """Return the page with the table as it is to be."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{make_table(ALL)}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
