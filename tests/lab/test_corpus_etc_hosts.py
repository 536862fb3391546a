"""Real /etc/hosts files on a real node: what kept a job from working is told, what did not is no error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.corpus import load, name_case
from tests.lab.cluster import Cluster, cluster
from tests.lab.doctoring import doctor, set_up

CASES = load("etc_hosts.jsonl")
IDS = ("AG103", "AG105", "AG320", "AG321", "AG322", "AG323", "AG324")
ABOUT_NAMES = tuple(word for id in IDS for word in ("--only", id))
TRAP = "AG103"  # the own name is loopback: information, since nothing of ours goes by it


@pytest.fixture(scope="module")
def lab() -> Iterator[Cluster]:
    with cluster(2) as lab:
        set_up(lab)
        yield lab


def text_on(lab: Cluster, case: dict[str, Any], number: int) -> str:
    text: str = case["lab_text"][str(number)]
    text = text.replace("@N", lab[number - 1].name).replace("@I", lab[number - 1].address)
    return text.replace("l3-node-", "gpu-node-").replace("10.93.0.", f"{lab.subnet}.")


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.faults] if n % 3 else []) for n, case in enumerate(CASES)],
    ids=name_case,
)
def test_a_file_that_broke_a_job_is_told_of(case: dict[str, Any], lab: Cluster) -> None:
    host = lab[1]
    host.write("/etc/hosts", text_on(lab, case, 2))

    found = doctor(host, *ABOUT_NAMES)

    wrong = [id for id in found.errors if id in IDS]
    assert (bool(wrong) or TRAP in found.of("info")) == (case["gloo"] == "fails"), found.tell()
    assert len(wrong) <= 1, found.tell()
