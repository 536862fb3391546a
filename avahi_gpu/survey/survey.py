"""The survey itself: all doctors listen, then each tries every other one. What was seen becomes a view."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from avahi_gpu.files import txt
from avahi_gpu.host.system import System
from avahi_gpu.model import (
    DEFAULT_CLUSTER,
    DOMAIN,
    Address,
    Attached,
    ClusterView,
    Passage,
    PortTrial,
    Purpose,
    SurveyedNode,
    Trial,
    Versions,
)
from avahi_gpu.survey import messages as m
from avahi_gpu.survey.inquiry import (
    ANSWER_S,
    REFUSED,
    Meeting,
    Met,
    Missed,
    meet,
    missing_nodes,
    name_of,
)
from avahi_gpu.survey.limits import on_link
from avahi_gpu.survey.remote import Remote
from avahi_gpu.survey.station import Station, station
from avahi_gpu.survey.witness import Ears

WAIT_S = 10.0  # for doctors that are started by hand at about the same time
CLOCK_ROUNDS = 4  # the quickest answer tells the clock best
PROBE_S = 25.0  # of one node: names 6 s, connections 3.3 s, echoes 6 s, with many nodes some of it in turn
LISTEN_S = 30.0  # longer than the others take to try
# one of each kind: the first control port, torch's store, the last of the workers' range, any high one
ASKED: tuple[tuple[int, Purpose], ...] = (
    (29400, "control"),
    (29500, "store"),
    (29999, "workers"),
    (0, "high"),
)


@dataclass
class Entry:
    """A node while it is surveyed. ``ports``: where somebody is sure to listen (True), or may."""

    node: SurveyedNode
    met: Met | None = None
    ports: tuple[tuple[int, Purpose, bool], ...] = ()


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
        entries = _enter(here, meeting, remote.faults if remote is not None else {})
        tell(f"{sum(e.met is not None for e in entries) + 1} nodes try each other")
        ears = Ears()
        stack.callback(ears.close)
        await asyncio.gather(*(_read_clock(e) for e in entries if e.met))
        await asyncio.gather(*(_open_ears(e, ears) for e in entries))
        tried = await asyncio.gather(*(_try_others(e, entries, here) for e in entries if _may_ask(e)))
        nodes = tuple(_ended(e) for e in entries)
        return ClusterView(
            nodes=nodes,
            passages=tuple(p for some in tried for p in some),
            elsewhere=_elsewhere(here),
            with_key=here.us.key is not None,
            trouble=here.trouble if not peers and here.avahi is None else "",
        )


# --- who takes part ----------------------------------------------------------------------------------------


def _enter(here: Station, meeting: Meeting, by_ssh: Mapping[str, str]) -> list[Entry]:
    """Return this machine, then everybody who was met, then those who were missed."""
    met = sorted(meeting.met.values(), key=lambda each: name_of(each.about))
    ends = Counter(each.line.here.partition("%")[0] for each in met)
    lan = [a.ip for n in here.witness.about.networks for a in n.addresses]
    address = ends.most_common(1)[0][0] if ends else next(iter(lan), "")
    entries = [Entry(_describe(here.witness.about, address, own=True))]
    entries += [Entry(_describe(each.about, each.address), each) for each in met]
    missed = list(meeting.missed.values())
    listed = missing_nodes(here, meeting)
    busy = {address.partition("%")[0] for address in meeting.queued}
    for service in listed:
        if service.address in busy:
            missed.append(Missed("busy", "somebody else asks it just now", service.address))
        of_it = [x for x in missed if x.address.partition("%")[0] == service.address]
        entries.append(_missing(service.name, service.host, service.address, of_it))
        if entries[-1].node.silence == "no-offer" and service.address in by_ssh:
            why = by_ssh[service.address]
            entries[-1].node = replace(entries[-1].node, silence="ssh", why=why)
    known = {e.node.address for e in entries}
    for one in missed:
        if one.address.partition("%")[0] not in known:
            entries.append(_missing(one.address, "", one.address, [one]))
    entries += [
        Entry(SurveyedNode(name, silence="no-offer", why="nobody answers for its name"))
        for name in here.unresolved
    ]
    return _with_names_of_their_own(entries[: m.NODES_MAX])


def _missing(name: str, host: str, address: str, missed: Sequence[Missed]) -> Entry:
    if not missed:
        why = "no doctor answers there"
        return Entry(SurveyedNode(name, host, address, silence="no-offer", why=why))
    one = missed[0]
    if one.why == REFUSED:
        why = "its doctor has ended, or a firewall rejects what comes to it"
        return Entry(SurveyedNode(name, host, address.partition("%")[0], silence="no-offer", why=why))
    node = SurveyedNode(name, host, address.partition("%")[0], silence=one.silence, why=one.why)
    if one.silence != "unreached" or not one.port:
        return Entry(node)
    # its doctor is announced, so it is there: who gets no answer from it is cut off from it
    tried: list[tuple[int, Purpose, bool]] = [(port, what, False) for port, what in ASKED if port]
    return Entry(node, None, (*tried, (one.port, "doctor", True)) if host else ())


def _with_names_of_their_own(entries: list[Entry]) -> list[Entry]:
    count = Counter(e.node.name for e in entries)
    for number, entry in enumerate(entries, 1):
        if count[entry.node.name] > 1:
            where = entry.node.address or f"number {number}"
            entry.node = replace(entry.node, name=f"{entry.node.name} ({where})")
    return entries


def _describe(about: m.About, address: str, *, own: bool = False) -> SurveyedNode:
    networks = tuple(
        Attached(
            n.interface,
            n.mtu,
            tuple(Address(a.ip, a.prefix, 6 if ":" in a.ip else 4, "global") for a in n.addresses),
        )
        for n in about.networks
    )
    return SurveyedNode(
        name=name_of(about),
        host=about.host,
        address=address,
        own=own,
        hostname=about.hostname,
        id=about.node,
        cluster=about.cluster or DEFAULT_CLUSTER,
        networks=networks,
        gpus=about.gpus,
        gpu=about.gpu,
        versions=Versions(about.python, about.torch, about.cuda, about.nccl, about.driver),
        clock_s=0.0 if own else None,
    )


def _elsewhere(here: Station) -> tuple[str, ...]:
    cluster = here.witness.about.cluster
    return tuple(sorted(s.name for s in here.nodes if not s.own and txt.read(s.txt).cluster != cluster))


def _may_ask(entry: Entry) -> bool:
    return entry.node.own or (entry.met is not None and not entry.met.fault)


def _ended(entry: Entry) -> SurveyedNode:
    if entry.met is not None and entry.met.fault:
        return replace(entry.node, silence="fault", why=entry.met.fault)
    return entry.node


# --- what they do ------------------------------------------------------------------------------------------


async def _read_clock(entry: Entry) -> None:
    """Compare clocks by the middle between question and answer; the quickest answer errs least."""
    assert entry.met is not None
    best: tuple[float, float] | None = None
    for _ in range(CLOCK_ROUNDS):
        asked, sent = wall_and_monotonic()
        now = await entry.met.ask(m.AskClock(), ANSWER_S)
        if not isinstance(now, m.Now):
            return
        half_s = (wall_and_monotonic()[1] - sent) / 2
        if best is None or half_s < best[0]:
            best = (half_s, now.wall - (asked + half_s))
    if best is not None:
        entry.node = replace(entry.node, clock_s=best[1], clock_error_s=best[0])


async def _open_ears(entry: Entry, ears: Ears) -> None:
    asked = tuple(port for port, _ in ASKED)
    answer: m.Said | None = None
    if entry.node.own and entry.node.address:
        answer = await ears.open(entry.node.address, asked, LISTEN_S)
    elif entry.met is not None:
        answer = await entry.met.ask(m.Listen(asked, LISTEN_S), ANSWER_S)
    if isinstance(answer, m.Listening):
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
            _frame(entry.node, e.node, address_for(entry.node, e.node)),
            tuple(port for port, _, _ in e.ports),
        )
        for e in others
    )
    if entry.node.own:
        reports = await asyncio.gather(*(here.witness.probe(t, _own_end(entries)) for t in targets))
    else:
        assert entry.met is not None
        answer = await entry.met.ask(m.Probe(targets), PROBE_S)
        if not isinstance(answer, m.Probed) or len(answer.reports) != len(targets):
            return []
        reports = list(answer.reports)
    return [_passage(entry, e, report) for e, report in zip(others, reports, strict=True)]


def _own_end(entries: Sequence[Entry]) -> str:
    return next((e.met.line.here for e in entries if e.met is not None), "")


def address_for(source: SurveyedNode, target: SurveyedNode) -> str:
    """Return the address by which one node is to reach another: ours, unless it is on no such network."""
    others = (a.ip for n in target.networks for a in n.addresses)
    near = (ip for ip in (target.address, *others) if any(_is_in(ip, n) for n in source.networks))
    return next(near, target.address)


def _frame(source: SurveyedNode, target: SurveyedNode, address: str) -> int:
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


def _passage(source: Entry, target: Entry, report: m.Report) -> Passage:
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
