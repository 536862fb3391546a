"""What a member promises, and what it does when its leader goes."""

from __future__ import annotations

import pytest

from avahi_gpu.rendezvous import messages as m
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.core import BEAT_S, SUSPECT_S
from avahi_gpu.rendezvous.terms import LAST_CALL_S
from tests.unit.rendezvous.desk import (
    NINE,
    ONE,
    SEVEN,
    TWO,
    Desk,
    member_of_one,
)


class TestPromises:
    def test_a_promise_follows_the_mesh_test(self) -> None:
        desk = Desk(5)
        desk.want()
        conn = desk.follow(ONE)
        prepare = desk.prepare(ONE, 1)
        desk.receive(conn, prepare)

        assert [t.seats for t in desk.found(steps.TestMesh)] == [prepare.seats]
        assert not desk.sent(m.Ack)
        desk.feed(steps.MeshDone(prepare.token))
        assert desk.sent(m.Ack, conn) == [m.Ack(prepare.token)]

    def test_a_gap_in_the_mesh_is_no_promise_and_named(self) -> None:
        desk = Desk(5)
        desk.want()
        conn = desk.follow(ONE)
        prepare = desk.prepare(ONE, 1, SEVEN)
        desk.receive(conn, prepare)
        desk.feed(steps.MeshDone(prepare.token, ((SEVEN.id, "node-5 cannot reach node-7: firewall?"),)))

        assert desk.sent(m.Nack, conn) == [
            m.Nack(prepare.token, "node-5 cannot reach node-7: firewall?", (SEVEN.id,))
        ]
        desk.receive(conn, m.Commit(prepare.token))
        assert not desk.found(steps.Deliver)

    def test_nothing_is_promised_while_old_workers_live(self) -> None:
        desk, conn, _ = member_of_one()
        desk.receive(conn, m.Regroup(desk.agreement.core.token or m.Token(1, ONE.id), "node-7 joins"))
        assert desk.found(steps.Over)
        desk.receive(conn, desk.prepare(ONE, 2))

        assert not desk.found(steps.TestMesh)
        assert "have not ended" in desk.sent(m.Nack, conn)[0].reason
        desk.want()
        desk.receive(conn, desk.prepare(ONE, 3))
        assert desk.found(steps.TestMesh)

    @pytest.mark.parametrize("epoch", [0, 1, 3])
    def test_nothing_is_promised_below_an_epoch_that_was_seen(self, epoch: int) -> None:
        desk = Desk(5)
        desk.want()
        conn = desk.follow(ONE, epoch=3)
        desk.receive(conn, desk.prepare(ONE, epoch))

        assert desk.sent(m.Nack, conn)
        assert [r.epoch for r in desk.sent(m.Ready, conn)] == [3]
        assert not desk.found(steps.TestMesh)

    def test_nothing_is_promised_twice(self) -> None:
        desk = Desk(5)
        desk.want()
        conn = desk.follow(ONE)
        desk.receive(conn, desk.prepare(ONE, 1))
        desk.receive(conn, desk.prepare(ONE, 1))

        assert desk.sent(m.Nack, conn)

    def test_a_round_without_a_seat_for_us_or_of_somebody_else_is_not_promised(self) -> None:
        desk = Desk(5)
        desk.want()
        conn = desk.follow(ONE)
        right = desk.prepare(ONE, 1)
        without = m.Prepare(right.token, right.seats[:1], 1, 2)
        foreign = m.Prepare(m.Token(1, TWO.id), right.seats, 1, 2)
        second = m.Prepare(right.token, right.seats[::-1], 1, 2)
        for wrong in (without, foreign, second):
            desk.receive(conn, wrong)
            assert desk.sent(m.Nack, conn)
            assert not desk.found(steps.TestMesh)

    def test_a_promise_ends_with_its_abort(self) -> None:
        desk = Desk(5)
        desk.want()
        conn = desk.follow(ONE)
        prepare = desk.prepare(ONE, 1)
        desk.receive(conn, prepare)
        desk.feed(steps.MeshDone(prepare.token))
        desk.receive(conn, m.Abort(prepare.token, "node-7 is gone"))
        desk.receive(conn, m.Commit(prepare.token))

        assert not desk.found(steps.Deliver)
        assert "node-7 is gone" in desk.told()

    def test_a_promise_ends_with_its_leader(self) -> None:
        desk = Desk(5)
        desk.want()
        conn = desk.follow(ONE)
        prepare = desk.prepare(ONE, 1)
        desk.receive(conn, prepare)
        desk.feed(steps.Lost(conn, "reset"))
        desk.feed(steps.MeshDone(prepare.token))

        assert not desk.sent(m.Ack)
        assert not desk.found(steps.Deliver)

    def test_commits_of_other_rounds_are_ignored(self) -> None:
        desk = Desk(5)
        desk.want()
        conn = desk.follow(ONE)
        prepare = desk.prepare(ONE, 2)
        desk.receive(conn, m.Commit(prepare.token))
        assert not desk.found(steps.Deliver)
        desk.receive(conn, prepare)
        desk.receive(conn, m.Commit(m.Token(1, ONE.id)))
        assert not desk.found(steps.Deliver)

    def test_a_commit_that_is_said_again_starts_nothing(self) -> None:
        desk, conn, token = member_of_one()
        desk.receive(conn, m.Commit(token))

        assert not desk.found(steps.Deliver)

    def test_a_regroup_of_an_old_round_is_ignored(self) -> None:
        desk, conn, token = member_of_one()
        desk.receive(conn, m.Regroup(m.Token(token.epoch - 1, ONE.id), "old news"))

        assert not desk.found(steps.Over)


