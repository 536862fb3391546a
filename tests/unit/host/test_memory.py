"""The memory of nodes is a hint: bounded, dated, and survived whatever is in it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.host import memory
from avahi_gpu.host.system import System
from avahi_gpu.model import PeerFacts

NOW = 1_900_000_000.0
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root keeps a memory")


def peer(number: int, **changed: object) -> PeerFacts:
    values: dict[str, object] = {"alive": True, "id": f"{number:012x}", **changed}
    return PeerFacts(f"node-{number}", f"node-{number}.local", f"10.0.0.{number}", "eth0", **values)  # type: ignore[arg-type]


@as_root
def test_who_answered_is_remembered_for_a_day_under_the_latest_name(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    system = System(tmp_path)
    memory.remember(system, [peer(1), peer(2), peer(3, alive=False)], NOW)
    memory.remember(
        system, [PeerFacts("new", "new.local", "10.0.0.9", "eth0", alive=True, id=f"{1:012x}")], NOW + 5
    )

    found = {r.name: r.address for r in memory.recall(system, NOW + 10)}

    assert found == {"new": "10.0.0.9", "node-2": "10.0.0.2"}
    assert [r.name for r in memory.recall(system, NOW + memory.KEPT_S + 1)] == ["new"]
    assert memory.recall(system, NOW - 60) == ()  # a clock that was set back


@as_root
def test_it_stays_small(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    system = System(tmp_path)
    for start in range(0, 200, 50):
        memory.remember(system, [peer(n) for n in range(start, start + 50)], NOW + start)

    found = memory.recall(system, NOW + 300)

    assert len(found) == memory.AT_MOST and max(r.seen_at for r in found) == NOW + 150
    assert (tmp_path / memory.FILE[1:]).stat().st_size < memory.SIZE_MAX


def test_without_a_memory_nobody_is_missed(tmp_path: Path) -> None:
    assert memory.recall(System(tmp_path), NOW) == ()


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
entries = st.fixed_dictionaries(
    dict.fromkeys(("id", "name", "host", "address", "cluster", "seen_at"), values | st.integers(0, 2 * 10**9))
)


@given(
    st.binary(max_size=300)
    | st.lists(entries | values, max_size=80).map(lambda e: json.dumps({"peers": e}).encode())
)
def test_whatever_is_in_the_file_is_survived(content: bytes) -> None:
    found = memory.parse(content, NOW)

    assert len(found) <= memory.AT_MOST
    assert all(len(r.name) <= memory.TEXT_MAX and r.seen_at <= NOW for r in found)
