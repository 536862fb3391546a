"""What plain torchrun's users read."""

from __future__ import annotations

import pytest

from avahi_gpu.rendezvous.dealings import Notice
from avahi_gpu.rendezvous.terms import Terms
from avahi_gpu.rendezvous.voice import Voice


def say(*notices: Notice) -> None:
    voice = Voice(Terms("job", min_nodes=3, max_nodes=3))
    for notice in notices:
        voice(notice)


def test_a_wait_says_of_how_many_and_until_when_and_again_only_when_something_changes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    alone, both = (Notice("b leads", present, waiting=True) for present in (("b",), ("b", "a")))
    say(alone, alone, Notice("c holds another key", excluded="c"), both)

    assert capsys.readouterr().err.splitlines() == [
        "avahi-gpu: waiting for 2 more, for 10 min at most; b leads; 1 of 3 nodes here (b)",
        "avahi-gpu: c holds another key",
        "avahi-gpu: waiting for 1 more (cannot join: c); b leads; 2 of 3 nodes here (b, a)",
    ]


def test_the_end_is_left_to_the_agent_and_nothing_steers_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    say(Notice("no round", ended=True), Notice("\x1b[2Jgone"))

    assert capsys.readouterr().err == "avahi-gpu: \\x1b[2Jgone\n"
