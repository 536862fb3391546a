"""How long the LAN is listened to: two questions where all is well, longer where somebody may be missed."""

from __future__ import annotations

import asyncio

import pytest
from dbus_next import Message

from avahi_gpu.host import lan
from avahi_gpu.host.questions import ANSWER_AT_ONCE
from tests.bus.conftest import PrivateBus, reply, run
from tests.bus.test_browser import Lan, browsing

QUESTION = "/Client0/RecordBrowser0"


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same rule at other times, far enough apart to be told from each other on a busy machine."""
    monkeypatch.setattr(lan, "ASK_AGAIN_S", 0.05)
    monkeypatch.setattr(lan, "QUICK_S", 0.2)
    monkeypatch.setattr(lan, "RELIABLE_S", 3.0)
    monkeypatch.setattr(lan, "RESOLVE_GRACE_S", 0.1)


def took(bus: PrivateBus, *listed: str, wanted: tuple[str, ...] = (), asks_again: bool = True) -> float:
    """Return how long it was listened for, and see that the second question is one of its own."""

    async def scenario() -> float:
        async with browsing(bus, *listed) as (fake, avahi, browser):
            if asks_again:
                fake.fake.answers["RecordBrowserPrepare"] = reply("o", QUESTION)
                fake.fake.answers["Start"] = lambda call: answer_start(fake, call)
            loop = asyncio.get_running_loop()
            began = loop.time()
            await lan._see_nodes(avahi, browser, wanted)
            asked = [c.body for c in fake.fake.calls if c.member == "RecordBrowserPrepare"]
            assert [(b[2], b[3] & ANSWER_AT_ONCE) for b in asked] == [("_torch._tcp.local", ANSWER_AT_ONCE)]
            return loop.time() - began

    return float(run(scenario()))


def answer_start(fake: Lan, call: Message) -> Message:
    return Message.new_method_return(call) if call.path == QUESTION else fake._start(call)


def test_two_questions_are_enough_where_nodes_are_seen_and_resolved(private_bus: PrivateBus) -> None:
    assert 0.15 < took(private_bus, "a", "b") < 2.0


def test_two_questions_are_enough_to_say_that_nobody_is_there(private_bus: PrivateBus) -> None:
    assert 0.15 < took(private_bus) < 2.0


def test_where_the_second_question_cannot_be_asked_avahis_own_is_awaited(private_bus: PrivateBus) -> None:
    assert took(private_bus, asks_again=False) >= 2.9


def test_a_node_that_is_missed_is_given_more_time(private_bus: PrivateBus) -> None:
    assert took(private_bus, "a", wanted=("b",)) >= 2.9


def test_a_node_that_is_there_is_not_missed_whatever_it_is_called(private_bus: PrivateBus) -> None:
    assert took(private_bus, "a", wanted=("A.local.",)) < 2.0


def test_a_node_that_is_not_resolved_is_given_more_time(private_bus: PrivateBus) -> None:
    assert took(private_bus, "a", "nobody") >= 2.9
