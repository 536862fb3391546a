"""The browser's state machine under any order of signals, answers, failures and restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from avahi_gpu.avahi import browse as browse_module
from avahi_gpu.avahi.browse import Appeared, Browser, Left
from avahi_gpu.avahi.signals import Signal
from avahi_gpu.errors import ResolveTimeout
from avahi_gpu.model import Service

TYPE = "_torch._tcp"
PATH = "/Client0/ServiceBrowser0"


class Answers:
    """Stands for the connection: answers after some turns of the loop, at times with a failure."""

    on_bus = True

    def __init__(self, delays: list[int]) -> None:
        self._delays = delays

    async def call(self, *arguments: Any, **_: Any) -> list[Any]:
        interface, protocol, name = arguments[4:7]
        delay = self._delays.pop() if self._delays else 0
        for _turn in range(delay % 7):
            await asyncio.sleep(0)
        if delay >= 7:
            raise ResolveTimeout("", "nobody")
        address = f"192.0.2.{interface}" if protocol == 0 else "2001:db8::1"
        return [interface, protocol, name, TYPE, "local", f"{name}.local", protocol, address, 1, [], 0]


@pytest.fixture(autouse=True, scope="module")
def _hurry() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(browse_module, "BETTER_PLACE_S", 0.002)
        yield


names = st.sampled_from(["a", "b", "c"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("new"), names, st.integers(1, 3), st.integers(0, 1)),
        st.tuples(st.just("remove"), names, st.integers(1, 3), st.integers(0, 1)),
        st.tuples(st.just("wait"), st.integers(1, 10)),
        st.tuples(st.just("doubt")),
        st.tuples(st.just("settle")),
    ),
    max_size=40,
)


async def play(played: list[tuple[Any, ...]], delays: list[int]) -> tuple[dict[str, Service], Browser]:
    """Feed the browser, wait until it is quiet, and return what its events add up to."""
    browser = Browser(Answers(delays), TYPE)  # type: ignore[arg-type]
    for step in [*played, ("settle",)]:
        if step[0] in ("new", "remove"):
            _, name, interface, protocol = step
            member = "ItemNew" if step[0] == "new" else "ItemRemove"
            browser._take(Signal(PATH, member, [interface, protocol, name, TYPE, "local", 0]))
        elif step[0] == "wait":
            for _ in range(step[1]):
                await asyncio.sleep(0)
        elif step[0] == "doubt":
            browser._doubt()
        else:
            browser._settle()
    for _ in range(100):
        await asyncio.sleep(0.001)
        if not browser._timers and all(task.done() for task in browser._resolving.values()):
            break
    present: dict[str, Service] = {}
    while not browser._events.empty():
        event = browser._events.get_nowait()
        if isinstance(event, Appeared):
            assert present.get(event.service.name) != event.service, "told twice"
            present[event.service.name] = event.service
        else:
            assert isinstance(event, Left)
            assert event.name in present, "left without having come"
            del present[event.name]
    await browser._stop()
    return present, browser


@settings(deadline=None, max_examples=150)
@given(steps, st.lists(st.integers(0, 6), max_size=40))
def test_events_add_up_to_what_is_announced(played: list[tuple[Any, ...]], delays: list[int]) -> None:
    """Whoever has a place in the end is present, at the best of them; nobody else is."""

    async def scenario() -> None:
        present, browser = await play(played, delays)
        places = {name: browser._places.best(name) for name in browser._places.names()}
        assert set(present) == set(places)
        for name, service in present.items():
            best = places[name][0]
            assert (service.interface, service.protocol) == (best.interface, 6 if best.protocol else 4)

    asyncio.run(scenario())


@settings(deadline=None, max_examples=75)
@given(steps, st.lists(st.integers(0, 13), max_size=40))
def test_failures_never_invent_anybody(played: list[tuple[Any, ...]], delays: list[int]) -> None:
    async def scenario() -> None:
        present, browser = await play(played, delays)
        assert set(present) <= set(browser._places.names())
        assert set(browser.unresolved) == set(browser._places.names()) - set(present)

    asyncio.run(scenario())
