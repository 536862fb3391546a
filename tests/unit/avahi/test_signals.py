"""Signals by path: early ones wait, ended inboxes say why, nothing grows without bound."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from avahi_gpu.avahi.names import avahi_missing
from avahi_gpu.avahi.signals import EARLY_PATHS, EARLY_SIGNALS, Inbox, Router, Signal
from avahi_gpu.errors import AvahiUnavailable

PATH = "/Client0/ServiceBrowser1"


def signal(number: int, path: str = PATH) -> Signal:
    return Signal(path, "ItemNew", [number])


async def drain(inbox: Inbox) -> list[int]:
    """Return the numbers of the signals that are there."""
    numbers = []
    with contextlib.suppress(asyncio.TimeoutError):
        while True:
            numbers.append((await asyncio.wait_for(inbox.get(), 0.01)).body[0])
    return numbers


def test_signals_before_the_reply_that_names_their_path_are_kept_in_order() -> None:
    async def scenario() -> list[int]:
        router = Router()
        router.deliver(signal(1))
        router.deliver(signal(2))
        inbox = Inbox(router)
        inbox.listen(PATH)
        router.deliver(signal(3))
        return await drain(inbox)

    assert asyncio.run(scenario()) == [1, 2, 3]


def test_an_inbox_gets_its_own_paths_alone() -> None:
    async def scenario() -> tuple[list[int], list[int]]:
        router = Router()
        one, both = Inbox(router), Inbox(router)
        one.listen(PATH)
        both.listen(PATH)
        both.listen("/")
        router.deliver(signal(1))
        router.deliver(signal(2, "/"))
        one.close()
        router.deliver(signal(3))
        return await drain(one), await drain(both)

    assert asyncio.run(scenario()) == ([1], [1, 2, 3])


def test_the_end_comes_after_what_was_there_and_stays() -> None:
    async def scenario() -> None:
        router = Router()
        inbox = Inbox(router)
        inbox.listen(PATH)
        router.deliver(signal(1))
        router.end_all(avahi_missing())
        router.deliver(signal(2))
        assert (await inbox.get()).body == [1]
        for _ in range(2):
            with pytest.raises(AvahiUnavailable):
                await asyncio.wait_for(inbox.get(), 0.1)

    asyncio.run(scenario())


def test_a_path_of_the_old_daemon_means_nothing_after_its_end() -> None:
    """A new daemon gives the same paths to other objects."""

    async def scenario() -> list[int]:
        router = Router()
        router.deliver(signal(1))
        router.end_all(avahi_missing())
        inbox = Inbox(router)
        inbox.listen(PATH)
        return await drain(inbox)

    assert asyncio.run(scenario()) == []


def test_what_nobody_listens_to_is_bounded() -> None:
    router = Router()
    for number in range(EARLY_PATHS * 3):
        router.deliver(signal(number, f"/Client0/ServiceBrowser{number}"))
    for number in range(EARLY_SIGNALS + 100):
        router.deliver(signal(number))
    router.deliver(signal(0, "/"))

    assert len(router._early) == EARLY_PATHS
    assert len(router._early[PATH]) == EARLY_SIGNALS
    assert "/" not in router._early
