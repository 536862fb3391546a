"""Where nodes are: the network of a proposal, the next one where its mesh has gaps, addresses that change."""

from __future__ import annotations

from avahi_gpu.rendezvous import messages as m
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.core import GAP_S, RETRY_S
from avahi_gpu.rendezvous.election import Candidate
from tests.unit.rendezvous.desk import EIGHT, ONE, SEVEN, Desk, hello, leader_of_three, member_of_one
from tests.unit.rendezvous.scenario import Scenario, together

FAST, LAN = "10.9.0", "10.77.0"


def networks(number: int, *nets: str) -> tuple[m.Attachment, ...]:
    """The cards of node ``number``, the fast one being eth1."""
    return tuple(
        m.Attachment(
            "eth1" if net == FAST else "eth0", f"{net}.{number}", 24, "wired", 10_000 * (net == FAST)
        )
        for net in nets
    )


def move(desk: Desk, *nets: str, asked: str = "") -> list[steps.Action]:
    return desk.feed(steps.Moved(desk.own.address, networks(5, *nets), asked))


def join(desk: Desk, other: Candidate, number: int, *nets: str, asked: str = "") -> int:
    conn = desk.accept(other)
    desk.receive(conn, m.Ready(42000, networks=networks(number, *nets), asked=asked))
    return conn


def fail_mesh(desk: Desk, *conns: int) -> None:
    """Nobody reaches anybody on the proposal's network."""
    proposal = desk.agreement.leading.proposal
    assert proposal is not None
    desk.feed(steps.Reserved(proposal.token, 30000, 29500))
    for conn, id in zip(conns, proposal.order[1:], strict=True):
        desk.receive(conn, m.Nack(proposal.token, f"{id} cannot reach node-5", (desk.own.id,)))
    desk.feed(steps.MeshDone(proposal.token, ((proposal.order[1], "node-5 cannot reach node-7"),)))


def test_a_round_is_proposed_on_the_fast_network_that_all_share() -> None:
    desk = Desk(5, 3, 3)
    move(desk, FAST, LAN)
    desk.want()
    join(desk, SEVEN, 7, LAN, FAST)
    join(desk, EIGHT, 8, FAST, LAN)

    (reserve,) = desk.found(steps.Reserve)
    assert reserve.address == "10.9.0.5"
    desk.feed(steps.Reserved(reserve.token, 30000, 29500))
    prepare = desk.sent(m.Prepare)[0]
    assert [s.address for s in prepare.seats] == ["10.9.0.5", "10.9.0.7", "10.9.0.8"]
    assert "all 3 nodes share" in prepare.why


def test_the_next_network_is_tried_at_once_where_the_mesh_has_gaps_and_the_reason_told() -> None:
    desk = Desk(5, 2, 2)
    move(desk, FAST, LAN)
    desk.want()
    seven = join(desk, SEVEN, 7, FAST, LAN)
    fail_mesh(desk, seven)

    assert [r.address for r in desk.found(steps.Reserve)] == ["10.77.0.5"]
    assert "cannot reach node-5" in desk.told()
    assert "trying 10.77.0.0/24 instead" in desk.told()
    desk.lead_round(seven)
    (delivered,) = desk.found(steps.Deliver)
    assert [s.address for s in delivered.round.seats] == ["10.77.0.5", "10.77.0.7"]


def test_a_regroup_of_the_same_nodes_does_not_pay_for_the_broken_network_again() -> None:
    desk = Desk(5, 2, 2)
    move(desk, FAST, LAN)
    desk.want()
    seven = join(desk, SEVEN, 7, FAST, LAN)
    fail_mesh(desk, seven)
    token = desk.lead_round(seven)
    ready = m.Ready(42000, token.epoch, "failed", networks(7, FAST, LAN))
    desk.receive(seven, ready)
    desk.want()
    assert [r.address for r in desk.found(steps.Reserve)] == ["10.77.0.5"]

    token = desk.lead_round(seven)
    desk.keep_alive(GAP_S, seven, token=token)
    desk.receive(seven, ready)
    desk.want()
    assert [r.address for r in desk.found(steps.Reserve)] == ["10.9.0.5"], "it may have been mended"


def test_where_all_networks_have_gaps_the_round_is_given_up_and_the_best_comes_first_again() -> None:
    desk = Desk(5, 2, 2)
    move(desk, FAST, LAN)
    desk.want()
    seven = join(desk, SEVEN, 7, FAST, LAN)
    fail_mesh(desk, seven)
    fail_mesh(desk, seven)

    assert not desk.found(steps.Reserve)
    again = desk.keep_alive(RETRY_S, seven)
    assert [a.address for a in again if isinstance(a, steps.Reserve)] == ["10.9.0.5"]
    fail_mesh(desk, seven)
    assert [r.address for r in desk.found(steps.Reserve)] == ["10.77.0.5"], "and the other one after it"


def test_users_who_ask_for_different_networks_are_told_on_every_node_and_the_job_waits() -> None:
    desk = Desk(5, 2, 2)
    move(desk, FAST, asked="--interface eth1")
    desk.want()
    seven = join(desk, SEVEN, 7, LAN, asked="--interface eth0")

    assert not desk.found(steps.Reserve)
    (waiting,) = [w for w in desk.sent(m.Waiting, seven) if w.note]
    assert "node-5 with --interface eth1" in waiting.note
    assert "node-7 with --interface eth0" in waiting.note
    assert waiting.note in desk.told()
    desk.keep_alive(3 * RETRY_S, seven)
    assert desk.told().count(waiting.note) == 1

    desk.receive(seven, m.Ready(42000, networks=networks(7, FAST)))
    assert any(isinstance(a, steps.Reserve) for a in desk.wait(RETRY_S))


