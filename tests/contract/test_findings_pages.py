"""Every finding has its page, every page its finding, and ``explain`` shows it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import avahi_gpu.checks  # noqa: F401  registers them
from avahi_gpu.checks.registry import Check, all_checks
from tests.contract import findings_page

PAGES = Path(__file__).resolve().parents[2] / "docs" / "findings"
HEADINGS = ["## Symptom", "## Cause", "## How to see it", "## How to mend it"]


def explain(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "avahi_gpu.cli.app", "explain", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_pages_and_checks_are_the_same_set() -> None:
    assert {page.stem for page in PAGES.iterdir()} == {c.id for c in all_checks()}


@pytest.mark.parametrize("check", all_checks(), ids=lambda c: c.id)
def test_a_page_has_its_form(check: Check) -> None:
    text = (PAGES / f"{check.id}.md").read_text(encoding="utf-8")

    assert text.splitlines()[0] == f"# {check.id}: {check.slug}"
    assert re.findall(r"^## .*$", text, re.MULTILINE) in (HEADINGS, [*HEADINGS, "## Sources"])
    assert all(part.strip() for part in re.split(r"^#.*$", text, flags=re.MULTILINE)[1:])
    # other findings that it speaks of exist
    assert set(re.findall(r"AG\d{3}", text)) <= {c.id for c in all_checks()}


def test_a_sentence_of_a_check_is_one() -> None:
    """It begins without a capital, as it stands behind an id, and ends without a full stop."""
    for check in all_checks():
        first = check.says.split()[0]
        assert first in ("Avahi",) or first[:1] in "/_" or first.islower() or "." in first, check.says
        assert not check.says.endswith("."), check.says


@pytest.mark.parametrize("name", ["AG104", "ag104", "mdns-before-dns", "MDNS-before-DNS"])
def test_explain_finds_a_page_by_id_or_slug_and_prints_it_raw_on_a_pipe(name: str) -> None:
    shown = explain(name)

    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout == (PAGES / "AG104.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "nearest"), [("AG1044", "AG104"), ("mdns-before-dsn", "mdns-before-dns")])
def test_explain_names_the_nearest(name: str, nearest: str) -> None:
    shown = explain(name)

    assert (shown.returncode, shown.stdout) == (2, "")
    assert f"did you mean {nearest}?" in shown.stderr and "Traceback" not in shown.stderr


def test_explain_of_nothing_alike_only_says_so() -> None:
    shown = explain("\x1b[2Jqqqqqqqq")

    assert shown.returncode == 2
    assert "did you mean" not in shown.stderr and "\x1b" not in shown.stderr


def test_the_list_of_findings_is_that_of_the_registry() -> None:
    page = findings_page.PAGE.read_text(encoding="utf-8")

    assert page == findings_page.with_tables(page), "run: python -m tests.contract.findings_page"
