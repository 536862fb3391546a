"""The checks of other nodes: each names the node at fault and no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from avahi_gpu.checks.peers import restrict_peers
from avahi_gpu.checks.registry import run_checks
from avahi_gpu.model import Facts, Finding, Lookup, PeerFacts


def broken_peer(facts: Facts, **changed: object) -> Facts:
    """``facts`` with gpu-node-3 changed."""
    assert facts.peers is not None
    second, third = facts.peers
    return replace(facts, peers=(second, replace(third, **changed)))  # type: ignore[arg-type]


def cluster_findings(facts: Facts) -> dict[str, Finding]:
    return {f.id: f for f in run_checks(facts, only=("cluster",))}


def errors(facts: Facts) -> list[str]:
    return [f.id for f in run_checks(facts) if f.verdict == "error"]


def test_a_named_peer_that_is_not_listed_is_the_only_error(healthy: Facts) -> None:
    facts = replace(healthy, wanted_peers=("gpu-node-2", "gpu-node-7"))

    found = cluster_findings(facts)

    assert errors(facts) == ["AG601"]
    assert found["AG601"].says == "gpu-node-7 is not listed: nobody answers for that name"
    assert found["AG604"].verdict == "ok"  # the others are judged all the same


@pytest.mark.parametrize(
    "name", ["gpu-node-2", "GPU-Node-2", "gpu-node-2.local", "gpu-node-2.local.", "10.77.0.2"]
)
def test_a_peer_may_be_named_in_any_usual_way(name: str, healthy: Facts) -> None:
    assert cluster_findings(replace(healthy, wanted_peers=(name,)))["AG601"].verdict == "ok"


@pytest.mark.parametrize("name", ["gpu-node-1", "GPU-Node-1.local.", "10.77.0.1", "localhost", "127.0.0.1"])
def test_who_names_this_machine_among_its_peers_misses_nobody(name: str, healthy: Facts) -> None:
    alone = cluster_findings(restrict_peers(healthy, (name,)))
    among = restrict_peers(healthy, (name, "gpu-node-2"))

    assert alone["AG601"].verdict == "ok"
    assert among.wanted_peers == ("gpu-node-2",) and cluster_findings(among)["AG601"].verdict == "ok"


def test_a_name_that_avahi_had_to_give_up_is_another_machines(healthy: Facts) -> None:
    renamed = replace(healthy, daemon=replace(healthy.daemon, host_name="gpu-node-1-2"))

    assert restrict_peers(renamed, ("gpu-node-1.local",)).wanted_peers == ("gpu-node-1.local",)


def test_alone_on_the_lan_is_a_warning(healthy: Facts) -> None:
    found = cluster_findings(replace(healthy, peers=()))

    assert found["AG601"].verdict == "warn"
    assert {f.verdict for id, f in found.items() if id != "AG601"} == {"skip"}


def test_a_listed_peer_that_nobody_resolves(healthy: Facts) -> None:
    facts = broken_peer(
        healthy,
        address=None,
        host="",
        glibc=None,
        alive=None,
        speaks=None,
        resolve_error="timed out after 5 s",
    )

    found = cluster_findings(facts)

    assert errors(facts) == ["AG602"]
    assert found["AG602"].says.startswith("gpu-node-3 is listed")
    assert found["AG602"].evidence == ("gpu-node-3: timed out after 5 s",)


@pytest.mark.parametrize(
    ("rest", "word"),
    [
        ({"alive": True, "host_address": "10.77.0.3", "txt_missing": True}, "too large"),
        ({"alive": True, "host_address": "10.77.0.3"}, "nobody answers for its service"),
        ({"alive": False, "host_address": "10.77.0.3"}, "unplugged"),
        ({"alive": None, "speaks": True}, "publishes no address"),
    ],
)
def test_what_is_left_of_a_lost_peer_tells_why(rest: dict[str, object], word: str, healthy: Facts) -> None:
    lost = {"address": None, "host": "", "glibc": None, "speaks": None, "resolve_error": "nobody answers"}
    facts = broken_peer(healthy, **{**lost, **rest})

    assert errors(facts) == ["AG602"]
    assert word in cluster_findings(facts)["AG602"].says


@pytest.mark.parametrize("gone", [{"address": None, "alive": None}, {"alive": False, "cards": ()}])
def test_the_old_name_of_a_node_that_was_renamed_is_no_fault(gone: dict[str, object], healthy: Facts) -> None:
    assert healthy.peers is not None
    old = replace(healthy.peers[1], name="trainer", host="trainer.local", **gone)  # type: ignore[arg-type]

    assert errors(replace(healthy, peers=(*healthy.peers, old))) == []


def test_nodes_of_another_cluster_are_told_and_their_faults_are_their_own(healthy: Facts) -> None:
    facts = broken_peer(healthy, cluster="theirs", alive=False, cards=())

    found = cluster_findings(facts)

    assert errors(facts) == []
    assert found["AG613"].verdict == "info" and "gpu-node-3" in found["AG613"].says


def test_a_named_node_of_another_cluster_is_an_error(healthy: Facts) -> None:
    facts = replace(broken_peer(healthy, cluster="theirs"), wanted_peers=("gpu-node-3",))

    assert errors(facts) == ["AG613"]


def test_alone_in_a_cluster_is_a_warning(healthy: Facts) -> None:
    assert healthy.peers is not None
    facts = replace(healthy, peers=tuple(replace(p, cluster="theirs") for p in healthy.peers))

    assert cluster_findings(facts)["AG613"].verdict == "warn"


def test_a_peer_whose_cable_is_cut_is_one_error(healthy: Facts) -> None:
    """Avahi still knows its address, glibc no longer does: the cable is the cause, not glibc."""
    facts = broken_peer(healthy, alive=False, glibc=Lookup("gpu-node-3.local", (), 5.0, "timeout"))

    assert errors(facts) == ["AG604"]
    assert "gpu-node-3" in cluster_findings(facts)["AG604"].says


@pytest.mark.parametrize(
    ("cards", "alive", "word"),
    [
        ((), False, "no machine is at its address"),
        ((), None, "no machine is at its address"),
        (("02:00:00:00:00:03",), False, "firewall"),
        (None, False, "does not answer"),
    ],
)
def test_a_machine_that_is_off_is_told_from_one_behind_a_firewall(
    cards: tuple[str, ...] | None, alive: bool | None, word: str, healthy: Facts
) -> None:
    facts = broken_peer(healthy, alive=alive, cards=cards)

    assert errors(facts) == ["AG604"]
    assert word in cluster_findings(facts)["AG604"].says


def test_two_addresses_of_one_node_are_no_contradiction(healthy: Facts) -> None:
    lookup = Lookup("gpu-node-3.local", ("10.99.0.3",), 0.01)
    facts = broken_peer(healthy, glibc=lookup, glibc_alive=True, also=("10.77.0.3", "10.99.0.3"))

    assert cluster_findings(facts)["AG603"].verdict == "ok"


def test_where_nobody_is_at_any_address_this_machine_is_suspected_first(healthy: Facts) -> None:
    assert healthy.peers is not None
    facts = replace(healthy, peers=tuple(replace(p, alive=False, cards=()) for p in healthy.peers))

    assert errors(facts) == ["AG604"]
    assert "this machine is cut off from them" in cluster_findings(facts)["AG604"].says


def test_a_node_whose_avahi_is_silent_while_it_answers_is_an_error(healthy: Facts) -> None:
    assert errors(broken_peer(healthy, speaks=False)) == ["AG618"]
    assert errors(broken_peer(healthy, speaks=False, alive=False, cards=())) == ["AG604"]
    assert errors(broken_peer(healthy, speaks=None)) == []


def test_a_silent_peer_that_answers_elsewhere_has_moved(healthy: Facts) -> None:
    facts = broken_peer(healthy, alive=False, cards=(), elsewhere="10.77.0.33")

    assert errors(facts) == ["AG609"]
    assert "10.77.0.33" in cluster_findings(facts)["AG609"].evidence[0]


def test_a_peer_that_glibc_cannot_find(healthy: Facts) -> None:
    facts = broken_peer(healthy, glibc=Lookup("gpu-node-3.local", (), 0.01, "Name or service not known"))

    assert errors(facts) == ["AG603"]
    assert "gpu-node-3.local" in cluster_findings(facts)["AG603"].says


@pytest.mark.parametrize(
    ("lookup", "word"),
    [
        (Lookup("gpu-node-3.local", ("10.9.9.9",), 0.01), "different addresses"),
        (Lookup("gpu-node-3.local", ("10.77.0.3",), 6.1), "slow"),
    ],
)
def test_a_doubtful_answer_of_glibc_is_a_warning(lookup: Lookup, word: str, healthy: Facts) -> None:
    found = cluster_findings(broken_peer(healthy, glibc=lookup, glibc_alive=True))["AG603"]

    assert found.verdict == "warn" and word in found.says


@pytest.mark.parametrize(
    ("address", "alive"), [("10.9.9.9", False), ("10.77.0.2", True), ("10.77.0.1", True)]
)
def test_an_address_of_nobody_or_of_another_machine_is_an_error(
    address: str, alive: bool, healthy: Facts
) -> None:
    lookup = Lookup("gpu-node-3.local", (address,), 0.01)

    assert errors(broken_peer(healthy, glibc=lookup, glibc_alive=alive)) == ["AG603"]


def test_an_untested_peer_is_not_called_dead(healthy: Facts) -> None:
    assert healthy.peers is not None
    facts = replace(healthy, peers=tuple(replace(p, alive=None) for p in healthy.peers))

    assert cluster_findings(facts)["AG604"].verdict == "unknown"


@pytest.mark.parametrize("address", ["192.168.99.3", "2001:db8::3"])
def test_a_peer_of_another_subnet(address: str, healthy: Facts) -> None:
    facts = broken_peer(healthy, address=address, glibc=Lookup("gpu-node-3.local", (address,), 0.01))

    assert errors(facts) == ["AG605"]
    assert address in cluster_findings(facts)["AG605"].evidence[0]


@pytest.mark.parametrize("address", ["192.168.99.3", "169.254.3.4"])
def test_a_peer_beyond_a_router_works_and_is_warned_of(address: str, healthy: Facts) -> None:
    lookup = Lookup("gpu-node-3.local", (address,), 0.01)
    facts = broken_peer(healthy, address=address, glibc=lookup, gateway="10.77.0.254")

    assert errors(facts) == [] and cluster_findings(facts)["AG605"].verdict == "warn"
    assert errors(broken_peer(facts, alive=False)) == ["AG605"]


def test_an_address_that_a_machine_gave_itself_is_told_apart(healthy: Facts) -> None:
    facts = broken_peer(healthy, address="169.254.3.4", alive=False, glibc=None)

    assert errors(facts) == ["AG605"]
    assert "DHCP" in cluster_findings(facts)["AG605"].hint


def test_link_local_addresses_alone_are_of_no_use(healthy: Facts) -> None:
    facts = broken_peer(healthy, address="fe80::3", glibc=None)

    assert errors(facts) == ["AG608"]


def test_a_remembered_link_local_address_at_which_nobody_answers_is_no_word_on_the_nodes_addresses(
    healthy: Facts,
) -> None:
    facts = broken_peer(healthy, address="fe80::3", glibc=None, alive=False)

    assert errors(facts) == ["AG608"]
    assert "nobody answers" in cluster_findings(facts)["AG608"].says


def test_peers_nobody_looked_for_are_unknown_and_the_rest_is_skipped(healthy: Facts) -> None:
    found = cluster_findings(replace(healthy, peers=None))

    assert found["AG601"].verdict == "unknown"
    assert {f.verdict for id, f in found.items() if id != "AG601"} == {"skip"}


def test_a_peer_without_any_words_is_survived(healthy: Facts) -> None:
    silent = PeerFacts(name="", host="", address=None, interface=None)

    assert all("itself failed" not in f.says for f in run_checks(replace(healthy, peers=(silent,))))
