"""The picture of a name's way."""

from __future__ import annotations

import io
from dataclasses import replace

from avahi_gpu.model import AvahiAnswer, Lookup, ModuleAnswer, Step, Story, StoryStep, Trace
from avahi_gpu.render.report import make_report
from avahi_gpu.render.text import console
from avahi_gpu.render.trace import draw, show_stories, stories_data
from tests.unit.changes.facts import bare_facts

ANSWER = ModuleAnswer("mdns4_minimal", "success", ("10.77.0.2",), 0.0112, loaded=True)
TRACE = Trace(
    "gpu-node-2",
    "gpu-node-2.local",
    "files mdns4_minimal [NOTFOUND=return] dns",
    6,
    (
        Step("files", "", ModuleAnswer("files", "notfound", (), 0.0001, loaded=True), "continue"),
        Step("mdns4_minimal", "[NOTFOUND=return]", ANSWER, "return"),
        Step("dns"),
    ),
    Lookup("gpu-node-2.local", ("10.77.0.2",), 0.012),
    AvahiAnswer(True, (("10.77.0.2", "eth0"),), 0.002),
    (("10.77.0.2", True),),
    bare=Lookup("gpu-node-2", (), 0.01, "name not found"),
)
STORY = Story(
    TRACE,
    (
        StoryStep("files", "", "not found", "", "the search goes on", 0.0001),
        StoryStep(
            "mdns4_minimal",
            "[NOTFOUND=return]",
            "10.77.0.2",
            "a reason",
            "found: the search ends here",
            0.0112,
        ),
        StoryStep("dns", "", "", "", "not asked"),
    ),
    "gpu-node-2.local is 10.77.0.2, and it answers",
)


def test_the_picture() -> None:
    assert [line for line, _ in draw(STORY)] == [
        "gpu-node-2.local, by /etc/nsswitch.conf:6: files mdns4_minimal [NOTFOUND=return] dns",
        " ├─ files             not found · 0.00 s → the search goes on",
        " ├─ mdns4_minimal     10.77.0.2 · 0.01 s ■ found: the search ends here",
        " │                    a reason",
        " ┊  dns               not asked",
        " ├─ programs get      10.77.0.2 · 0.01 s",
        " ├─ gpu-node-2 alone  name not found · 0.01 s",
        " ├─ Avahi says        10.77.0.2 on eth0 · 0.00 s",
        " └─ 10.77.0.2         answers",
        "gpu-node-2.local is 10.77.0.2, and it answers",
    ]


def test_an_action_list_is_shown_where_it_ends_the_search() -> None:
    ended = replace(STORY.steps[1], words="not found", effect="the search ends here")
    story = replace(STORY, steps=(STORY.steps[0], ended, STORY.steps[2]))

    assert any(line.endswith("■ the search ends here [NOTFOUND=return]") for line, _ in draw(story))


def test_what_comes_from_outside_cannot_steer_the_terminal() -> None:
    evil = replace(STORY, says="\x1b[2J\nowned", trace=replace(TRACE, answers=(), avahi=AvahiAnswer(False)))
    out = io.StringIO()

    show_stories([evil], console(out))

    assert "\x1b" not in out.getvalue() and "\\x1b[2J\\nowned" in out.getvalue()
    assert "not asked: the name does not end in .local" in out.getvalue()


def test_the_data() -> None:
    (data,) = stories_data([STORY])

    assert (data["asked"], data["name"], data["says"]) == ("gpu-node-2", "gpu-node-2.local", STORY.says)
    assert [s["status"] for s in data["steps"]] == ["notfound", "success", None]
    assert [s["ends"] for s in data["steps"]] == [False, True, False]
    assert data["steps"][1]["elapsed_s"] == 0.0112 and data["steps"][1]["why"] == "a reason"
    assert data["avahi"]["addresses"] == [{"address": "10.77.0.2", "interface": "eth0"}]
    assert data["answers"] == [{"address": "10.77.0.2", "alive": True}]


def test_a_report_has_the_picture_too() -> None:
    text = make_report([], bare_facts(), ["nobody"], [STORY])

    assert "## The way of gpu-node-2\n" in text
    assert " ├─ mdns4_minimal     10.77.0.2 · 0.01 s ■ found: the search ends here" in text
