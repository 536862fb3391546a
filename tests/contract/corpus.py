"""Cases from outside the repository: real files, and what real programs did with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "corpus"


def load(name: str) -> list[dict[str, Any]]:
    """Return the cases of one file; none where the corpus is not at hand: its tests are skipped then."""
    path = FOLDER / name
    if not path.exists():
        return []
    cases = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [case for case in cases if "id" in case]


def name_case(case: dict[str, Any]) -> str:
    return str(case["id"])
