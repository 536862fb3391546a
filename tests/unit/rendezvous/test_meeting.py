"""How a node finds its leader: looking, greeting, hello, redirect, refusal."""

from __future__ import annotations

from dataclasses import replace

from avahi_gpu.rendezvous import messages as m
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.core import GREET_AFTER_S, HELLO_S, WELCOME_S
from tests.unit.rendezvous.desk import (
    NINE,
    ONE,
    SEVEN,
    TWO,
    Desk,
    leader_of_three,
    node,
    record,
)


class TestTheWayToALeader:
    def test_a_job_of_one_node_starts_by_itself(self) -> None:
        desk = Desk(5, 1, 1)
        desk.want()
        token = desk.lead_round()

        assert [d.round.seats[0].id for d in desk.found(steps.Deliver)] == [desk.own.id]
        assert (token.epoch, token.leader) == (1, desk.own.id)

    def test_a_better_candidate_is_joined(self) -> None:
        desk = Desk(5)
        desk.want()
        desk.feed(steps.Seen(ONE))

        assert desk.found(steps.Open) == [steps.Open(ONE)]
        desk.feed(steps.Opened(1, ONE.id, desk.own.address))
        assert [h.greet for h in desk.sent(m.Hello, 1)] == [False]
        desk.receive(1, m.Welcome(record(ONE), 6))
        assert [(r.mesh_port, r.epoch) for r in desk.sent(m.Ready, 1)] == [(41000, 6)]
        assert desk.agreement.leader_host == "node-1"

    def test_a_worse_candidate_is_waited_for_and_then_greeted(self) -> None:
        desk = Desk(5)
        desk.feed(steps.Seen(SEVEN))
        assert desk.found(steps.Open) == []

        desk.wait(GREET_AFTER_S)
        assert desk.found(steps.Open) == [steps.Open(SEVEN)]
        desk.feed(steps.Opened(1, SEVEN.id, desk.own.address))
        assert [h.greet for h in desk.sent(m.Hello, 1)] == [True]

    def test_candidates_are_tried_in_parallel_when_the_best_does_not_answer(self) -> None:
        desk = Desk(5)
        desk.feed(steps.Seen(ONE))
        desk.feed(steps.Seen(TWO))

        assert steps.Open(TWO) in desk.wait(1.4)

    def test_a_dead_candidate_does_not_hold_up_a_round(self) -> None:
        """A stale record costs less than a connect timeout."""
        desk = Desk(5, 2, 2)
        desk.want()
        desk.feed(steps.Seen(ONE))
        desk.join_up(SEVEN)

        assert any(isinstance(a, steps.Reserve) for a in desk.wait(0.5))

    def test_a_silent_candidate_is_given_up(self) -> None:
        desk = Desk(5)
        desk.feed(steps.Seen(ONE))
        desk.feed(steps.Opened(1, ONE.id, desk.own.address))
        desk.wait(WELCOME_S)

        assert steps.Drop(1) in desk.last
        assert desk.agreement.core.candidates.best(desk.now) == desk.own

    def test_a_follower_sends_newcomers_to_its_leader(self) -> None:
        desk = Desk(5)
        desk.follow(ONE)
        conn = desk.accept(NINE)

        assert [(r.leader.id, r.by and r.by.id) for r in desk.sent(m.Redirect, conn)] == [
            (ONE.id, desk.own.id)
        ]
        assert steps.Drop(conn) in desk.last

    def test_a_redirect_is_followed_although_ones_own_order_says_otherwise(self) -> None:
        """A wrong record must not send a node in circles: node 1 follows node 7, whatever we think of it."""
        desk = Desk(8)
        desk.feed(steps.Seen(ONE))
        desk.feed(steps.Opened(1, ONE.id, desk.own.address))
        desk.receive(1, m.Redirect(record(SEVEN), record(ONE)))

        assert desk.found(steps.Open) == [steps.Open(SEVEN)]

    def test_a_redirect_to_a_leader_that_was_lost_is_tried_but_holds_nobody_up(self) -> None:
        desk = Desk(5)
        conn = desk.follow(ONE)
        desk.feed(steps.Lost(conn, "reset"))
        desk.feed(steps.Seen(TWO))
        desk.feed(steps.Opened(9, TWO.id, desk.own.address))
        desk.receive(9, m.Redirect(record(ONE), record(TWO)))

        assert desk.found(steps.Open) == [steps.Open(ONE)]
        assert desk.agreement.core.candidates.best(desk.now) == desk.own
        desk.wait(0.35)
        assert steps.Open(TWO) in desk.last, "perhaps node 2 has noticed by now"

    def test_the_leader_hands_its_members_over_to_a_better_one(self) -> None:
        desk = Desk(5)
        member = desk.join_up(SEVEN)
        desk.follow(ONE)

        assert [r.leader.id for r in desk.sent(m.Redirect, member)] == [ONE.id]
        assert steps.Drop(member) in desk.last

    def test_a_leader_with_the_larger_round_takes_over_a_smaller_one(self) -> None:
        desk, _seven, _eight, token = leader_of_three()
        desk.accept(node(9, size=4), greet=True)

        assert desk.found(steps.Over)
        assert [r.token for r in desk.sent(m.Regroup)] == [token, token]
        assert [r.leader.id for r in desk.sent(m.Redirect)] == [NINE.id]

    def test_a_leader_with_the_smaller_round_is_told_who_leads(self) -> None:
        desk, *_ = leader_of_three()
        conn = desk.accept(ONE, greet=True)

        assert not desk.found(steps.Over)
        assert [(r.leader.id, r.leader.size) for r in desk.sent(m.Redirect, conn)] == [(desk.own.id, 3)]

    def test_a_better_name_alone_does_not_disturb_a_running_round(self) -> None:
        desk, *_ = leader_of_three()
        desk.feed(steps.Seen(ONE))
        desk.keep_alive(3, 1, 2, token=desk.agreement.core.token)

        assert not any(isinstance(a, steps.Over) for a in desk.all)

    def test_a_late_answer_to_a_greeting_does_not_end_the_round_of_a_follower(self) -> None:
        desk = Desk(5, 2, 3)
        desk.want()
        desk.feed(steps.Seen(SEVEN))
        desk.wait(GREET_AFTER_S)
        desk.feed(steps.Opened(50, SEVEN.id, desk.own.address))
        conn = desk.follow(ONE)
        desk.run_under(ONE, conn)
        desk.receive(50, m.Redirect(record(node(9, size=3)), record(SEVEN)))

        assert desk.last == [steps.Drop(50)]

    def test_another_start_behind_a_known_port_is_recognised(self) -> None:
        desk = Desk(5)
        old = node(1)
        desk.feed(steps.Seen(old))
        desk.feed(steps.Opened(1, old.id, desk.own.address))
        newer = node(0xF, host="node-1")
        desk.receive(1, m.Welcome(record(newer)))

        assert desk.agreement.following.candidate == replace(newer, address=old.address)
        assert old.id not in desk.agreement.core.candidates.known

    def test_who_leads_is_sought_where_it_was_seen_and_not_where_others_reach_it(self) -> None:
        """They may have a cable of their own between them."""
        desk = Desk(5)
        one, two = node(1), node(2)
        for other in (one, two):
            desk.feed(steps.Seen(other))
        elsewhere = replace(one, address="10.9.0.1")
        for conn, other in enumerate((two, one)):
            desk.feed(steps.Opened(conn, other.id, desk.own.address))
            desk.receive(conn, m.Redirect(record(elsewhere), record(replace(other, address="10.9.0.2"))))

            assert desk.agreement.core.candidates.known[one.id].address == one.address

    def test_who_is_not_seen_is_sought_where_the_others_say(self) -> None:
        desk = Desk(5)
        desk.feed(steps.Seen(node(2)))
        desk.feed(steps.Opened(1, node(2).id, desk.own.address))
        desk.receive(1, m.Redirect(record(node(1)), record(node(2))))

        assert desk.agreement.core.candidates.known[node(1).id] == node(1)

    def test_strangers_that_say_nothing_are_dropped(self) -> None:
        desk = Desk(5)
        desk.feed(steps.Accepted(1, desk.own.address, "10.77.0.66"))
        desk.wait(HELLO_S)

        assert steps.Drop(1) in desk.last

    def test_a_node_that_asks_itself_gets_an_answer(self) -> None:
        desk = Desk(5)
        conn = desk.accept(desk.own)

        assert desk.sent(m.Refuse, conn)

    def test_who_asks_for_the_job_is_told(self) -> None:
        desk = Desk(5)
        for conn, job in ((1, "job"), (2, "other")):
            desk.feed(steps.Accepted(conn, desk.own.address, "10.77.0.66"))
            desk.receive(conn, m.Who(job, "default"))
            assert bool(desk.sent(m.Here, conn)) == (job == "job")
            assert steps.Drop(conn) in desk.last


