"""Ends of every kind, and messages that do not fit the role of their sender."""

from __future__ import annotations

import pytest

from avahi_gpu.rendezvous import messages as m
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.agreement import ALONE_HINT, START_HINT
from avahi_gpu.rendezvous.terms import JOIN_TIMEOUT_S
from tests.unit.rendezvous.desk import (
    NINE,
    ONE,
    SEVEN,
    Desk,
    hello,
    leader_of_three,
    member_of_one,
    node,
    record,
)


class TestLeaving:
    def test_a_member_that_has_finished_leaves_the_round_alone(self) -> None:
        desk, seven, eight, token = leader_of_three()
        desk.receive(seven, m.Bye("finished"))
        desk.keep_alive(10, eight, token=token)

        assert not any(isinstance(a, steps.Over | steps.End) for a in desk.all)

    def test_a_member_that_leaves_makes_the_others_regroup(self) -> None:
        desk, seven, *_ = leader_of_three()
        desk.receive(seven, m.Bye("left", "Ctrl-C"))

        assert [o.reason for o in desk.found(steps.Over)] == ["node-7 left (Ctrl-C)"]

    def test_a_member_that_failed_ends_the_job_everywhere(self) -> None:
        desk, seven, eight, _ = leader_of_three()
        desk.receive(seven, m.Bye("failed", "its script failed on node-7"))

        assert ["node-7" in e.reason for e in desk.found(steps.End)] == [True]
        assert [b.outcome for b in desk.sent(m.Bye, eight)] == ["failed"]
        assert "node-7" in desk.sent(m.Bye, eight)[0].detail

    def test_a_spare_that_failed_ends_nothing(self) -> None:
        desk, *_ = leader_of_three()
        spare = desk.join_up(NINE)
        desk.receive(spare, m.Bye("failed", "no disk"))

        assert not any(isinstance(a, steps.Over | steps.End) for a in desk.all)

    @pytest.mark.parametrize("outcome", ["finished", "failed", "left"])
    def test_the_end_of_a_leader_is_said_to_all_and_nothing_after_it(self, outcome: str) -> None:
        desk, seven, eight, _ = leader_of_three()
        desk.feed(steps.Closed(outcome, "bye"))

        assert {s.conn: s.message for s in desk.found(steps.Send)} == {
            seven: m.Bye(outcome, "bye"),
            eight: m.Bye(outcome, "bye"),
        }
        assert {steps.Drop(seven), steps.Drop(eight)} <= set(desk.last)
        assert [a for a in desk.wait(30.0) if not isinstance(a, steps.Tell)] == []

    def test_a_node_that_has_ended_refuses_newcomers(self) -> None:
        desk = Desk(5)
        desk.feed(steps.Closed("left"))
        conn = desk.accept(SEVEN)

        assert desk.sent(m.Refuse, conn)

    def test_a_round_wanted_after_the_end_is_answered_with_the_end(self) -> None:
        desk, conn, _ = member_of_one()
        desk.receive(conn, m.Bye("failed", "enough"))
        desk.want()

        assert [e.reason for e in desk.found(steps.End)] == ["enough"]

    def test_waiting_ends_with_who_is_there(self) -> None:
        desk = Desk(5, 3, 3)
        desk.want()
        seven = desk.join_up(SEVEN)
        desk.keep_alive(JOIN_TIMEOUT_S, seven)
        ends = [a for a in desk.all if isinstance(a, steps.End)]

        assert len(ends) == 1
        assert "3 nodes are needed" in ends[0].reason
        assert "here: node-5, node-7" in ends[0].reason
        assert ends[0].hint

    def test_time_in_a_running_round_is_not_waiting(self) -> None:
        desk, conn, token = member_of_one()
        desk.keep_alive(JOIN_TIMEOUT_S + 10, conn, token=token)

        assert not any(isinstance(a, steps.End | steps.Over) for a in desk.all)


