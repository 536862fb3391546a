"""The table of docs/reference/findings.md, made of the registry of checks.

``python -m tests.contract.findings_page`` writes it anew; a contract test fails where it is out of date.
"""

from __future__ import annotations

from pathlib import Path

import avahi_gpu.checks  # noqa: F401  registers them
from avahi_gpu.checks.registry import AREAS, all_checks

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/findings.md"
BEGIN, END = "<!-- findings: begin -->", "<!-- findings: end -->"
TITLES = {
    "names": "1xx: names",
    "network": "2xx: the network",
    "host": "3xx: this machine",
    "gpu": "4xx: GPUs",
    "service": "5xx: what this machine tells others",
    "cluster": "6xx: all nodes together",
}


def make_tables() -> str:
    """Return one table an area, one line a check, by id."""
    parts = []
    for area in AREAS.values():
        lines = [f"## {TITLES[area]}", "", "| id | what is asked: is it so that … |", "|---|---|"]
        for one in sorted((c for c in all_checks() if c.area == area), key=lambda c: c.id):
            says = one.says.replace("|", "\\|")
            lines.append(f"| [{one.id}](../findings/{one.id}.md) {one.slug} | {says} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def with_tables(page: str) -> str:
    """Return the page with the tables as they are to be."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{make_tables()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
