"""The survey itself: all doctors listen, then each tries every other one. What was seen becomes a view."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from avahi_gpu.host.system import System
from avahi_gpu.model import (
    DOMAIN,
    Attached,
    ClusterView,
    Passage,
    PortTrial,
    SurveyedNode,
    Trial,
)
from avahi_gpu.survey import messages as m
from avahi_gpu.survey.inquiry import (
    ANSWER_S,
    Meeting,
    meet,
)
from avahi_gpu.survey.limits import on_link
from avahi_gpu.survey.remote import Remote
from avahi_gpu.survey.roll import ASKED, Entry, elsewhere, ended, enter, may_ask
from avahi_gpu.survey.station import Station, station
from avahi_gpu.survey.witness import Ears

WAIT_S = 10.0  # for doctors that are started by hand at about the same time
CLOCK_ROUNDS = 4  # the quickest answer tells the clock best
PROBE_S = 25.0  # of one node: names 6 s, connections 3.3 s, echoes 6 s, with many nodes some of it in turn
LISTEN_S = 30.0  # longer than the others take to try


async def survey(
    system: System,
    *,
    python: str | None,
    peers: Sequence[str] = (),
    wait_s: float = WAIT_S,
    tell: Callable[[str], None] = lambda _: None,
    remote: Remote | None = None,
) -> ClusterView:
    """Return what all doctors that can be met see of each other. Raises AvahiGpuError."""
    async with contextlib.AsyncExitStack() as stack:
        here = await stack.enter_async_context(station(system, python))
        meeting = Meeting(here, tell)
        port = await meeting.open(stack)
        await here.appear(stack, "asks", port)
        if remote is not None:
            stack.push_async_callback(remote.close)
        await meet(here, meeting, peers, wait_s, remote)
        entries = enter(here, meeting, remote.faults if remote is not None else {})
        if any(e.met for e in entries):
            tell(f"{sum(e.met is not None for e in entries) + 1} nodes try each other")
        ears = Ears()
        stack.callback(ears.close)
        await asyncio.gather(*(_read_clock(e) for e in entries if e.met))
        await asyncio.gather(*(_open_ears(e, ears) for e in entries))
        tried = await asyncio.gather(*(_try_others(e, entries, here) for e in entries if may_ask(e)))
        nodes = tuple(ended(e) for e in entries)
        return ClusterView(
            nodes=nodes,
            passages=tuple(p for some in tried for p in some),
            elsewhere=elsewhere(here),
            with_key=here.us.key is not None,
            trouble=here.trouble if not peers and here.avahi is None else "",
        )


# --- what they do ------------------------------------------------------------------------------------------


async def _read_clock(entry: Entry) -> None:
    """Compare clocks by the middle between question and answer; the quickest answer errs least."""
    assert entry.met is not None
    best: tuple[float, float] | None = None
    for _ in range(CLOCK_ROUNDS):
        asked, sent = wall_and_monotonic()
        now = await entry.met.ask(m.AskClock(), m.Now, ANSWER_S)
        if now is None:
            return
        half_s = (wall_and_monotonic()[1] - sent) / 2
        if best is None or half_s < best[0]:
            best = (half_s, now.wall - (asked + half_s))
    if best is not None:
        entry.node = replace(entry.node, clock_s=best[1], clock_error_s=best[0])


async def _open_ears(entry: Entry, ears: Ears) -> None:
    asked = tuple(port for port, _ in ASKED)
    answer: m.Listening | None = None
    if entry.node.own and entry.node.address:
        answer = await ears.open(entry.node.address, asked, LISTEN_S)
    elif entry.met is not None:
        answer = await entry.met.ask(m.Listen(asked, LISTEN_S), m.Listening, ANSWER_S)
    if answer is not None:
        entry.ports = tuple(
            (opened.port, purpose, not opened.words)  # of another program's we know too little
            for opened, (_, purpose) in zip(answer.ports, ASKED, strict=False)
            if opened.listens and opened.port
        )


async def _try_others(entry: Entry, entries: Sequence[Entry], here: Station) -> list[Passage]:
    """Let one node try all others, this machine by itself."""
    others = [e for e in entries if e is not entry and e.node.address]
    targets = tuple(
        m.Target(
            address_for(entry.node, e.node),
            e.node.host if e.node.host.endswith(f".{DOMAIN}") else "",
            frame_between(entry.node, e.node, address_for(entry.node, e.node)),
            tuple(port for port, _, _ in e.ports),
        )
        for e in others
    )
    if entry.node.own:
        reports = await asyncio.gather(*(here.witness.probe(t, _own_end(entries)) for t in targets))
    else:
        assert entry.met is not None
        answer = await entry.met.ask(m.Probe(targets), m.Probed, PROBE_S)
        if answer is None:
            return []
        if len(answer.reports) != len(targets):
            entry.met.fault = "it answered for others than it was asked about"
            return []
        reports = list(answer.reports)
    return [passage_of(entry, e, report) for e, report in zip(others, reports, strict=True)]


def _own_end(entries: Sequence[Entry]) -> str:
    return next((e.met.line.here for e in entries if e.met is not None), "")


def address_for(source: SurveyedNode, target: SurveyedNode) -> str:
    """Return the address by which one node is to reach another: ours, unless it is on no such network."""
    others = (a.ip for n in target.networks for a in n.addresses)
    near = (ip for ip in (target.address, *others) if any(_is_in(ip, n) for n in source.networks))
    return next(near, target.address)


def frame_between(source: SurveyedNode, target: SurveyedNode, address: str) -> int:
    """Return the size of the largest packet that both ends take, 0 where one of them did not tell."""
    there = mtu_of(target, address)
    on_the_way = [n.mtu for n in source.networks if _is_in(address, n)]
    return min(there, min(on_the_way, default=0))


def mtu_of(node: SurveyedNode, address: str) -> int:
    """Return the MTU of the interface that has ``address``, 0 where the node told of none."""
    return next((n.mtu for n in node.networks if any(a.ip == address for a in n.addresses)), 0)


def _is_in(address: str, network: Attached) -> bool:
    from avahi_gpu.model import Interface

    interface = Interface(network.interface, 2, "wired", True, True, True, addresses=network.addresses)
    return on_link(address, (interface,))


def passage_of(source: Entry, target: Entry, report: m.Report) -> Passage:
    ports = tuple(
        PortTrial(port, purpose, _judged(tried, sure), tried.words)
        for (port, purpose, sure), tried in zip(target.ports, report.ports, strict=False)
    )
    return Passage(
        source.node.name,
        target.node.name,
        glibc=_trial(report.glibc),
        avahi=_trial(report.avahi),
        echo=_trial(report.echo),
        frame=_trial(report.frame),
        ports=ports,
    )


def _judged(tried: m.Tried, sure: bool) -> bool | None:
    """Return whether a port is reached; one that refuses tells nothing where perhaps nobody listens."""
    return None if not sure and tried.words == "refused" else tried.ok


def _trial(tried: m.Tried) -> Trial:
    return Trial(tried.ok, tried.words, tried.took_s)


def wall_and_monotonic() -> tuple[float, float]:
    """Return the time of day, and one that never jumps."""
    return time.time(), time.monotonic()
