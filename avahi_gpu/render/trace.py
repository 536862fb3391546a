"""The way of a name as a picture of lines, and as data for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from avahi_gpu.model import Story, StoryStep
from avahi_gpu.render.text import printable

if TYPE_CHECKING:
    from rich.console import Console

LINE_MAX = 300  # characters of one line that holds words from outside
_ANSWERS = {True: "answers", False: "does not answer", None: "cannot be asked from here"}


def show_stories(stories: Sequence[Story], console: Console) -> None:
    """Draw each story, an empty line behind it."""
    for story in stories:
        for line, style in draw(story):
            console.print(printable(line, LINE_MAX), style=style)
        console.print("")


def draw(story: Story) -> list[tuple[str, str | None]]:
    """Return the picture's lines with their styles (of rich; None for plain).

    ::

        gpu-node-2.local, by the hosts line: files mdns4_minimal [NOTFOUND=return] dns
         ├─ files          not found · 0.00 s → the search goes on
         ├─ mdns4_minimal  10.77.0.2 · 0.01 s ■ found: the search ends here
         ┊  dns            not asked
         ├─ programs get   10.77.0.2 · 0.01 s
         ├─ Avahi says     10.77.0.2 on eth0 · 0.00 s
         └─ 10.77.0.2      answers
        gpu-node-2.local is 10.77.0.2, and it answers
    """
    trace = story.trace
    rows = [_step_row(step) for step in story.steps]
    told = trace.glibc
    heard = ", ".join(told.addresses) or told.error or "nothing"
    rows.append(("├─", "programs get", f"{heard} · {told.elapsed_s:.2f} s", "", None))
    if trace.bare is not None and trace.name != trace.asked:
        bare = ", ".join(trace.bare.addresses) or trace.bare.error or "nothing"
        rows.append(("├─", f"{trace.asked} alone", f"{bare} · {trace.bare.elapsed_s:.2f} s", "", None))
    rows.append(("├─", "Avahi says", _avahi_words(story), "", None))
    rows += [
        ("├─", address, _ANSWERS[there], "", None if there else "yellow") for address, there in trace.answers
    ]
    rows[-1] = ("└─", *rows[-1][1:])
    width = max(len(name) for _, name, *_ in rows)
    lines: list[tuple[str, str | None]] = [(f"{trace.name}, by {_where(story)}: {trace.services}", "bold")]
    for sign, name, words, why, style in rows:
        lines.append((f" {sign} {name:<{width}}  {words}", style))
        if why:
            lines.append((f" │  {'':<{width}}  {why}", "dim"))
    return [*lines, (story.says, "bold")]


def stories_data(stories: Sequence[Story]) -> list[dict[str, Any]]:
    """Return one object for each name, as ``doctor --json`` has them under ``trace``."""
    return [_story_data(story) for story in stories]


def _story_data(story: Story) -> dict[str, Any]:
    trace = story.trace
    asked = zip(trace.steps, story.steps, strict=True)
    return {
        "asked": trace.asked,
        "name": trace.name,
        "hosts_line": trace.services,
        "steps": [
            {
                "module": step.module,
                "actions": step.actions,
                "asked": step.answer is not None,
                "status": step.answer.status if step.answer else None,
                "addresses": list(step.answer.addresses) if step.answer else [],
                "elapsed_s": round(step.answer.elapsed_s, 4) if step.answer else 0.0,
                "ends": step.ends,
                "why": words.why,
            }
            for step, words in asked
        ],
        "glibc": {
            "addresses": list(trace.glibc.addresses),
            "elapsed_s": round(trace.glibc.elapsed_s, 4),
            "error": trace.glibc.error,
        },
        "avahi": {
            "asked": trace.avahi.asked,
            "addresses": [{"address": a, "interface": i} for a, i in trace.avahi.addresses],
            "elapsed_s": round(trace.avahi.elapsed_s, 4),
            "error": trace.avahi.error,
        },
        "answers": [{"address": address, "alive": there} for address, there in trace.answers],
        "says": story.says,
    }


def _where(story: Story) -> str:
    line = story.trace.line
    return f"/etc/nsswitch.conf:{line}" if line else "glibc's default"


def _step_row(step: StoryStep) -> tuple[str, str, str, str, str | None]:
    if not step.words:
        return "┊ ", step.module, "not asked", "", "dim"
    ends = "goes on" not in step.effect
    actions = f" {step.actions}" if ends and step.actions and "found:" not in step.effect else ""
    words = f"{step.words} · {step.elapsed_s:.2f} s {'■' if ends else '→'} {step.effect}{actions}"
    return "├─", step.module, words, step.why, "green" if "found:" in step.effect else None


def _avahi_words(story: Story) -> str:
    avahi = story.trace.avahi
    if not avahi.asked:
        return "not asked: the name does not end in .local"
    shown = ", ".join(f"{a} on {i}" if i else a for a, i in avahi.addresses) or avahi.error or "nothing"
    return f"{shown} · {avahi.elapsed_s:.2f} s"
