"""The cluster as a picture (SVG): nodes in a ring, a line for each pair, and what was seen of it.

Every state has a pattern and a letter beside its colour, and the picture says in words what it shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from xml.sax.saxutils import quoteattr

from avahi_gpu.model import ClusterView, SurveyedNode
from avahi_gpu.render.drawing import document, group, line, paint, words
from avahi_gpu.render.matrix import MEANINGS, states_of
from avahi_gpu.render.text import printable

WIDTH, HEIGHT = 900, 760
CENTRE = (450.0, 335.0)
RADIUS = 230.0
NODE_RADIUS = 30.0
SIGN_AT = 0.3  # of the way from the node that tries: both directions of a pair have a place of their own
NAME_AT = 46.0  # from the centre of a node outwards
SIDE = 0.3  # of the radius: beyond that a name begins or ends at its node
NAME_MAX = 28
# state -> colour of render.drawing, pattern of the line, letter
LOOKS = {
    "ok": ("good", "", "✓"),
    "names": ("warn", "8 4", "n"),
    "frames": ("bad", "12 4 2 4", "s"),
    "ports": ("bad", "4 4", "p"),
    "blocked": ("bad", "2 6", "✗"),
    "unknown": ("soft", "1 5", "?"),
}
WORST = ("blocked", "ports", "frames", "names", "unknown", "ok")


def draw(view: ClusterView) -> str:
    """Return the picture's text."""
    states = states_of(view)
    counts = {state: list(states.values()).count(state) for state in LOOKS}
    told = ", ".join(f"{count} {MEANINGS[state]}" for state, count in counts.items() if count)
    title = f"{len(view.nodes)} nodes and what they see of each other"
    what = f"Ways between two nodes: {told}." if told else "One node alone."
    parts = [*_links(view, states), *_nodes(view), _reading(), *_legend(counts)]
    return document(WIDTH, HEIGHT, title, what, parts)


def _place(number: int, count: int) -> tuple[float, float]:
    """Return the centre of a node; the first stands on top."""
    angle = 2 * math.pi * number / max(count, 1) - math.pi / 2
    return CENTRE[0] + RADIUS * math.cos(angle), CENTRE[1] + RADIUS * math.sin(angle)


def _links(view: ClusterView, states: dict[tuple[str, str], str]) -> Iterator[str]:
    count = len(view.nodes)
    for i, one in enumerate(view.nodes):
        for j, other in enumerate(view.nodes[i + 1 :], i + 1):
            (x1, y1), (x2, y2) = _place(i, count), _place(j, count)
            there, back = states[one.name, other.name], states[other.name, one.name]
            worst = next(s for s in WORST if s in (there, back))
            colour, dashes, _ = LOOKS[worst]
            ways = f"{_way(one, other)}: {MEANINGS[there]}; {_way(other, one)}: {MEANINGS[back]}"
            drawn = [line(x1, y1, x2, y2, stroke=colour, width=3, more=_pattern(dashes))]
            if worst != "ok":
                drawn += [_sign(there, x1, y1, x2, y2), _sign(back, x2, y2, x1, y1)]
            yield group(drawn, ways)


def _pattern(dashes: str) -> str:
    return f' stroke-dasharray="{dashes}"' if dashes else ""


def _sign(state: str, x1: float, y1: float, x2: float, y2: float) -> str:
    x, y = x1 + (x2 - x1) * SIGN_AT, y1 + (y2 - y1) * SIGN_AT
    colour, _, letter = LOOKS[state]
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="10"{paint("paper", colour)}/>'
        f"{words(round(x, 1), round(y + 5, 1), letter, size=14, ink=colour, anchor='middle')}"
    )


def _nodes(view: ClusterView) -> Iterator[str]:
    for number, node in enumerate(view.nodes):
        x, y = _place(number, len(view.nodes))
        name = printable(node.name, NAME_MAX)
        more = "this machine" if node.own else "" if node.asked else "not asked"
        label = f"{name}{f', {more}' if more else ''}"
        outward = 2 * math.pi * number / max(len(view.nodes), 1) - math.pi / 2
        dx, dy = math.cos(outward), math.sin(outward)
        anchor = "start" if dx > SIDE else "end" if dx < -SIDE else "middle"
        beside = round(x + NAME_AT * dx, 1)
        below = round(y + NAME_AT * dy + (-10 if dy < -SIDE else 12 if dy > SIDE else 0), 1)
        edge = ' stroke-width="2"' + ("" if node.asked else ' stroke-dasharray="3 4"')
        yield (
            f'<g role="img" aria-label={quoteattr(label)}>'
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{NODE_RADIUS}"{paint("card", "rail")}{edge}/>'
            + words(round(x, 1), round(y + 5, 1), str(number + 1), size=15, anchor="middle")
            + words(beside, below, name, size=15, anchor=anchor)
            + words(beside, below + 16, more or printable(node.address, 45), ink="soft", anchor=anchor)
            + "</g>"
        )


def _legend(counts: dict[str, int]) -> Iterator[str]:
    shown = [state for state in LOOKS if counts[state] or state == "ok"]
    for number, state in enumerate(shown):
        colour, dashes, letter = LOOKS[state]
        x, y = 20 + 300 * (number % 3), HEIGHT - 40 + 24 * (number // 3)
        sample = line(x, y, x + 40, y, stroke=colour, width=3, more=_pattern(dashes))
        yield group([sample, words(x + 50, y + 5, f"{letter} {MEANINGS[state]}", size=15)])


def _reading() -> str:
    told = "A sign stands near the node that tries; a line without signs is fine both ways."
    return words(20, HEIGHT - 64, told, ink="soft")


def _way(source: SurveyedNode, target: SurveyedNode) -> str:
    return f"{printable(source.name, NAME_MAX)} to {printable(target.name, NAME_MAX)}"
