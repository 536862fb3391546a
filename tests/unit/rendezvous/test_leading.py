"""How a leader proposes, begins and ends rounds."""

from __future__ import annotations

from avahi_gpu.rendezvous import messages as m
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.core import BEAT_S, PREPARE_S, RETRY_S, SUSPECT_S
from avahi_gpu.rendezvous.leading import BACK_S
from avahi_gpu.rendezvous.roster import READY_LIMIT_S
from avahi_gpu.rendezvous.terms import LAST_CALL_S
from tests.unit.rendezvous.desk import (
    EIGHT,
    NINE,
    SEVEN,
    Desk,
    hello,
    leader_of_three,
    node,
)


class TestLeading:
    def test_the_round_begins_only_after_the_last_promise(self) -> None:
        desk = Desk(5, 2, 3)
        desk.want()
        seven, eight = desk.join_up(SEVEN), desk.join_up(EIGHT)
        token = desk.lead_round(seven)
        desk.receive(seven, m.Ack(token))
        assert not any(isinstance(a, steps.Deliver) for a in desk.all)

        desk.receive(eight, m.Ack(token))
        assert {s.conn for s in desk.found(steps.Send) if isinstance(s.message, m.Commit)} == {seven, eight}
        assert [d.round.rank for d in desk.found(steps.Deliver)] == [0]

    def test_the_leader_promises_itself_like_the_others(self) -> None:
        desk = Desk(5, 2, 2)
        desk.want()
        conn = desk.join_up(SEVEN)
        token = desk.found(steps.Reserve)[0].token
        desk.feed(steps.Reserved(token, 30000, 29500))
        desk.receive(conn, m.Ack(token))
        assert not desk.found(steps.Deliver)

        desk.feed(steps.MeshDone(token))
        assert desk.found(steps.Deliver)

    def test_promises_of_other_rounds_do_not_count(self) -> None:
        desk = Desk(5, 2, 2)
        desk.want()
        conn = desk.join_up(SEVEN)
        token = desk.lead_round()
        for wrong in (m.Token(token.epoch - 1, desk.own.id), m.Token(token.epoch, SEVEN.id)):
            desk.receive(conn, m.Ack(wrong))
            assert not desk.found(steps.Deliver)

    def test_no_round_is_proposed_while_the_leaders_own_workers_live(self) -> None:
        desk = Desk(5, 2, 2)
        desk.join_up(SEVEN)

        assert not any(isinstance(a, steps.Reserve) for a in desk.all)

    def test_the_epoch_is_above_all_that_any_member_has_seen(self) -> None:
        desk = Desk(5, 2, 3)
        desk.want()
        desk.join_up(SEVEN, epoch=8)
        desk.receive(desk.accept(EIGHT), m.Ready(42000, 12))

        assert [r.token.epoch for r in desk.found(steps.Reserve)] == [13]

    def test_a_member_that_never_promises_is_dropped(self) -> None:
        desk = Desk(5, 2, 3)
        desk.want()
        seven, eight = desk.join_up(SEVEN), desk.join_up(EIGHT)
        desk.lead_round(seven)
        desk.keep_alive(PREPARE_S, seven, eight)

        assert steps.Drop(eight) in desk.last
        assert "no promise in time from node-8" in desk.told()

    def test_a_member_lost_during_a_proposal_ends_it_for_all(self) -> None:
        desk = Desk(5, 2, 3)
        desk.want()
        seven, eight = desk.join_up(SEVEN), desk.join_up(EIGHT)
        token = desk.lead_round(seven)
        desk.feed(steps.Lost(eight, "reset"))

        assert [a.token for a in desk.sent(m.Abort, seven)] == [token]
        assert "node-8 is gone" in desk.told()

    def test_whoever_becomes_ready_during_a_proposal_is_taken_in(self) -> None:
        desk = Desk(5, 2, 3)
        desk.want()
        seven = desk.join_up(SEVEN)
        desk.keep_alive(LAST_CALL_S, seven)
        token = desk.lead_round()
        eight = desk.join_up(EIGHT)

        assert [a.token for a in desk.sent(m.Abort, seven)] == [token]
        assert desk.found(steps.Reserve)
        desk.lead_round(seven, eight)
        assert [len(d.round.seats) for d in desk.found(steps.Deliver)] == [3]

    def test_before_a_round_a_members_loss_is_told_only_if_it_does_not_come_back(self) -> None:
        desk = Desk(5, 3, 3)
        desk.want()
        desk.feed(steps.Lost(desk.join_up(SEVEN), "its connection was closed"))
        again = desk.join_up(SEVEN)
        desk.keep_alive(2 * BACK_S, again)
        assert "is gone" not in desk.told()

        desk.feed(steps.Lost(again, "its connection was closed"))
        desk.wait(BACK_S)
        assert "node-7 is gone: its connection was closed" in desk.told()

    def test_a_lost_member_ends_the_round_for_all(self) -> None:
        desk, seven, eight, token = leader_of_three()
        desk.feed(steps.Lost(eight, "its connection was reset"))

        assert [o.reason for o in desk.found(steps.Over)] == ["node-8 is gone: its connection was reset"]
        assert desk.sent(m.Regroup, seven) == [m.Regroup(token, "node-8 is gone: its connection was reset")]

    def test_survivors_regroup_without_a_last_call(self) -> None:
        desk, seven, eight, token = leader_of_three()
        desk.feed(steps.Lost(eight, "reset"))
        desk.want()
        desk.receive(seven, m.Ready(42000, token.epoch))

        assert [r.token.epoch for r in desk.found(steps.Reserve)] == [token.epoch + 1]

    def test_a_silent_member_is_suspected_then_lost(self) -> None:
        desk, seven, eight, token = leader_of_three()
        desk.keep_alive(SUSPECT_S, seven, token=token)
        assert "node-8 has been silent for 3 s" in desk.told()
        assert not any(isinstance(a, steps.Over) for a in desk.all)

        desk.keep_alive(2 + BEAT_S, seven, token=token)
        assert [o.reason for o in desk.found(steps.Over)] == ["node-8 is lost: silent for 5 s"]
        assert steps.Drop(eight) in desk.last

    def test_a_member_that_does_not_run_the_round_is_lost(self) -> None:
        """Its commit was lost, or its workers run under another token: a beat tells."""
        desk, seven, eight, token = leader_of_three()
        for _ in range(12):
            desk.receive(seven, m.Beat(token))
            desk.receive(eight, m.Beat(None))
            desk.wait(1.0)

        assert any("node-8 does not run round" in a.reason for a in desk.all if isinstance(a, steps.Over))

    def test_failed_workers_of_a_member_regroup_everybody(self) -> None:
        desk, seven, eight, token = leader_of_three()
        desk.receive(seven, m.Ready(42000, token.epoch, "the script failed on node-7"))

        assert [o.reason for o in desk.found(steps.Over)] == ["the script failed on node-7"]
        assert desk.sent(m.Regroup, eight) == [m.Regroup(token, "the script failed on node-7")]
        assert not desk.sent(m.Regroup, seven), "it knows"

    def test_failed_workers_of_the_leader_regroup_the_others(self) -> None:
        desk, seven, eight, token = leader_of_three()
        desk.want("the script failed on node-5")

        assert not desk.found(steps.Over), "its own agent knows"
        assert (
            desk.sent(m.Regroup, seven)
            == desk.sent(m.Regroup, eight)
            == [m.Regroup(token, "the script failed on node-5")]
        )

    def test_workers_that_never_end_do_not_hold_up_the_others_for_ever(self) -> None:
        desk, seven, eight, token = leader_of_three()
        desk.want("the script failed")
        desk.receive(seven, m.Ready(42000, token.epoch))
        desk.keep_alive(READY_LIMIT_S + 1, seven, eight)

        assert any(isinstance(a, steps.Reserve) for a in desk.last)
        assert "node-8 is left out: its old workers did not end in time" in desk.told()

    def test_a_second_start_of_a_host_replaces_the_first(self) -> None:
        desk, seven, _eight, _ = leader_of_three()
        newer = node(0xAA, host="node-7")
        desk.feed(steps.Accepted(77, desk.own.address, SEVEN.address))
        desk.receive(77, hello(newer))

        assert steps.Drop(seven) in desk.last
        assert [o.reason for o in desk.found(steps.Over)] == ["node-7 started again"]
        assert desk.sent(m.Welcome, 77)

    def test_ranks_are_the_natural_order_of_hosts_behind_the_leader(self) -> None:
        desk = Desk(5, 4, 4)
        desk.want()
        for other in (node(10), node(9), node(6)):
            desk.join_up(other)
        token = desk.found(steps.Reserve)[0].token
        desk.feed(steps.Reserved(token, 30000, 29500))

        assert [s.host for s in desk.sent(m.Prepare)[0].seats] == ["node-5", "node-6", "node-9", "node-10"]

    def test_the_seat_of_a_member_is_the_address_that_it_came_from(self) -> None:
        desk = Desk(5, 2, 2)
        desk.want()
        desk.feed(steps.Accepted(1, "192.168.9.5", "192.168.9.7"))
        desk.receive(1, hello(SEVEN))
        desk.receive(1, m.Ready(42000))
        token = desk.found(steps.Reserve)[0]
        desk.feed(steps.Reserved(token.token, 30000, 29500))

        assert token.address == "192.168.9.5"
        assert [s.address for s in desk.sent(m.Prepare)[0].seats] == ["192.168.9.5", "192.168.9.7"]


