"""Judging what the firewall does, and what is offered to open it."""

from __future__ import annotations

from dataclasses import replace

from avahi_gpu.checks.registry import run_checks
from avahi_gpu.model import (
    Facts,
    Finding,
    Firewall,
    NetworkFacts,
    PacketFate,
    PacketKind,
    Wall,
    WallKind,
)
from tests.unit.checks.conftest import PACKET_KINDS

KINDS: dict[WallKind, set[PacketKind]] = {"mdns": {"mdns-in"}, "jobs": {"tcp-in", "tcp-high-in"}}


def walled(facts: Facts, *drops: PacketKind, because: str = "", **more: str) -> Facts:
    """A firewall that drops these kinds; ``keeper``, ``tool``."""
    tool = more.get("tool", "nft")
    table, chain = (("inet", "filter"), "input") if tool == "nft" else (("ip", "filter"), "INPUT")
    fates = tuple(
        PacketFate(k, "eth0", 4, "drop", because or f"rule about {k}", tool, table, chain)
        if k in drops
        else PacketFate(k, "eth0", 4, "pass")
        for k in PACKET_KINDS
    )
    keeper = more.get("keeper", "")
    zones = (("eth0", "public"),) if keeper == "firewalld" else ()
    walls = tuple(
        Wall(what, "in", "eth0", 4, "10.77.0.0/24", because or "a rule", tool, table, chain, by_policy=True)
        for what, kinds in KINDS.items()
        if set(drops) & kinds
    )
    firewall = Firewall(fates, keeper, zones, walls=walls, ports=((29500, 29999),))  # type: ignore[arg-type]
    return replace(facts, network=replace(facts.network, firewall=firewall))


def judged(facts: Facts) -> dict[str, Finding]:
    return {f.id: f for f in run_checks(facts)}


def errors(facts: Facts) -> list[str]:
    return [id for id, f in judged(facts).items() if f.verdict == "error"]


def test_an_open_firewall_is_fine(healthy: Facts) -> None:
    found = judged(walled(healthy))

    assert {found[id].verdict for id in ("AG204", "AG205", "AG206")} == {"ok"}


def test_a_host_that_drops_mdns_has_this_one_error_and_nothing_that_follows(healthy: Facts) -> None:
    deaf = replace(walled(healthy, "mdns-in"), peers=(), own_name=None, own_service=())

    assert errors(deaf) == ["AG204"]
    assert judged(deaf)["AG601"].verdict == "skip" and "AG204" in judged(deaf)["AG504"].says


def test_one_rule_that_drops_everything_is_one_error(healthy: Facts) -> None:
    everything = walled(healthy, *PACKET_KINDS, because="inet filter input: policy drop")

    assert errors(everything) == ["AG204", "AG205"]


def test_a_rule_of_its_own_against_connections_is_an_error_of_its_own(healthy: Facts) -> None:
    assert errors(walled(healthy, "mdns-in", "tcp-in", "tcp-high-in")) == ["AG204", "AG206"]


def test_only_the_chosen_port_being_open_is_explained(healthy: Facts) -> None:
    found = judged(walled(healthy, "tcp-high-in"))["AG206"]

    assert found.verdict == "error" and "29500" in found.says and "32768" in found.says


def test_what_is_not_understood_is_not_guessed_and_spoils_nothing(healthy: Facts) -> None:
    facts = walled(healthy)
    assert facts.network.firewall is not None
    open_question = tuple(
        replace(p, outcome="unknown", because="rule x") for p in facts.network.firewall.fates
    )
    firewall = replace(facts.network.firewall, fates=open_question)
    network = replace(facts.network, firewall=firewall)
    heard = judged(replace(facts, network=network))
    found = judged(replace(facts, network=replace(network, hearing=())))

    assert [heard[id].verdict for id in ("AG204", "AG205", "AG206")] == ["ok", "ok", "unknown"]
    assert {found[id].verdict for id in ("AG204", "AG205", "AG206")} == {"unknown"}
    assert found["AG601"].verdict == "ok"


def test_rules_that_could_not_be_read_are_said_to_be_so(healthy: Facts) -> None:
    facts = replace(healthy, network=NetworkFacts(), unread={"network.firewall": "Unreadable: only root"})
    found = judged(facts)["AG204"]

    assert (found.verdict, "only root" in found.says) == ("unknown", True)


def test_our_own_way_out_is_not_opened_by_a_rule_for_others(healthy: Facts) -> None:
    found = judged(walled(healthy, "tcp-out"))["AG206"]

    assert (found.verdict, found.fix) == ("error", None) and found.hint


def test_a_firewall_that_drops_answers_too_is_opened_once_and_no_node_is_called_silent(
    healthy: Facts,
) -> None:
    facts = walled(healthy, "tcp-in", "tcp-high-in", "tcp-back", because="inet filter input: policy drop")
    dead = tuple(replace(p, alive=False, cards=("02:00:00:00:00:09",)) for p in facts.peers or ())
    found = judged(replace(facts, peers=dead))

    assert [id for id, f in found.items() if f.verdict == "error"] == ["AG206"]
    fix = found["AG206"].fix
    assert fix is not None and ["29500-29999" in c.argv for c in fix.changes] == [True]
    assert found["AG604"].verdict == "skip"


def test_answers_that_another_chain_drops_are_not_opened(healthy: Facts) -> None:
    facts = walled(healthy, "tcp-in", "tcp-back")
    assert facts.network.firewall is not None
    fates = tuple(
        replace(p, chain="other") if p.kind == "tcp-back" else p for p in facts.network.firewall.fates
    )
    firewall = replace(facts.network.firewall, fates=fates)

    found = judged(replace(facts, network=replace(facts.network, firewall=firewall)))["AG206"]

    assert found.verdict == "error" and found.fix is None
