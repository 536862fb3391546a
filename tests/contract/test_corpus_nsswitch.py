"""Real nsswitch.conf files: the verdict and the bytes that experience with real glibc calls for."""

from __future__ import annotations

from typing import Any

import pytest

from avahi_gpu.files.nsswitch import Machine, judge, repair
from tests.contract.corpus import load, name_case

CASES = load("nsswitch.jsonl")


def machine_of(case: dict[str, Any]) -> Machine:
    """What the text alone does not tell: another C library, and the link that NixOS makes."""
    generated = case["distro"].startswith("NixOS (generated")
    return Machine(
        glibc="musl" not in case["distro"],
        link_target="/nix/store/0-etc/etc/nsswitch.conf" if generated else None,
    )


def wanted(case: dict[str, Any]) -> bytes | None:
    if case["untouched"] or case["expected"] is None:
        return None
    content: bytes = case["expected"].encode()
    # an edited file ends in a newline: where the case keeps the want of it, its own reason asks for one
    return content if content.endswith(b"\n") else content + b"\n"


@pytest.mark.parametrize("case", CASES, ids=name_case)
def test_verdict_and_content(case: dict[str, Any]) -> None:
    result = repair(case["text"].encode(), machine_of(case))

    assert (result.verdict, result.content) == (case["verdict"], wanted(case)), case["reason"]
    assert result.says
    assert result.hint or result.verdict not in ("managed", "not-applicable", "critical")


@pytest.mark.parametrize("case", [c for c in CASES if wanted(c)], ids=name_case)
def test_what_was_repaired_is_not_repaired_again(case: dict[str, Any]) -> None:
    content = wanted(case)

    assert not repair(content, machine_of(case)).wanted


# where the foreign modules answer NOTFOUND or resolved runs: what the line itself does, not what was missing
@pytest.mark.parametrize("case", CASES, ids=name_case)
def test_the_judgement_agrees_with_what_glibc_did(case: dict[str, Any]) -> None:
    seen = [case["resolves_before"][condition] for condition in ("hijack", "resolved", "wall")]

    assert judge(case["text"]).asks_first == (seen == ["ok", "ok", "ok"])
