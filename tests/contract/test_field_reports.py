"""docs/reference/field-reports.md tells what the scenarios really are, and forgets no reproduced report."""

from __future__ import annotations

import re

import pytest

from avahi_gpu.checks.registry import find_check
from tests.contract.corpus import FOLDER
from tests.lab.scenarios import ALL
from tests.lab.scenarios.page import ELSEWHERE, PAGE, with_table

REPORTS = FOLDER.parent / "facts" / "field-reports.md"


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page == with_table(page), "run: python -m tests.lab.scenarios.page"


def test_every_reproduced_report_is_a_scenario_or_answered_elsewhere() -> None:
    if not REPORTS.is_file():
        pytest.skip("the reports are not here")
    headings = re.findall(r"^### ([A-E]-\d\d) .*\[V", REPORTS.read_text(encoding="utf-8"), re.MULTILINE)

    assert headings
    assert set(headings) - {s.entry for s in ALL} - set(ELSEWHERE) == set()


def test_every_scenario_names_checks_that_there_are() -> None:
    assert [s.name for s in ALL for id in (s.finding, *s.also) if find_check(id) is None] == []
