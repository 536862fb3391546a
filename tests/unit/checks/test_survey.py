"""What ``doctor --cluster`` makes of what the nodes told: one thing is broken at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from avahi_gpu.checks.registry import all_checks, run_checks
from avahi_gpu.model import Address, Attached, ClusterView, Facts, Finding, Passage, Trial, Versions
from tests.unit.checks.views import node, shut, view_of, with_node, with_way, without_doctor

SURVEY = [c.id for c in all_checks() if c.survey]
NO = Trial(False, "no answer")
ALL_PORTS = ("control", "store", "workers", "high")


def judge(facts: Facts, view: ClusterView) -> dict[str, Finding]:
    return {f.id: f for f in run_checks(replace(facts, view=view), SURVEY)}


def bad(found: dict[str, Finding]) -> dict[str, str]:
    return {id: f.verdict for id, f in found.items() if f.verdict not in ("ok", "skip")}


def test_nothing_of_it_is_asked_without_a_view(healthy: Facts) -> None:
    assert not {f.id for f in run_checks(healthy)} & set(SURVEY)
    assert {f.verdict for f in run_checks(healthy, SURVEY)} == {"skip"}


@pytest.mark.parametrize("count", [2, 3, 10])
def test_healthy_nodes_are_fine(healthy: Facts, count: int) -> None:
    assert {f.verdict for f in judge(healthy, view_of(count)).values()} == {"ok"}


def versions(**changed: str) -> dict[str, object]:
    return {"versions": replace(node(1).versions, **changed)}


def cut(way: Passage) -> Passage:
    return replace(shut(*ALL_PORTS)(way), echo=NO)


def lose_name(way: Passage) -> Passage:
    return replace(way, glibc=NO)


def lose_frames(way: Passage) -> Passage:
    return replace(way, frame=NO)


STORE_ALONE = shut("control", "workers", "high")
JUMBO = (Attached("eth0", 9000, node(2).networks[0].addresses),)
AWAY = (Attached("eth0", 1500, (Address("10.0.7.2", 24, 4, "global"),)),)
BROKEN: list[tuple[str, Callable[[ClusterView], ClusterView], dict[str, str], str]] = [
    ("a node is silent", lambda v: without_doctor(v, "n3"), {"AG620": "warn"}, "n3"),
    ("another key", lambda v: without_doctor(v, "n3", "key"), {"AG621": "error"}, "n3"),
    ("one way", lambda v: with_way(v, "n3", "n2", cut), {"AG622": "error"}, "n3 → n2"),
    ("29500 alone", lambda v: with_way(v, "n1", "n2", STORE_ALONE), {"AG623": "error"}, "n1 → n2"),
    ("ping alone", lambda v: with_way(v, "n1", "n2", shut(*ALL_PORTS)), {"AG623": "error"}, "ping works"),
    ("no name", lambda v: with_way(v, "n2", "n3", lose_name), {"AG624": "error"}, "n2 → n3"),
    ("torch", lambda v: with_node(v, "n2", **versions(torch="2.8.0")), {"AG625": "error"}, "n2 has 2.8.0"),
    ("NCCL", lambda v: with_node(v, "n2", **versions(nccl="2.21.5")), {"AG625": "error"}, "2.21.5"),
    ("patch", lambda v: with_node(v, "n2", **versions(torch="2.9.1")), {"AG625": "info"}, "2.9.1"),
    ("driver", lambda v: with_node(v, "n2", **versions(driver="550.9")), {"AG625": "info"}, "550.9"),
    ("no torch", lambda v: with_node(v, "n2", versions=Versions(python="3.11.2")), {"AG625": "warn"}, "n2"),
    ("MTU", lambda v: with_node(v, "n2", networks=JUMBO), {"AG626": "warn"}, "9000"),
    ("large frames", lambda v: with_way(v, "n1", "n2", lose_frames), {"AG627": "error"}, "n1 → n2"),
    ("clock", lambda v: with_node(v, "n2", clock_s=-1.5), {"AG628": "warn"}, "n2"),
    ("names", lambda v: with_node(v, "n3", hostname="N2"), {"AG629": "warn"}, "n2 and n3"),
    ("ids", lambda v: with_node(v, "n3", id=node(2).id), {"AG630": "warn"}, "n2 and n3"),
    ("GPUs", lambda v: with_node(v, "n3", gpus=1), {"AG631": "info"}, "n3: 1"),
    ("subnet", lambda v: with_node(v, "n3", address="10.0.7.2", networks=AWAY), {"AG632": "error"}, "n3"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected", "words"), [b[1:] for b in BROKEN], ids=[b[0] for b in BROKEN])
def test_one_fault_gives_one_finding(
    healthy: Facts,
    change: Callable[[ClusterView], ClusterView],
    expected: dict[str, str],
    words: str,
) -> None:
    found = judge(healthy, change(view_of()))

    assert bad(found) == expected
    told = [line for id in expected for line in (found[id].says, *found[id].evidence)]
    assert any(words in line for line in told), told


@pytest.mark.parametrize(
    "change",
    [
        lambda v: with_way(v, "n1", "n2", lambda p: replace(p, glibc=NO)),  # other checks' business
        lambda v: with_way(
            v, "n2", "n3", lambda p: replace(p, echo=Trial(False, "no answer"), frame=Trial())
        ),
        lambda v: with_way(v, "n2", "n3", lambda p: replace(p, echo=Trial(), frame=Trial())),
        lambda v: with_node(v, "n2", clock_s=-1.5, clock_error_s=0.9),  # nobody can say that it is off
        lambda v: with_node(with_node(v, "n2", hostname="localhost"), "n3", hostname="localhost"),
        lambda v: with_node(v, "n2", versions=replace(node(1).versions, cuda="", nccl="", driver="")),
    ],
)
def test_what_is_no_fault_is_none(healthy: Facts, change: Callable[[ClusterView], ClusterView]) -> None:
    assert bad(judge(healthy, change(view_of()))) == {}


def test_where_nobody_was_asked_nothing_is_guessed(healthy: Facts) -> None:
    view = without_doctor(without_doctor(view_of(), "n2"), "n3")

    assert bad(judge(healthy, view)) == {"AG620": "unknown"}
    assert bad(judge(healthy, ClusterView(view.nodes[:1], trouble="no bus"))) == {"AG620": "unknown"}


def test_of_two_clocks_nobody_knows_which_is_right(healthy: Facts) -> None:
    found = judge(healthy, with_node(view_of(2), "n2", clock_s=-7.0))

    assert found["AG628"].says == "the clocks of n1 and n2 differ"


def test_in_a_lan_without_ipv4_a_module_that_finds_nobody_is_a_warning(healthy: Facts) -> None:
    view = view_of()
    for number in (1, 2, 3):
        view = with_node(view, f"n{number}", address=f"fd00::{number}", networks=())
    view = with_way(view, "n2", "n3", lambda p: replace(p, glibc=NO))

    assert bad(judge(healthy, view)) == {"AG624": "warn"}


def test_a_doctor_that_is_announced_and_cannot_be_reached_needs_no_second_start(healthy: Facts) -> None:
    view = without_doctor(view_of(), "n3")
    (node_3,) = [n for n in view.nodes if n.name == "n3"]
    unreached = replace(node_3, silence="unreached", host="n3.local")
    view = replace(view, nodes=tuple(unreached if n is node_3 else n for n in view.nodes))

    hint = judge(healthy, view)["AG620"].hint

    assert "firewall" in hint and "--serve" not in hint