def test_a_member_that_moves_tells_its_leader_and_is_seated_there() -> None:
    desk = Desk(5, 2, 3)
    desk.want()
    conn = desk.follow(ONE)
    move(desk, FAST, LAN)

    assert desk.sent(m.Ready, conn) == [m.Ready(41000, 0, "", networks(5, FAST, LAN))]
    assert move(desk, FAST, LAN) == [], "which is nothing new"


def test_a_member_that_moves_during_a_proposal_ends_it() -> None:
    desk = Desk(5, 2, 2)
    move(desk, LAN)
    desk.want()
    seven = join(desk, SEVEN, 7, LAN)
    token = desk.agreement.leading.proposal.token  # type: ignore[union-attr]
    desk.feed(steps.Reserved(token, 30000, 29500))
    desk.receive(seven, m.Ready(42000, networks=networks(77, LAN)))

    assert [a.token for a in desk.sent(m.Abort, seven)] == [token]
    later = desk.keep_alive(RETRY_S, seven)
    assert any(isinstance(a, steps.Reserve) for a in later)


def test_a_leader_that_moves_during_a_proposal_makes_another_at_once() -> None:
    desk = Desk(5, 2, 2)
    move(desk, LAN)
    desk.want()
    join(desk, SEVEN, 7, LAN)
    desk.feed(steps.Moved("10.77.0.55", networks(55, LAN), ""))

    assert [r.address for r in desk.found(steps.Reserve)] == ["10.77.0.55"]


def test_a_network_that_is_cut_under_a_running_round_ends_it_on_all_nodes() -> None:
    desk, conn, token = member_of_one()
    desk.feed(steps.Severed(token, "node-5 is cut off from node-1"))

    assert desk.sent(m.Nack, conn) == [m.Nack(token, "node-5 is cut off from node-1")]
    assert [o.reason for o in desk.found(steps.Over)] == ["node-5 is cut off from node-1"]

    leader, seven, eight, token = leader_of_three()
    leader.receive(seven, m.Nack(token, "node-7 is cut off from node-5"))

    assert [o.reason for o in leader.found(steps.Over)] == ["node-7 is cut off from node-5"]
    assert leader.sent(m.Regroup, eight) == [m.Regroup(token, "node-7 is cut off from node-5")]


def test_a_node_whose_address_in_the_round_is_gone_says_so() -> None:
    desk, _, _ = member_of_one()
    move(desk, LAN)
    assert "no longer" not in desk.told()

    desk.feed(steps.Moved("10.77.0.99", networks(99, LAN), ""))
    assert "node-5 has no longer the address 10.77.0.5 of the round" in desk.told()


def test_a_node_whose_own_cable_is_out_says_so_and_not_that_its_address_is_gone() -> None:
    desk, _, _ = member_of_one()
    move(desk, LAN)
    lack = "eth0 of this machine has no carrier: is its cable in?"
    desk.feed(steps.Moved(desk.own.address, (), "", ((desk.own.address, lack),)))

    assert lack in desk.told()
    assert "no longer" not in desk.told()


def test_a_cut_of_an_earlier_round_ends_nothing() -> None:
    desk, _, token = member_of_one()
    desk.feed(steps.Severed(m.Token(token.epoch - 1, token.leader), "late"))

    assert desk.last == []
    leader, seven, _, token = leader_of_three()
    leader.receive(seven, m.Nack(m.Token(token.epoch - 1, token.leader), "late"))
    assert not leader.found(steps.Over)


def test_a_hello_of_a_version_without_networks_is_seated_where_it_came_from() -> None:
    desk = Desk(5, 2, 2)
    move(desk, FAST, LAN)
    desk.want()
    desk.feed(steps.Accepted(1, "10.77.0.5", "10.77.0.7"))
    desk.receive(1, hello(SEVEN))
    desk.receive(1, m.Ready(42000))

    assert [r.address for r in desk.found(steps.Reserve)] == ["10.77.0.5"]


# --- on the model LAN --------------------------------------------------------------------------------------


def with_fast_cards(*without: int) -> Scenario:
    life = together(3, 4)
    for host in life.lan.hosts:
        host.fast = host.index not in without
    return life


def networks_used(life: Scenario) -> list[set[str]]:
    """The networks of each round that was formed."""
    return [{life.lan.network_of(s.address) for s in round.seats} for _, round in life.watch.formed]


def test_all_run_on_the_fast_network_if_all_have_it() -> None:
    life = with_fast_cards()
    life.lan.run(5.0)
    assert networks_used(life) == [{FAST}]

    life = with_fast_cards(2)
    life.lan.run(5.0)
    assert networks_used(life) == [{LAN}]


def test_a_fast_network_that_never_worked_costs_one_mesh_test() -> None:
    life = with_fast_cards()
    life.lan.fast_blocked = {(1, 3)}
    life.lan.run(6.0)

    assert networks_used(life) == [{LAN}]
    assert life.watch.overs == []


def test_a_fast_network_that_breaks_under_a_round_is_left_for_the_lan() -> None:
    life = with_fast_cards()
    life.lan.run(5.0)
    life.block_fast({(a, b) for a in range(4) for b in range(a)})
    life.lan.run(25.0)

    assert networks_used(life) == [{FAST}, {LAN}]
    assert "nothing comes from 10.9.0" in life.watch.overs[0][2]
