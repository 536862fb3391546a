"""What happened between two looks at the LAN: sentences for people, objects for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from avahi_gpu.model import Seat, Watched, WatchEvent
from avahi_gpu.render.table import NAME_LIMIT, describe_event, peer_data
from avahi_gpu.render.text import printable

AT_MOST = 50  # events that are told one by one of one look: a flood of records is counted
VERSION = 1  # of an event as ``--json`` shows it


def events_between(before: Mapping[str, Watched], now: Mapping[str, Watched]) -> list[WatchEvent]:
    """Return what happened to each node; both are by name, without those that nobody resolved.

    The nodes that were there already come first, then new ones, then jobs: a stranger who floods the LAN with
    records is cut short, and takes no place from them.
    """
    known: list[WatchEvent] = []
    new: list[WatchEvent] = []
    jobs: list[WatchEvent] = []
    for name in dict.fromkeys([*now, *before]):
        event = _event_of(before.get(name), now.get(name))
        if event is not None:
            (known if name in before else new).append(event)
        jobs += _job_events(before.get(name), now.get(name))
    return [*known, *new, *jobs]


def shorten_events(events: list[WatchEvent]) -> list[WatchEvent]:
    """Return at most AT_MOST of them, and one that counts the rest."""
    left_out = len(events) - AT_MOST
    if left_out <= 0:
        return events
    return [*events[:AT_MOST], WatchEvent("more", f"and {left_out} more events")]


def count_event(was: int | None, there: int, expect: int) -> WatchEvent | None:
    """Return that there are enough nodes now, or too few; ``was``: how many there were, None at the start."""
    if there >= expect and (was is None or was < expect):
        return WatchEvent("complete", f"complete   {there} of {expect} nodes are there")
    if there < expect and was is not None and was >= expect:
        return WatchEvent("incomplete", f"incomplete {there} of {expect} nodes are there")
    return None


def event_data(event: WatchEvent, at: str) -> dict[str, Any]:
    """Return an event as ``peers --watch --json`` shows it; ``at``: the time of day, by ISO 8601."""
    return {
        "version": VERSION,
        "command": "peers",
        "event": event.kind,
        "at": at,
        "says": " ".join(event.says.split()),
        "node": None if event.node is None else watched_data(event.node),
    }


def watched_data(node: Watched) -> dict[str, Any]:
    """Return a node with all that is known of it, a peer's shape and more."""
    return {
        **peer_data(node.peer),
        "rtt_ms": None if node.rtt_s is None else round(node.rtt_s * 1000, 3),
        "silent_s": None if node.silent_s is None else round(node.silent_s, 1),
        "speed_mbit": node.speed_mbit,
        "vram_free_mib": None if node.free_mib is None else list(node.free_mib),
        "jobs": [{"job": s.job, "rank": s.rank, "size": s.size} for s in node.seats],
    }


def describe_seat(seat: Seat) -> str:
    """Return ``rank 1 of 3 in llama``, or that it gathers."""
    job = printable(seat.job, NAME_LIMIT)
    if seat.rank is None:
        return f"waits in {job}"
    return f"rank {seat.rank} of {seat.size} in {job}" if seat.size else f"rank {seat.rank} in {job}"


def _event_of(before: Watched | None, now: Watched | None) -> WatchEvent | None:
    says = describe_event(before.peer if before else None, now.peer if now else None)
    node = now or before
    if not says or node is None:
        return None
    if now is None:
        return WatchEvent("left", says, node)
    if before is None:
        return WatchEvent("joined", says, node)
    if before.peer.address != now.peer.address:
        return WatchEvent("moved", says, node)
    return WatchEvent("alive" if now.peer.alive else "dead", says, node)


def _job_events(before: Watched | None, now: Watched | None) -> list[WatchEvent]:
    if now is None:
        return []
    old = {s.job: s for s in before.seats} if before else {}
    name = printable(now.peer.name, NAME_LIMIT)
    changed = [s for s in now.seats if old.get(s.job) != s]
    gone = old.keys() - {s.job for s in now.seats}
    lines = [f"job        {name}  {describe_seat(seat)}" for seat in changed]
    lines += [f"job        {name}  is not in {printable(job, NAME_LIMIT)} any more" for job in sorted(gone)]
    return [WatchEvent("job", line, now) for line in lines]