class TestLosingTheLeader:
    def test_a_reset_is_death_at_once(self) -> None:
        desk, conn, _ = member_of_one()
        desk.feed(steps.Lost(conn, "its connection was reset"))

        assert [o.reason for o in desk.found(steps.Over)] == [
            "node-1, the leader, is gone: its connection was reset"
        ]

    def test_silence_is_suspect_first_and_death_later(self) -> None:
        desk, conn, _ = member_of_one()
        desk.wait(SUSPECT_S)
        assert "node-1, the leader, has been silent for 3 s" in desk.told()
        assert not any(isinstance(a, steps.Over) for a in desk.all)
        desk.wait(2.0 + BEAT_S)

        assert [o.reason for o in desk.found(steps.Over)] == ["node-1, the leader, is lost: silent for 5 s"]
        assert steps.Drop(conn) in desk.last

    def test_a_silent_leader_is_asked_over_fresh_connections_and_an_answer_is_life(self) -> None:
        desk, conn, _ = member_of_one()
        asked = []
        for _ in range(3):
            desk.wait(2.5)
            asked += desk.found(steps.Ask)
            desk.feed(steps.Answered(conn))
        assert {(a.conn, a.id, a.address, a.port) for a in asked} == {(conn, ONE.id, ONE.address, ONE.port)}
        assert not any(isinstance(a, steps.Over) for a in desk.all)
        assert "silent" not in desk.told()

    def test_answers_do_not_keep_a_dead_connection_for_ever(self) -> None:
        desk, conn, _ = member_of_one()
        for _ in range(11):
            desk.feed(steps.Answered(conn))
            desk.wait(1.0)
        assert any(isinstance(a, steps.Over) for a in desk.all)

    def test_a_leader_that_counts_on_us_no_longer_is_left_at_once(self) -> None:
        desk, conn, _ = member_of_one()
        desk.wait(2.5)
        desk.feed(steps.Answered(conn, apart=True))
        assert [o.reason for o in desk.found(steps.Over)] == [
            "node-1, the leader, is gone: it goes on without node-5"
        ]
        assert steps.Drop(conn) in desk.last

    def test_who_asks_is_told_whether_it_is_counted_on(self) -> None:
        desk, _, _ = member_of_one()
        who = m.Who("job", "default", ONE.id)
        desk.feed(steps.Accepted(90, desk.own.address, ONE.address))
        desk.receive(90, who)
        assert [h.apart for h in desk.sent(m.Here, 90)] == [False]
        desk.feed(steps.Accepted(91, desk.own.address, NINE.address))
        desk.receive(91, m.Who("job", "default", NINE.id))
        assert [h.apart for h in desk.sent(m.Here, 91)] == [True]

    def test_the_survivor_leads_and_forms_without_the_dead(self) -> None:
        desk, conn, token = member_of_one()
        seven = desk.accept(SEVEN)
        assert desk.sent(m.Redirect, seven)
        desk.feed(steps.Lost(conn, "reset"))
        desk.want()
        desk.join_up(SEVEN)

        assert any(isinstance(a, steps.Reserve) for a in [*desk.last, *desk.wait(LAST_CALL_S)])
        assert desk.agreement.core.epoch == token.epoch + 1

    def test_a_leader_that_runs_another_round_ends_ours(self) -> None:
        desk, conn, token = member_of_one()
        desk.receive(conn, m.Beat(m.Token(token.epoch + 1, ONE.id)))

        assert [o.reason for o in desk.found(steps.Over)] == ["the leader runs another round"]

    def test_a_leader_that_leaves_is_not_asked_again(self) -> None:
        desk, conn, _ = member_of_one()
        desk.receive(conn, m.Bye("left"))

        assert [o.reason for o in desk.found(steps.Over)] == ["node-1, the leader, left"]
        assert ONE.id not in desk.agreement.core.candidates.known

    def test_a_leader_that_failed_ends_the_job_with_its_reason(self) -> None:
        desk, conn, _ = member_of_one()
        desk.receive(conn, m.Bye("failed", "its script failed on node-1"))

        assert [(e.reason, e.finished) for e in desk.found(steps.End)] == [
            ("its script failed on node-1", False)
        ]
        assert desk.found(steps.Over)

    def test_a_leader_that_has_finished_lets_the_others_finish(self) -> None:
        desk, conn, _ = member_of_one()
        desk.receive(conn, m.Bye("finished"))
        desk.feed(steps.Lost(conn, "closed"))
        desk.wait(20.0)

        assert not any(isinstance(a, steps.Over | steps.End) for a in desk.all)

    def test_workers_that_fail_after_the_leader_has_finished_end_the_node(self) -> None:
        desk, conn, _ = member_of_one()
        desk.receive(conn, m.Bye("finished"))
        desk.want("the script failed")

        assert [e.finished for e in desk.found(steps.End)] == [False]

    def test_a_spare_ends_well_with_the_job(self) -> None:
        desk = Desk(5)
        desk.want()
        conn = desk.follow(ONE)
        desk.receive(conn, m.Beat(m.Token(7, ONE.id)))  # a round runs, without us
        desk.receive(conn, m.Bye("finished"))

        assert [e.finished for e in desk.found(steps.End)] == [True]

    def test_a_job_that_was_never_seen_to_run_has_not_ended_well(self) -> None:
        desk = Desk(5)
        desk.want()
        conn = desk.follow(ONE)
        desk.receive(conn, m.Bye("finished"))

        assert [e.finished for e in desk.found(steps.End)] == [False]


class TestBeats:
    def test_a_member_beats_when_its_leader_does_and_not_by_itself_in_between(self) -> None:
        desk, conn, _ = member_of_one()
        token = desk.agreement.core.token
        desk.wait(0.75 * BEAT_S)
        desk.receive(conn, m.Beat(token))
        sent = []
        for _ in range(5):
            assert not [a for a in desk.wait(BEAT_S) if isinstance(a, steps.Send)]
            desk.receive(conn, m.Beat(token))
            sent += desk.sent(m.Beat, conn)
            desk.receive(conn, m.Beat(token))  # a second one in the same moment is no question
            sent += desk.sent(m.Beat, conn)
        assert [beat.token for beat in sent] == [token] * 5

    def test_a_member_whose_leader_does_not_beat_beats_by_itself(self) -> None:
        desk, conn, _ = member_of_one()
        desk.receive(conn, m.Beat(desk.agreement.core.token))
        beats = [
            a for a in desk.wait(4 * BEAT_S) if isinstance(a, steps.Send) and isinstance(a.message, m.Beat)
        ]

        assert len(beats) >= 3