class TestMessagesOutOfPlace:
    WRONG_FROM_MEMBER = (
        m.Prepare(m.Token(9, SEVEN.id), (m.Seat(SEVEN.id, "x", "10.77.0.7", 1),), 1, 2),
        m.Commit(m.Token(9, SEVEN.id)),
        m.Abort(m.Token(1, node(5).id), "off"),
        m.Regroup(m.Token(1, node(5).id), "stop"),
        m.Redirect(record(NINE)),
        m.Welcome(record(NINE), 9),
        m.Waiting(("x",), 1, 2),
        m.Refuse("go away", final=True),
        hello(NINE),
        m.Here(record(NINE)),
    )

    @pytest.mark.parametrize("message", WRONG_FROM_MEMBER, ids=lambda x: type(x).__name__)
    def test_a_member_that_plays_the_leader_is_ignored(self, message: m.Message) -> None:
        desk, seven, _, token = leader_of_three()
        desk.receive(seven, message)

        assert [a for a in desk.last if not isinstance(a, steps.Send)] == []
        assert desk.agreement.core.token == token

    @pytest.mark.parametrize(
        "message",
        [
            m.Ack(m.Token(1, ONE.id)),
            m.Nack(m.Token(1, ONE.id), "no"),
            m.Ready(42000),
            hello(NINE),
            m.Welcome(record(NINE)),
        ],
        ids=lambda x: type(x).__name__,
    )
    def test_a_leader_that_plays_the_member_is_ignored(self, message: m.Message) -> None:
        desk, conn, token = member_of_one()
        desk.receive(conn, message)

        assert [a for a in desk.last if not isinstance(a, steps.Send)] == []
        assert desk.agreement.core.token == token

    @pytest.mark.parametrize(
        "message", [m.Beat(), m.Ready(1), m.Ack(m.Token(1, ONE.id))], ids=lambda x: type(x).__name__
    )
    def test_a_stranger_that_does_not_say_hello_is_dropped(self, message: m.Message) -> None:
        desk = Desk(5)
        desk.feed(steps.Accepted(1, desk.own.address, "10.77.0.66"))
        desk.receive(1, message)

        assert desk.last == [steps.Drop(1)]

    def test_messages_of_a_connection_that_is_gone_are_ignored(self) -> None:
        desk, seven, _, _token = leader_of_three()
        desk.feed(steps.Lost(seven, "reset"))
        desk.receive(seven, m.Ready(42000))
        desk.feed(steps.Lost(seven, "reset"))

        assert desk.last == []


def end_of_wait(desk: Desk) -> steps.End:
    desk.wait(desk.terms.join_timeout_s)
    return next(a for a in desk.all if isinstance(a, steps.End))


def test_a_wait_in_vain_names_those_that_cannot_join_as_its_reason_and_no_false_remedy() -> None:
    desk = Desk(5, 2, 3, join_timeout_s=20.0)
    desk.want()
    desk.feed(steps.Excluded("node-7", "node-7 (10.77.0.7) holds another cluster key"))
    assert [t.excluded for t in desk.found(steps.Tell)] == ["node-7"]

    end = end_of_wait(desk)
    assert end.reason.endswith("The last reason: node-7 (10.77.0.7) holds another cluster key.")
    assert end.hint == ""


def test_who_could_join_in_the_end_is_no_reason() -> None:
    desk = Desk(5, 3, 3, join_timeout_s=20.0)
    desk.want()
    desk.feed(steps.Excluded("node-7", "node-7 (10.77.0.7) holds another cluster key"))
    conn = desk.join_up(SEVEN)
    desk.keep_alive(20, conn)

    end = end_of_wait(desk)
    assert "cluster key" not in end.reason
    assert end.hint == START_HINT


def test_a_wait_without_any_other_node_ends_with_what_may_hide_them() -> None:
    desk = Desk(5, 2, 3, join_timeout_s=20.0)
    desk.want()

    assert end_of_wait(desk).hint == ALONE_HINT
    assert "--peers A,B" in ALONE_HINT
