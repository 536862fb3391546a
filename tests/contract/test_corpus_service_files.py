"""Real service files, and whether avahi-daemon 0.8 took them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from avahi_gpu.errors import MalformedInput
from avahi_gpu.files.service_file import ServiceGroup, is_loaded, parse
from tests.contract.corpus import load, name_case

CASES = load("service_files.jsonl")
HOST = "l3-node-4"


def read(case: dict[str, Any]) -> ServiceGroup | None:
    if not is_loaded(case.get("file_name") or "test.service"):
        return None
    try:
        return parse(case["text"].encode(case["encoding"]), "test.service", HOST)
    except MalformedInput:
        return None


def unescape(name: str) -> str:
    """Undo what avahi-browse -p does to bytes that are not plain."""
    return re.sub(rb"\\([0-9]{3})", lambda m: bytes([int(m[1])]), name.encode()).decode()


@pytest.mark.parametrize("case", CASES, ids=name_case)
def test_accepted_and_published(case: dict[str, Any]) -> None:
    group = read(case)

    assert (group is not None) == case["accepted"], case["about"]
    published = [entry.split(";") for entry in case["published"]]
    names = [group.published_name(HOST)] * len(group.services) if group else []
    assert [unescape(name) for name, *_ in published] == names
    types = {service.type.rstrip(".") for service in group.services} if group else set()
    # well-known types are shown as words there
    assert {kind for _, kind, _ in published if kind.startswith("_")} <= types


@pytest.mark.parametrize("case", [c for c in CASES if c["resolved_by_peer"]], ids=name_case)
def test_ports_as_a_peer_saw_them(case: dict[str, Any]) -> None:
    group = read(case)
    assert group is not None

    seen = sorted(int(entry.split(";")[4]) for entry in case["resolved_by_peer"])

    assert seen == sorted(service.port for service in group.services)