class TestRefusals:
    def test_a_mismatch_is_refused_for_good_with_both_values(self) -> None:
        desk = Desk(5, skills=m.Skills(torch="2.13.0"))
        conn = desk.accept(SEVEN, skills=m.Skills(torch="2.12.0"))
        refusal = desk.sent(m.Refuse, conn)[0]

        assert refusal.final
        assert "2.12.0" in refusal.reason
        assert "2.13.0" in refusal.reason
        assert refusal.reason in desk.told(), "the leader tells it too"
        assert desk.agreement.leading.roster.members == {}

    def test_whoever_is_refused_again_and_again_is_told_of_once_and_remembered_at_the_end(self) -> None:
        desk = Desk(5, skills=m.Skills(python="3.11"), join_timeout_s=20.0)
        desk.want()
        for _ in range(3):
            desk.accept(SEVEN, skills=m.Skills(python="3.10"))
        desk.wait(21.0)

        assert desk.told().count("node-7 has Python 3.10") == 1
        ends = [a.reason for a in desk.all if isinstance(a, steps.End)]
        assert "node-7 has Python 3.10, node-5 has Python 3.11" in ends[0]

    def test_another_script_is_told_on_both_sides(self) -> None:
        leader, member = Desk(5, skills=m.Skills(digest="aa")), Desk(7, skills=m.Skills(digest="bb"))
        conn = leader.accept(SEVEN, skills=m.Skills(digest="bb"))
        welcome = leader.sent(m.Welcome, conn)[0]
        member.feed(steps.Seen(leader.own))
        member.feed(steps.Opened(1, leader.own.id, member.own.address))
        member.receive(1, welcome)

        for desk in (leader, member):
            assert "warning: the training script on node-7 differs from the one on node-5" in desk.told()

    def test_a_final_refusal_ends_the_node_with_its_reason(self) -> None:
        desk = Desk(5)
        desk.feed(steps.Seen(ONE))
        desk.feed(steps.Opened(1, ONE.id, desk.own.address))
        desk.receive(1, m.Refuse("torch 2.12 here, 2.13 there", final=True))

        assert [e.reason for e in desk.found(steps.End)] == [
            "node-1 (10.77.0.1) refuses this node: torch 2.12 here, 2.13 there"
        ]

    def test_a_port_of_another_job_is_no_reason_to_end(self) -> None:
        """A stale record, and another job took the port."""
        desk = Desk(5)
        desk.feed(steps.Seen(ONE))
        desk.feed(steps.Opened(1, ONE.id, desk.own.address))
        desk.receive(1, m.Refuse("this port is of job 'other', not of 'job'"))

        assert not desk.found(steps.End)
        assert desk.agreement.core.candidates.best(desk.now) == desk.own

    def test_a_node_of_another_job_never_becomes_a_candidate(self) -> None:
        desk = Desk(5)
        conn = desk.accept(ONE, job="other")

        assert [r.final for r in desk.sent(m.Refuse, conn)] == [False]
        assert desk.agreement.core.candidates.known == {}
