"""``avahi-gpu peers --watch``: a live table on a terminal, a line for each event elsewhere, or an object."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from select import POLLERR, POLLHUP, poll
from typing import TYPE_CHECKING, Protocol

from avahi_gpu.errors import ExitCode, TooFewPeers
from avahi_gpu.host.peers import count_present
from avahi_gpu.model import Watched, WatchEvent
from avahi_gpu.render.table import describe_present
from avahi_gpu.render.text import console
from avahi_gpu.render.watch_events import count_event, event_data, events_between, shorten_events
from avahi_gpu.result import Result

if TYPE_CHECKING:
    from rich.text import Text

    from avahi_gpu.cli.terminal import Terminal
    from avahi_gpu.host.watch import Watch

AGAIN_S = 1.0  # round trips and ages are drawn anew that often
GATHER_S = 0.1  # what happens together is told together, and a flood costs no more
GONE_S = 60.0  # who has left stays in the table for a minute
GONE_AT_MOST = 50
LINES_KEPT = 50
LOOK_S = 1.5  # until then answers to the first two questions come in


@dataclass(frozen=True)
class Wish:
    """What is watched: nodes of one ``cluster`` ('' for all), for ``within_s``, ``expect`` of them."""

    cluster: str = ""
    expect: int | None = None
    within_s: float | None = None


class Report(Protocol):
    """Who shows what is seen."""

    def show(self, nodes: Sequence[Watched], events: Sequence[WatchEvent], hears: bool) -> bool:
        """Show it; return whether to go on."""


async def watch(wish: Wish, *, as_json: bool) -> Result:
    """Watch until somebody ends it or its time is over. Raises a BusError where Avahi is not there."""
    from avahi_gpu.avahi.bus import connect
    from avahi_gpu.cli.terminal import is_drawable
    from avahi_gpu.host.aside import aside
    from avahi_gpu.host.net import read_interfaces
    from avahi_gpu.host.watch import Watch

    async with connect() as avahi:
        interfaces = await aside(read_interfaces)
        async with Watch(avahi, interfaces) as seen:
            if not as_json and is_drawable():
                with _live(seen, wish) as table:
                    return await _follow(seen, wish, table)
            return await _follow(seen, wish, Objects() if as_json else Lines())


async def _follow(seen: Watch, wish: Wish, report: Report) -> Result:
    loop = asyncio.get_running_loop()
    end = loop.time() + wish.within_s if wish.within_s is not None else float("inf")
    before: dict[str, Watched] = {}
    there: int | None = None
    while True:
        nodes = select(seen.nodes(), wish.cluster)
        now = {n.peer.name: n for n in nodes if n.peer.address is not None}
        events = [*seen.notes(), *shorten_events(events_between(before, now))]
        was, there = there, count_present(n.peer for n in nodes)
        if wish.expect is not None and (counted := count_event(was, there, wish.expect)):
            events.append(counted)
        before = now
        left_s = end - loop.time()
        if not report.show(nodes, events, seen.hears) or left_s <= 0:
            return _result(wish, there, nodes)
        await seen.change(min(AGAIN_S, left_s))
        await asyncio.sleep(min(GATHER_S, max(0.0, end - loop.time())))


def select(nodes: Sequence[Watched], cluster: str) -> list[Watched]:
    """Return the nodes of a cluster, all of them for ''; who is not resolved has told none."""
    return [n for n in nodes if not cluster or n.peer.cluster == cluster]


def _result(wish: Wish, there: int, nodes: Sequence[Watched]) -> Result:
    if wish.expect is None or there >= wish.expect:
        return Result("peers", {})
    who = describe_present([n.peer for n in nodes])
    message = f"{there} of {wish.expect} nodes are there at the end: {who}"
    return Result(
        "peers", {}, ExitCode.TOO_FEW_PEERS, (TooFewPeers(message, "`avahi-gpu doctor` tells why"),)
    )


class Lines:
    """One line an event."""

    def __init__(self) -> None:
        self._out = console()

    def show(self, nodes: Sequence[Watched], events: Sequence[WatchEvent], hears: bool) -> bool:
        """Print the events."""
        for event in events:
            self._out.print(describe_line(event))
        sys.stdout.flush()
        check_reader()
        return True


class Objects:
    """One JSON object an event."""

    def show(self, nodes: Sequence[Watched], events: Sequence[WatchEvent], hears: bool) -> bool:
        """Print the events."""
        for event in events:
            at = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            sys.stdout.write(json.dumps(event_data(event, at)) + "\n")
        sys.stdout.flush()
        check_reader()
        return True


def check_reader() -> None:
    """Raise BrokenPipeError where whoever read our output has gone: on a quiet LAN no write would tell."""
    stdout = poll()
    stdout.register(sys.stdout.fileno(), 0)
    if any(said & (POLLERR | POLLHUP) for _, said in stdout.poll(0)):
        raise BrokenPipeError


def describe_line(event: WatchEvent) -> str:
    """Return an event with the time of day."""
    return f"{time.strftime('%H:%M:%S')}  {event.says}"


class Table:
    """The live table, its keys, and who has left lately."""

    def __init__(self, wish: Wish) -> None:
        from avahi_gpu.render.watch import Order

        self._wish = wish
        self._order = Order()
        self._first = 0
        self._page = 1
        self._lines: deque[str] = deque(maxlen=LINES_KEPT)
        self._gone: dict[str, tuple[Watched, float]] = {}
        self._quit = False
        self._began = time.monotonic()
        self.terminal: Terminal | None = None

    def press(self, key: str) -> None:
        """Take a key."""
        from avahi_gpu.render.watch import press

        steps = {"up": -1, "down": 1, "page up": -self._page, "page down": self._page, " ": self._page}
        if key in ("q", "Q", "\x04"):
            self._quit = True
        elif key in steps:
            self._first = max(0, self._first + steps[key])
        else:
            self._order = press(self._order, key)

    def show(self, nodes: Sequence[Watched], events: Sequence[WatchEvent], hears: bool) -> bool:
        """Draw the table."""
        from avahi_gpu.render.watch import Scene, draw, rows_shown

        assert self.terminal is not None
        self.terminal.ended()
        self._lines.extend(map(describe_line, events))
        self._remember_gone(nodes, events)
        now = time.monotonic()
        scene = Scene(
            nodes=nodes,
            gone=[(node, now - at) for node, at in self._gone.values()],
            lines=tuple(self._lines),
            head=self._head(nodes),
            alarm="" if hears else "avahi-daemon is gone: nobody new is seen until it is back",
            order=self._order,
            first=self._first,
            keys=self.terminal.has_keys,
            looking=now - self._began < LOOK_S,
        )

        def paint(width: int, height: int) -> Sequence[Text]:
            self._page = rows_shown(scene, height)
            self._first = min(self._first, max(0, len(nodes) + len(self._gone) - 1))
            return draw(scene, width, height)

        self.terminal.show(paint)
        return not self._quit

    def _head(self, nodes: Sequence[Watched]) -> str:
        words = [f"cluster {self._wish.cluster}"] if self._wish.cluster else []
        if self._wish.expect is not None:
            there = count_present(n.peer for n in nodes)
            words.append(f"{there} of {self._wish.expect} expected")
        return ", ".join(words)

    def _remember_gone(self, nodes: Sequence[Watched], events: Sequence[WatchEvent]) -> None:
        now = time.monotonic()
        for event in events:
            if event.kind == "left" and event.node is not None and len(self._gone) < GONE_AT_MOST:
                self._gone[event.node.peer.name] = (event.node, now)
        here: Mapping[str, Watched] = {n.peer.name: n for n in nodes}
        self._gone = {
            name: (node, at)
            for name, (node, at) in self._gone.items()
            if name not in here and now - at < GONE_S
        }


@contextlib.contextmanager
def _live(seen: Watch, wish: Wish) -> Iterator[Table]:
    from avahi_gpu.cli.terminal import Terminal

    table = Table(wish)

    def pressed(key: str) -> None:
        table.press(key)
        seen.wake()

    with Terminal(pressed, seen.wake) as terminal:
        table.terminal = terminal
        yield table
