"""From services to peers: one for each node, whatever its TXT says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.host.peers import Sighting, count_present, describe_models, fellows, make_peers
from avahi_gpu.model import NODE_SERVICE, Gpu, Peer, Service

INTERFACES = {2: "eth0"}


def service(name: str, address: str = "192.0.2.1", *txt: bytes, own: bool = False) -> Service:
    return Service(name, NODE_SERVICE, 2, 4, f"{name}.local", address, 29500, txt, own)


def sighting(name: str, address: str, node: str, *, alive: bool | None = True, own: bool = False) -> Sighting:
    return Sighting(service(name, address, b"id=" + node.encode() * 12, own=own), alive, probed=True)


def names(peers: list[Peer]) -> list[str]:
    return [p.name for p in peers]


def test_a_peer_holds_what_the_node_says_of_itself() -> None:
    txt = (b"torch=2.13.0", b"vram=24564*2", b"gpu=RTX 4090", b"gpus=2", b"cluster=lab", b"id=0123456789ab")

    (peer,) = make_peers([Sighting(service("gpu-node-1", "192.0.2.1", *txt), True, True)], [], INTERFACES)

    assert (peer.id, peer.name, peer.host) == ("0123456789ab", "gpu-node-1", "gpu-node-1.local")
    assert (peer.address, peer.interface, peer.port, peer.alive) == ("192.0.2.1", "eth0", 29500, True)
    assert (peer.cluster, peer.gpus, peer.gpu, peer.vram_mib) == ("lab", 2, "RTX 4090", (24564, 24564))
    assert peer.versions.torch == "2.13.0"


def test_peers_stand_in_the_order_that_people_count() -> None:
    seen = [sighting(f"gpu-node-{n}", f"192.0.2.{n}", f"{n:x}"[-1]) for n in (10, 2, 1)]

    assert names(make_peers(seen, [], INTERFACES)) == ["gpu-node-1", "gpu-node-2", "gpu-node-10"]


def test_a_node_with_a_new_name_is_one_node() -> None:
    """Its old entry stays listed until its records run out."""
    seen = [sighting("old", "192.0.2.1", "a", alive=False), sighting("new", "192.0.2.1", "a")]

    assert names(make_peers(seen, [], INTERFACES)) == ["new"]
    assert names(make_peers(reversed(seen), [], INTERFACES)) == ["new"]


def test_two_entries_at_one_address_are_one_node() -> None:
    seen = [sighting("n", "192.0.2.1", "a"), sighting("n #2", "192.0.2.1", "a")]

    assert len(make_peers(seen, [], INTERFACES)) == 1


@pytest.mark.parametrize("alive", [True, False, None])
def test_clones_are_two_whether_they_answer_or_not(alive: bool | None) -> None:
    seen = [sighting("one", "192.0.2.1", "a"), sighting("two", "192.0.2.2", "a", alive=alive)]

    assert names(make_peers(seen, [], INTERFACES)) == ["one", "two"]


def test_this_machine_is_kept_among_entries_of_its_id() -> None:
    seen = [sighting("stale", "192.0.2.1", "a", alive=False), sighting("here", "192.0.2.1", "a", own=True)]

    (peer,) = make_peers(seen, [], INTERFACES)

    assert peer.self
    assert peer.name == "here"


def test_an_entry_without_id_is_shown_by_its_name() -> None:
    seen = [Sighting(service("by-hand"), True, True), Sighting(service("by-hand-2"), True, True)]

    peers = make_peers(seen, [], INTERFACES)

    assert [(p.id, p.name) for p in peers] == [("", "by-hand"), ("", "by-hand-2")]


def test_a_name_that_nobody_answers_for_is_listed_without_address() -> None:
    (peer,) = make_peers([], ["ghost"], INTERFACES)

    assert (peer.name, peer.address, peer.alive) == ("ghost", None, None)


def test_an_interface_that_has_gone_meanwhile_has_no_name() -> None:
    (peer,) = make_peers([sighting("n", "192.0.2.1", "a")], [], {})

    assert peer.interface is None


def test_the_silent_and_the_unresolved_do_not_count() -> None:
    seen = [
        sighting("here", "192.0.2.1", "a", own=True),
        sighting("yes", "192.0.2.2", "b"),
        sighting("untold", "192.0.2.3", "c", alive=None),
        sighting("no", "192.0.2.4", "d", alive=False),
    ]

    assert count_present(make_peers(seen, ["ghost"], INTERFACES)) == 3


def test_another_cluster_does_not_count_for_a_node_of_this_one() -> None:
    other = Sighting(service("other", "192.0.2.9", b"id=0123456789ab", b"cluster=other"), True, True)
    here = sighting("here", "192.0.2.1", "a", own=True)

    assert count_present(make_peers([here, other], [], INTERFACES)) == 1
    assert count_present(make_peers([other], [], INTERFACES)) == 1
    assert [p.name for p in fellows(make_peers([here, other], [], INTERFACES))] == ["here"]


@given(st.lists(st.tuples(st.text(max_size=80), st.lists(st.binary(max_size=60), max_size=8), st.booleans())))
def test_no_name_and_no_txt_breaks_it(entries: list[tuple[str, list[bytes], bool]]) -> None:
    seen = [Sighting(service(n, "192.0.2.1", *txt), alive, True) for n, txt, alive in entries]

    peers = make_peers(seen, [n for n, _, _ in entries], INTERFACES)

    assert len(peers) <= len(entries)
    assert {p.id for p in peers if p.id} == {p.id for p in make_peers(seen, [], INTERFACES) if p.id}


def test_models_are_counted_where_they_differ() -> None:
    a, b = Gpu("RTX 4090", 24564), Gpu("RTX 3090", 24576)

    assert describe_models([]) == ""
    assert describe_models([a, a]) == "RTX 4090"
    assert describe_models([a, b, a]) == "RTX 4090 (2), RTX 3090 (1)"