class TestSparesAndGrowth:
    def test_beyond_the_largest_number_a_node_is_a_spare_and_told_so(self) -> None:
        desk, *_ = leader_of_three()
        spare = desk.join_up(NINE)

        assert not any(isinstance(a, steps.Over) for a in desk.all)
        assert "node-9 waits as a spare" in desk.told()
        desk.receive(spare, m.Ready(42000))
        assert not desk.found(steps.Over)

    def test_a_spare_takes_the_place_of_a_lost_member(self) -> None:
        desk, seven, eight, token = leader_of_three()
        spare = desk.join_up(NINE)
        desk.feed(steps.Lost(seven, "reset"))
        desk.want()
        desk.receive(eight, m.Ready(42000, token.epoch))
        desk.lead_round(eight, spare)

        assert [[s.host for s in d.round.seats] for d in desk.found(steps.Deliver)] == [
            ["node-5", "node-8", "node-9"]
        ]

    def test_below_the_largest_number_a_newcomer_makes_a_new_round(self) -> None:
        desk = Desk(5, 2, 3)
        desk.want()
        seven = desk.join_up(SEVEN)
        desk.keep_alive(LAST_CALL_S, seven)
        token = desk.lead_round(seven)
        eight = desk.join_up(EIGHT)

        assert [o.reason for o in desk.found(steps.Over)] == ["node-8 joins"]
        assert desk.sent(m.Regroup, seven) == [m.Regroup(token, "node-8 joins")]
        desk.want()
        desk.receive(seven, m.Ready(42000, token.epoch))
        desk.lead_round(seven, eight)
        assert [len(d.round.seats) for d in desk.found(steps.Deliver)] == [3]

    def test_a_newcomer_that_is_not_ready_disturbs_nobody(self) -> None:
        desk = Desk(5, 2, 3)
        desk.want()
        seven = desk.join_up(SEVEN)
        desk.keep_alive(LAST_CALL_S, seven)
        desk.lead_round(seven)
        desk.join_up(EIGHT, ready=False)

        assert not any(isinstance(a, steps.Over) for a in desk.all)


