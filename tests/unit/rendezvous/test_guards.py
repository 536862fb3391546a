"""Every guard of the agreement is needed: without it some life on the model LAN, or a conversation, breaks.

A mutant is one guard taken out. These tests fail when a guard could go unnoticed, because the model has
become too kind or the guard superfluous.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from unittest import mock

import pytest

from avahi_gpu.rendezvous import messages as m
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.agreement import Agreement
from avahi_gpu.rendezvous.core import Core, Link
from avahi_gpu.rendezvous.election import Candidates
from avahi_gpu.rendezvous.following import Following
from avahi_gpu.rendezvous.leading import Leading
from avahi_gpu.rendezvous.meeting import Meeting
from avahi_gpu.rendezvous.roster import Member, Proposal, Roster
from tests.unit.rendezvous import test_following, test_leading, test_lives, test_meeting
from tests.unit.rendezvous.scenario import formation_s, play, together
from tests.unit.rendezvous.watch import Broken

ANY = mock.ANY  # equal to everything
Mutant = Callable[[pytest.MonkeyPatch], None]


def first_caught(seeds: Iterable[int]) -> str:
    """Return what the first life that a mutant breaks says, '' where it breaks none."""
    return next((said for said in map(what_breaks, seeds) if said), "")


def what_breaks(seed: int) -> str:
    try:
        play(seed)
    except Broken as broken:
        return f"life {seed}: {broken}"
    return ""


def commit_after_the_first_promise(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Proposal, "agreed", property(lambda self: len(self.acks) >= min(2, len(self.order))))


def promise_while_old_workers_live(patch: pytest.MonkeyPatch) -> None:
    original = Following.prepare

    def prepare(self: Following, message: m.Prepare) -> None:
        ready, live = self.core.ready, self.core.live
        self.core.ready, self.core.live = True, False
        original(self, message)
        self.core.ready, self.core.live = ready, live

    patch.setattr(Following, "prepare", prepare)
    patch.setattr(Roster, "ready", lambda self: [x for x in self.members.values() if x.mesh_port])


def go_on_without_the_leader(patch: pytest.MonkeyPatch) -> None:
    def lose_leader(self: Following, reason: str) -> None:
        link, self.leader, self.promise = self.leader, None, None
        if link is not None:
            self.core.candidates.doubt(link.id, self.core.now)

    patch.setattr(Following, "lose_leader", lose_leader)


def go_on_without_a_member(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Leading, "left", lambda self, member, reason, **_: None)


def never_doubt_a_candidate(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Candidates, "doubt", lambda self, id, now: self.trying_since.pop(id, None))


def never_greet(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Meeting, "greet", lambda self: self.greet_at.clear())


def forget_whoever_has_no_record(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Candidates, "vanish", Candidates.forget)


def never_send_a_follower_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Meeting, "redirected", lambda self, by, leader: None)


def keep_the_members_when_another_leads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Leading, "hand_over", lambda self, to: None)


def believe_in_the_silent(patch: pytest.MonkeyPatch) -> None:
    original = Agreement.handle

    def handle(self: Agreement, event: steps.Event, now: float) -> list[steps.Action]:
        for link in self.core.links.values():
            if link.role in ("leader", "member"):
                link.heard = now
        return original(self, event, now)

    patch.setattr(Agreement, "handle", handle)


def never_yield_to_a_larger_group(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Meeting, "yield_to", lambda self, other: None)


def begin_with_epoch_one_again(patch: pytest.MonkeyPatch) -> None:
    original = Leading.form

    def form(self: Leading) -> None:
        epoch, self.core.epoch = self.core.epoch, 0
        for member in self.roster.members.values():
            member.epoch = 0
        original(self)
        if self.proposal is None:
            self.core.epoch = epoch

    patch.setattr(Leading, "form", form)


def start_workers_for_any_commit(patch: pytest.MonkeyPatch) -> None:
    original = Core.deliver

    def deliver(self: Core, formed: steps.Round) -> None:
        original(self, formed)
        self.ready = True  # the agreement believes that it may promise the next round at once
        self.live = False

    patch.setattr(Core, "deliver", deliver)


def promise_any_epoch(patch: pytest.MonkeyPatch) -> None:
    original = Following.prepare

    def prepare(self: Following, message: m.Prepare) -> None:
        epoch, self.core.epoch = self.core.epoch, -1
        original(self, message)
        self.core.epoch = max(epoch, self.core.epoch)

    patch.setattr(Following, "prepare", prepare)


def obey_a_commit_of_another_round(patch: pytest.MonkeyPatch) -> None:
    original = Following.commit

    def commit(self: Following, message: m.Commit) -> None:
        original(self, m.Commit(self.promise.token) if self.promise else message)

    patch.setattr(Following, "commit", commit)


def count_promises_of_other_rounds(patch: pytest.MonkeyPatch) -> None:
    original = Leading.hear_ack

    def hear_ack(self: Leading, id: str, token: m.Token) -> None:
        original(self, id, self.proposal.token if self.proposal else token)

    patch.setattr(Leading, "hear_ack", hear_ack)


def ignore_which_round_a_member_runs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Member, "token", property(lambda self: ANY, lambda self, value: None), raising=False)


def let_a_reset_pass(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Following, "lose_leader", lambda self, reason: None)


def listen_to_late_answers(patch: pytest.MonkeyPatch) -> None:
    original = Meeting.hear_answer

    def hear_answer(self: Meeting, link: Link, message: m.Message) -> None:
        patch.setattr(Meeting, "bound", False)
        original(self, link, message)

    patch.setattr(Meeting, "hear_answer", hear_answer)


LIVES = {
    commit_after_the_first_promise: range(10),
    promise_while_old_workers_live: range(20),
    go_on_without_a_member: range(20),
    never_doubt_a_candidate: range(8, 20),
    never_greet: range(20),
    never_send_a_follower_on: range(20),
    never_yield_to_a_larger_group: range(20),
    begin_with_epoch_one_again: range(10),
    start_workers_for_any_commit: range(10),
}

TALKS: dict[Mutant, Callable[[], None]] = {
    go_on_without_the_leader: lambda: test_lives.test_survivors_of_a_kill_agree_at_once("leader"),
    believe_in_the_silent: (
        lambda: test_lives.test_survivors_of_a_cut_agree_as_soon_as_silence_is_death("member")
    ),
    forget_whoever_has_no_record: (
        test_lives.test_a_network_that_was_split_until_every_record_was_gone_finds_together
    ),
    promise_any_epoch: lambda: (
        test_following.TestPromises().test_nothing_is_promised_below_an_epoch_that_was_seen(3)
    ),
    obey_a_commit_of_another_round: test_following.TestPromises().test_commits_of_other_rounds_are_ignored,
    count_promises_of_other_rounds: test_leading.TestLeading().test_promises_of_other_rounds_do_not_count,
    ignore_which_round_a_member_runs: (
        test_leading.TestLeading().test_a_member_that_does_not_run_the_round_is_lost
    ),
    let_a_reset_pass: test_following.TestLosingTheLeader().test_a_reset_is_death_at_once,
    listen_to_late_answers: (
        test_meeting.TestTheWayToALeader().test_a_late_answer_to_a_greeting_does_not_end_the_round_of_a_follower
    ),
}


@pytest.mark.parametrize("mutant", LIVES, ids=lambda mutant: mutant.__name__)
def test_lives_break_without(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)

    caught = first_caught(LIVES[mutant])

    print(caught)
    assert caught


@pytest.mark.parametrize("mutant", TALKS, ids=lambda mutant: mutant.__name__)
def test_conversations_break_without(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        TALKS[mutant]()


def test_members_that_are_not_handed_over_cost_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence would send them to the new leader as well, only later: a guard of speed."""

    def times() -> list[float]:
        lives = [together(seed, 6, loss=0.3, spread_s=1.5) for seed in range(8)]
        return [formation_s(life, 6, within_s=60.0) for life in lives]

    with_it = max(times())
    keep_the_members_when_another_leads(monkeypatch)

    assert max(times()) > with_it + 2.0
