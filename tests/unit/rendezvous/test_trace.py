"""The lines of AVAHI_GPU_LOG=debug: in order, bounded, printable, and without what is nobody's business."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.rendezvous import messages as m
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.election import Candidate, Candidates
from avahi_gpu.rendezvous.trace import Trace, describe_choice
from tests.unit.rendezvous import strategies
from tests.unit.rendezvous.desk import Desk, hello, node

TOKEN = m.Token(3, node(5).id)


class Watched:
    """A node on the desk, with every line that its trace has given."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.trace = Trace(desk.own, desk.now)
        self.lines: list[str] = []

    def feed(self, event: steps.Event, after_s: float = 0.0) -> list[str]:
        self.desk.now += after_s
        actions = self.desk.feed(event)
        told = self.trace.lines(event, actions, self.desk.agreement.core.candidates, self.desk.now)
        new = [line for _, line in told]
        self.lines += new
        return new


@pytest.fixture
def watched() -> Watched:
    return Watched(Desk(5))


def test_a_join_is_told_step_by_step_with_its_time(watched: Watched) -> None:
    watched.feed(steps.Wanted(42000))
    seen = watched.feed(steps.Seen(node(1)), 0.25)
    opened = watched.feed(steps.Opened(1, node(1).id, "10.77.0.5"), 0.01)

    assert seen[:3] == [
        "+0.2500 in  seen node-1 at 10.77.0.1:29400",
        "+0.2500 --  election: node-1 of 2: its name comes before node-5",
        "+0.2500 out connect to node-1 at 10.77.0.1:29400",
    ]
    assert opened[0] == "+0.2600 in  connected node-1 #1, from our address 10.77.0.5"
    assert opened[-1].startswith("+0.2600 out hello to node-1 #1: asks to join, node-5 at 10.77.0.5:29400")


def test_who_asks_to_join_is_named_from_then_on(watched: Watched) -> None:
    watched.feed(steps.Accepted(4, "10.77.0.5", "10.77.0.7"))
    skills = m.Skills(min_nodes=2, max_nodes=3, torch="2.13.0", python="3.11")
    told = watched.feed(steps.Received(4, hello(node(7), skills=skills)))
    lost = watched.feed(steps.Lost(4, "its connection was reset"), 1.0)

    assert told[0] == (
        "+0.0000 in  hello from node-7 #4: asks to join, node-7 at 10.77.0.7:29400, "
        "nnodes 2:3, torch 2.13.0, Python 3.11, epoch 0"
    )
    assert "+0.0000 out welcome to node-7 #4: node-5 at 10.77.0.5:29400 leads, epoch 0" in told
    assert lost[0] == "+1.0000 in  lost node-7 #4: its connection was reset"
    assert watched.trace.peers == {}


def test_beats_and_time_that_change_nothing_are_no_steps(watched: Watched) -> None:
    watched.feed(steps.Accepted(4, "10.77.0.5", "10.77.0.7"))
    watched.feed(steps.Received(4, hello(node(7))))
    first = watched.feed(steps.Received(4, m.Beat()), 0.1)

    assert first[0] == "+0.1000 in  beat from node-7 #4: runs nothing"
    assert watched.feed(steps.Received(4, m.Beat()), 0.1) == []
    assert watched.feed(steps.Tick(), 0.1) == []
    assert "runs 3-" in watched.feed(steps.Received(4, m.Beat(TOKEN)), 0.1)[0]


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (node(7, priority=3), "node-7 of 2: priority 3, node-5 has 0"),
        (node(7, size=2), "node-7 of 2: leads a round of 2, node-5 none"),
        (node(7), "itself of 2: its name comes before node-7"),
        (Candidate("0" * 16, "node-5", "10.77.0.9", 29400), "its id 00000000 comes before 00000000"),
    ],
)
def test_the_elections_choice_is_told_with_its_reason(other: Candidate, says: str) -> None:
    candidates = Candidates(node(5))
    candidates.appear(other)

    assert says in describe_choice(candidates, 0.0)


def test_who_does_not_count_is_told() -> None:
    candidates = Candidates(node(5))
    for number in (1, 2, 3):
        candidates.appear(node(number))
    candidates.doubt(node(1).id, 10.0)
    candidates.set_aside(node(2).id, 10.0)
    candidates.trying_since[node(3).id] = 9.0

    told = describe_choice(candidates, 10.1)

    assert told == (
        "election: itself of 2: node-3 would lead, but has not answered yet; "
        "no answer yet from node-3; does not count: node-1; aside: node-2"
    )


class Proof(msgspec.Struct, frozen=True, tag="proof"):
    """A message of another version."""

    key: str = "hunter2hunter2"
    token: str = "hunter2hunter2"


@pytest.mark.parametrize("way", ["in", "out"])
def test_of_a_message_that_it_does_not_know_it_shows_the_name_alone(way: str) -> None:
    trace = Trace(node(5), 0.0)

    told = trace.describe_message(way, 4, Proof())

    assert told.startswith("proof ")
    assert "hunter2" not in told


EVENTS = st.one_of(
    st.builds(steps.Received, st.integers(1, 3), strategies.anything()),
    st.builds(steps.Accepted, st.integers(1, 3), st.just("10.77.0.5"), st.text(max_size=20)),
    st.builds(steps.Lost, st.integers(1, 3), st.text()),
    st.builds(steps.OpenFailed, strategies.ids, st.text()),
    st.builds(steps.Closed, st.just("left"), st.text()),
    st.builds(steps.Wanted, strategies.ports, st.text()),
    st.builds(steps.Over, st.text()),
    st.builds(steps.Tell, st.text(), st.lists(st.text(), max_size=70).map(tuple)),
    st.just(steps.Tick()),
)


@given(st.lists(EVENTS, max_size=12))
def test_whatever_comes_in_a_line_is_short_and_steers_no_terminal(events: list[steps.Event]) -> None:
    watched = Watched(Desk(5))
    for event in events:
        if isinstance(event, steps.Over | steps.Tell):  # an action, by itself
            watched.lines.append(watched.trace.describe_action(event))
        else:
            watched.feed(event, 0.5)

    for line in watched.lines:
        assert line.isprintable()
        assert len(line) < 4000
    assert len(watched.trace.names) <= 4 * m.MEMBERS_MAX
