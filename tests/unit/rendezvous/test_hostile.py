"""Anybody may say anything, in any order and role: nothing breaks, nothing runs that was not agreed."""

from __future__ import annotations

import os

from hypothesis import given, settings
from hypothesis import strategies as st

from avahi_gpu.rendezvous import messages as m
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.core import EPOCH_LEAP, TELL_BURST
from avahi_gpu.rendezvous.election import CANDIDATES_MAX, Candidate
from tests.unit.rendezvous.desk import Desk, hello, node
from tests.unit.rendezvous.strategies import addresses, anything, hosts, ids, ports, texts, tokens

MORE = int(os.environ.get("AVAHI_GPU_EXAMPLES", "1"))  # times as many examples, for a long run

conns = st.integers(1, 6)
candidates = st.builds(Candidate, ids, hosts, addresses, ports, st.integers(-1, 1), st.integers(0, 3))
unreached = st.lists(st.tuples(ids, texts), max_size=2).map(tuple)
what_happens = st.one_of(
    st.builds(steps.Received, conns, anything()),
    st.builds(steps.Received, conns, anything()),
    st.builds(steps.Received, conns, anything()),
    st.builds(steps.Accepted, conns, addresses, addresses),
    st.builds(steps.Opened, conns, ids, addresses),
    st.builds(steps.OpenFailed, ids, texts),
    st.builds(steps.Lost, conns, texts),
    st.builds(steps.Seen, candidates),
    st.builds(steps.Unseen, ids),
    st.builds(steps.MeshDone, tokens, unreached),
    st.builds(steps.Reserved, tokens, ports, ports),
    st.just("the agent does what it has to"),
    st.just("the mesh test of the last proposal succeeds"),
    st.just("an earlier message is said again"),
    st.floats(0, 8),
)


