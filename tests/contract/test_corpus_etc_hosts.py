"""Patterns of /etc/hosts, what glibc answered, and whether a gloo job without any variable set came up."""

from __future__ import annotations

from typing import Any

import pytest

from avahi_gpu.files.etc_hosts import find, find_stale, judge_own_name, parse
from tests.contract.corpus import load, name_case

CASES = load("etc_hosts.jsonl")
HOSTS = ("1", "2")


def text_on(case: dict[str, Any], host: str) -> str:
    text: str = case["lab_text"][host]
    return text.replace("@N", f"l3-node-{host}").replace("@I", f"10.93.0.{host}")


@pytest.mark.parametrize("case", CASES, ids=name_case)
@pytest.mark.parametrize("host", HOSTS)
def test_the_own_name(case: dict[str, Any], host: str) -> None:
    found = {entry.address for entry in find(parse(text_on(case, host)), f"l3-node-{host}")}

    assert found == set((case["own_name_resolves_to"][host] or "").split(",")) - {""}


@pytest.mark.parametrize("case", CASES, ids=name_case)
def test_a_trap_is_seen_where_a_job_failed(case: dict[str, Any]) -> None:
    traps = []
    for host in HOSTS:
        text = text_on(case, host)
        traps.append(judge_own_name(text, f"l3-node-{host}", [f"10.93.0.{host}"]).kind != "lan")
        traps.append(bool(find_stale(text, "l3-node-1.local", ["10.93.0.1"])))

    assert any(traps) == (case["gloo"] == "fails"), case["about"]
