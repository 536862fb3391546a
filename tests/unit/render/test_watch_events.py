"""What happened between two looks, and how it is told."""

from __future__ import annotations

from dataclasses import replace

from avahi_gpu.model import Seat, Watched, WatchEvent
from avahi_gpu.render.watch_events import (
    AT_MOST,
    count_event,
    event_data,
    events_between,
    shorten_events,
    watched_data,
)
from tests.unit.render.test_watch import node


def told(before: Watched | None, now: Watched | None) -> list[tuple[str, str]]:
    named = [{"x": one} if one is not None else {} for one in (before, now)]
    return [(e.kind, " ".join(e.says.split())) for e in events_between(*named)]


def test_each_change_is_one_event() -> None:
    here = node(2)
    dead = node(2, alive=False)
    moved = replace(here, peer=replace(here.peer, address="10.0.0.99"))
    works = replace(here, seats=(Seat("llama", 1, 2),))

    assert told(None, here) == [("joined", "joined gpu-node-2 10.0.0.2")]
    assert told(here, None) == [("left", "left gpu-node-2")]
    assert told(here, dead) == [("dead", "no answer gpu-node-2 10.0.0.2")]
    assert told(dead, here) == [("alive", "answers gpu-node-2 10.0.0.2")]
    assert told(here, moved) == [("moved", "moved gpu-node-2 10.0.0.99")]
    assert told(here, works) == [("job", "job gpu-node-2 rank 1 of 2 in llama")]
    assert told(works, here) == [("job", "job gpu-node-2 is not in llama any more")]
    assert told(works, replace(works, rtt_s=1.0, silent_s=0.0)) == []


def test_the_first_answer_is_no_event_and_the_first_silence_is() -> None:
    unknown = node(2, alive=None)

    assert told(unknown, node(2)) == []
    assert told(unknown, node(2, alive=False))[0][0] == "dead"


def test_a_hostile_job_steers_no_terminal() -> None:
    ((_, says),) = told(node(2), node(2, seats=(Seat("\x1b[2J", 0, 1),)))

    assert "\x1b" not in says


def test_a_flood_of_records_and_jobs_hides_no_death() -> None:
    before = {"x": node(2)}
    jobs = tuple(Seat(f"job-{n}", 0, 1) for n in range(AT_MOST))
    now = {**{str(n): node(n, seats=jobs) for n in range(AT_MOST)}, "x": node(2, alive=False)}

    short = shorten_events(events_between(before, now))

    assert (short[0].kind, {e.kind for e in short[1:-1]}) == ("dead", {"joined"})


def test_of_a_flood_only_the_first_are_told() -> None:
    flood = events_between({}, {str(n): node(n) for n in range(AT_MOST + 30)})

    short = shorten_events(flood)

    assert len(short) == AT_MOST + 1
    assert (short[-1].kind, short[-1].says) == ("more", "and 30 more events")
    assert shorten_events(flood[:AT_MOST]) == flood[:AT_MOST]


def test_a_number_that_is_reached_or_lost_is_told_once() -> None:
    kinds = [
        e.kind if (e := count_event(was, there, 2)) else ""
        for was, there in [(None, 1), (None, 2), (1, 2), (2, 3), (3, 2), (2, 1), (1, 0), (0, 3)]
    ]

    assert kinds == ["", "complete", "complete", "", "", "incomplete", "", "complete"]


def test_an_object_has_what_is_known() -> None:
    one = node(2, free_mib=(1024, 2048), seats=(Seat("llama"),), rtt_s=0.0004567)
    data = event_data(WatchEvent("joined", "joined     x", one), "2026-01-01T00:00:00.000Z")

    assert (data["version"], data["command"], data["event"], data["says"]) == (
        1,
        "peers",
        "joined",
        "joined x",
    )
    assert data["node"]["name"] == "gpu-node-2" and data["node"]["rtt_ms"] == 0.457
    assert data["node"]["vram_free_mib"] == [1024, 2048]
    assert data["node"]["jobs"] == [{"job": "llama", "rank": None, "size": None}]
    assert watched_data(node(1, own=True))["rtt_ms"] is None
    assert event_data(WatchEvent("avahi", "gone"), "")["node"] is None