class TestABrokenMesh:
    def broken(self, desk: Desk, seven: int, eight: int) -> m.Token:
        """Node 7 and node 8 do not reach each other."""
        proposal = desk.agreement.leading.proposal
        assert proposal is not None
        token = proposal.token
        desk.feed(steps.Reserved(token, 30000, 29500))
        desk.feed(steps.MeshDone(token))
        desk.receive(seven, m.Nack(token, "node-7 cannot reach node-8: firewall?", (EIGHT.id,)))
        desk.receive(eight, m.Nack(token, "node-8 cannot reach node-7: firewall?", (SEVEN.id,)))
        return token

    def test_a_gap_is_told_to_everybody_and_tried_again(self) -> None:
        desk = Desk(5, 3, 3)
        desk.want()
        seven, eight = desk.join_up(SEVEN), desk.join_up(EIGHT)
        token = self.broken(desk, seven, eight)

        assert [a.token for a in desk.sent(m.Abort)] == [token, token]
        assert "node-7 cannot reach node-8: firewall?" in desk.told()
        assert "node-8 cannot reach node-7: firewall?" in desk.told()
        assert any(isinstance(a, steps.Reserve) for a in desk.keep_alive(RETRY_S + 1, seven, eight))

    def test_a_gap_that_stays_leaves_out_the_newcomer_where_the_rest_is_enough(self) -> None:
        desk = Desk(5, 2, 3)
        desk.want()
        seven, eight = desk.join_up(SEVEN), desk.join_up(EIGHT)
        self.broken(desk, seven, eight)
        desk.keep_alive(RETRY_S + 1, seven, eight)
        self.broken(desk, seven, eight)
        desk.keep_alive(LAST_CALL_S + 1, seven, eight)
        proposal = desk.agreement.leading.proposal

        assert proposal is not None
        assert len(proposal.order) == 2
        desk.lead_round(seven if SEVEN.id in proposal.order else eight)
        assert desk.found(steps.Deliver)
        desk.keep_alive(3, seven, eight, token=proposal.token)
        assert not any(isinstance(a, steps.Over) for a in desk.all), "it does not stop the others again"

    def test_a_port_that_cannot_be_reserved_is_tried_again(self) -> None:
        desk = Desk(5, 2, 2)
        desk.want()
        conn = desk.join_up(SEVEN)
        token = desk.found(steps.Reserve)[0].token
        desk.feed(steps.MeshDone(token, ((desk.own.id, "no port for the round: all taken"),)))

        assert "no port for the round" in desk.told()
        assert any(isinstance(a, steps.Reserve) for a in desk.keep_alive(RETRY_S + 1, conn))