class Witness:
    """Checks what a node does whatever it hears."""

    def __init__(self) -> None:
        self.desk = Desk(5, 1, 3)
        self.desk.feed(steps.Tick())
        self.waiting = self.running = False
        self.promised: set[m.Token] = set()
        self.open: set[int] = set()
        self.heard: list[m.Message] = []
        self.tests: list[m.Token] = []
        self.reserves: list[m.Token] = []

    def happen(self, what: object) -> None:
        desk = self.desk
        if isinstance(what, float):
            self.judge(desk.wait(what))
        elif isinstance(what, str):
            self.act(what)
        elif isinstance(what, steps.Accepted | steps.Opened):
            if what.conn not in self.open:  # the driver numbers connections once
                self.open.add(what.conn)
                self.judge(desk.feed(what))
        elif isinstance(what, steps.Event):
            if isinstance(what, steps.Received):
                self.heard.append(what.message)
            if isinstance(what, steps.Lost):
                self.open.discard(what.conn)
            if isinstance(what, steps.MeshDone) and not what.unreachable:
                self.promised.add(what.token)
            self.judge(desk.feed(what))
        now = desk.now
        assert desk.agreement.deadline() > now, "a busy loop"
        assert len(desk.agreement.core.candidates.known) <= CANDIDATES_MAX

    def act(self, what: str) -> None:
        desk = self.desk
        if what.startswith("the agent") and not self.waiting:
            self.waiting, self.running = True, False
            self.judge(desk.want())
        elif what.startswith("the mesh") and self.reserves:
            self.judge(desk.feed(steps.Reserved(self.reserves[-1], 30000, 29500)))
            if self.tests:
                self.promised.add(self.tests[-1])
                self.judge(desk.feed(steps.MeshDone(self.tests[-1])))
        elif what.startswith("the mesh") and self.tests:
            self.promised.add(self.tests[-1])
            self.judge(desk.feed(steps.MeshDone(self.tests[-1])))
        elif self.heard and self.open:
            self.judge(desk.feed(steps.Received(min(self.open), self.heard[len(self.heard) // 2])))

    def judge(self, actions: list[steps.Action]) -> None:
        for action in actions:
            match action:
                case steps.Send(conn, message):
                    assert m.decode(m.encode(message), "self")
                    if isinstance(message, m.Ack):
                        assert self.waiting
                        assert not self.running
                case steps.Drop(conn):
                    assert conn in self.open, "dropped twice"
                    self.open.discard(conn)
                case steps.TestMesh(token):
                    assert self.waiting
                    assert not self.running
                    self.tests.append(token)
                case steps.Reserve(token):
                    self.reserves.append(token)
                case steps.Deliver(round):
                    assert self.waiting
                    assert not self.running
                    assert round.token in self.promised
                    assert round.own.id == self.desk.own.id
                    assert round.seats[0].id == round.token.leader
                    self.waiting, self.running = False, True
                case steps.Over():
                    assert self.running
                    self.running = False


@settings(max_examples=250 * MORE, deadline=None)
@given(st.lists(what_happens, max_size=40))
def test_whatever_is_said_to_a_lone_node(happenings: list[object]) -> None:
    witness = Witness()
    for what in happenings:
        witness.happen(what)


@settings(max_examples=150 * MORE, deadline=None)
@given(st.lists(what_happens, max_size=30))
def test_whatever_is_said_to_a_member(happenings: list[object]) -> None:
    witness = Witness()
    witness.open.add(1)
    witness.happen("the agent does what it has to")
    conn = witness.desk.follow(node(1))
    assert conn == 1
    for what in happenings:
        witness.happen(what)


@settings(max_examples=150 * MORE, deadline=None)
@given(st.lists(what_happens, max_size=30))
def test_whatever_is_said_to_a_leader_in_its_round(happenings: list[object]) -> None:
    witness = Witness()
    desk = witness.desk
    desk.want()
    witness.waiting = True
    members = desk.join_up(node(7)), desk.join_up(node(9))
    witness.open |= set(members)
    token = desk.lead_round(*members)
    witness.promised.add(token)
    witness.waiting, witness.running = False, True
    for what in happenings:
        witness.happen(what)


def test_a_crowd_of_members_is_bounded() -> None:
    desk = Desk(5)
    for number in range(100, 300):
        desk.accept(node(number))

    assert len(desk.agreement.leading.roster.members) <= m.MEMBERS_MAX
    assert desk.sent(m.Refuse)


def test_nobody_uses_up_the_epochs() -> None:
    desk = Desk(5, 2, 2)
    desk.want()
    desk.join_up(node(7), epoch=2**53)
    leading = Desk(5, 2, 2)
    leading.want()
    conn = leading.follow(node(1), epoch=2**53)
    leading.receive(conn, leading.prepare(node(1), 2**53))

    assert desk.agreement.core.epoch == EPOCH_LEAP + 1
    assert leading.agreement.core.epoch == EPOCH_LEAP
    assert leading.sent(m.Nack)


def test_a_leader_that_never_stops_talking_is_shown_once_a_second_and_the_last_word_comes() -> None:
    desk = Desk(5)
    conn = desk.follow(node(1))
    told = 0
    for number in range(5000):
        told += len(
            [t for t in desk.receive(conn, m.Waiting((f"evil-{number}",), 2, 2, "obey")) if is_told(t)]
        )
        told += len([t for t in desk.receive(conn, m.Abort(m.Token(9, "0" * 16), str(number))) if is_told(t)])
        told += len([t for t in desk.wait(0.001) if is_told(t)])

    assert TELL_BURST <= told <= TELL_BURST + 5 + 2
    last = [t for t in desk.wait(1.5) if isinstance(t, steps.Tell)]
    assert [t.present for t in last] == [("evil-4999",)]


def is_told(action: steps.Action) -> bool:
    return isinstance(action, steps.Tell)


def test_who_ends_or_refuses_is_named_with_its_address() -> None:
    desk = Desk(5)
    conn = desk.follow(node(1))

    desk.receive(conn, m.Bye("failed", "you have lost"))

    assert "node-1 (10.77.0.1), the leader, ends the job" in [t.text for t in desk.found(steps.Tell)]

    desk = Desk(5)
    conn = desk.follow(node(1))
    desk.receive(conn, m.Refuse("go away"))
    assert "node-1 (10.77.0.1), the leader, sends this node away: go away" in [
        t.text for t in desk.found(steps.Tell)
    ]


def test_a_stranger_cannot_take_the_place_of_a_member_elsewhere() -> None:
    """The same id from another address drops the older connection: never two seats."""
    desk = Desk(5, 2, 3)
    desk.want()
    first = desk.join_up(node(7))
    desk.feed(steps.Accepted(90, desk.own.address, "10.77.0.66"))
    desk.receive(90, hello(node(7)))

    assert steps.Drop(first) in desk.last
    assert len(desk.agreement.leading.roster.members) == 1
