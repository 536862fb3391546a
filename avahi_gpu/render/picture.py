"""The cluster as a picture (SVG 1.1): nodes in a ring, a line for each pair, and what was seen of it.

Every state has a pattern and a letter beside its colour, and the picture says in words what it shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from avahi_gpu.model import ClusterView, SurveyedNode
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
# state -> colour, pattern of the line, letter
LOOKS = {
    "ok": ("#1b7837", "", "✓"),
    "names": ("#b35806", "8 4", "n"),
    "frames": ("#b2182b", "12 4 2 4", "s"),
    "ports": ("#b2182b", "4 4", "p"),
    "blocked": ("#67001f", "2 6", "✗"),
    "unknown": ("#666666", "1 5", "?"),
}
WORST = ("blocked", "ports", "frames", "names", "unknown", "ok")


def draw(view: ClusterView) -> str:
    """Return the picture's text."""
    states = states_of(view)
    counts = {state: list(states.values()).count(state) for state in LOOKS}
    told = ", ".join(f"{count} {MEANINGS[state]}" for state, count in counts.items() if count)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-labelledby="title what" font-family="sans-serif" font-size="15">',
        f'<title id="title">{len(view.nodes)} nodes and what they see of each other</title>',
        f'<desc id="what">{escape(f"Ways between two nodes: {told}." if told else "One node alone.")}</desc>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        *_links(view, states),
        *_nodes(view),
        _reading(),
        *_legend(counts),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


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
            pattern = f' stroke-dasharray="{dashes}"' if dashes else ""
            ways = f"{_way(one, other)}: {MEANINGS[there]}; {_way(other, one)}: {MEANINGS[back]}"
            signs = f"{_sign(there, x1, y1, x2, y2)}{_sign(back, x2, y2, x1, y1)}" if worst != "ok" else ""
            yield (
                f'<g><title>{escape(ways)}</title><line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" '
                f'y2="{y2:.1f}" stroke="{colour}" stroke-width="3"{pattern}/>'
                f"{signs}</g>"
            )


def _sign(state: str, x1: float, y1: float, x2: float, y2: float) -> str:
    x, y = x1 + (x2 - x1) * SIGN_AT, y1 + (y2 - y1) * SIGN_AT
    colour, _, letter = LOOKS[state]
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="10" fill="#ffffff" stroke="{colour}"/>'
        f'<text x="{x:.1f}" y="{y + 5:.1f}" text-anchor="middle" fill="{colour}">{letter}</text>'
    )


def _nodes(view: ClusterView) -> Iterator[str]:
    for number, node in enumerate(view.nodes):
        x, y = _place(number, len(view.nodes))
        edge = ' stroke-dasharray="3 4"' if not node.asked else ""
        words = printable(node.name, NAME_MAX)
        more = "this machine" if node.own else "" if node.asked else "not asked"
        label = f"{words}{f', {more}' if more else ''}"
        outward = 2 * math.pi * number / max(len(view.nodes), 1) - math.pi / 2
        dx, dy = math.cos(outward), math.sin(outward)
        anchor = "start" if dx > SIDE else "end" if dx < -SIDE else "middle"
        at = f'x="{x + NAME_AT * dx:.1f}" text-anchor="{anchor}"'
        below = y + NAME_AT * dy + (-10 if dy < -SIDE else 12 if dy > SIDE else 0)
        yield (
            f'<g role="img" aria-label={quoteattr(label)}>'
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{NODE_RADIUS}" fill="#f2f2f2" stroke="#333333" '
            f'stroke-width="2"{edge}/>'
            f'<text x="{x:.1f}" y="{y + 5:.1f}" text-anchor="middle" fill="#333333">{number + 1}</text>'
            f'<text {at} y="{below:.1f}" fill="#111111">{escape(words)}</text>'
            f'<text {at} y="{below + 16:.1f}" fill="#555555" font-size="12">'
            f"{escape(more or printable(node.address, 45))}</text></g>"
        )


def _legend(counts: dict[str, int]) -> Iterator[str]:
    shown = [state for state in LOOKS if counts[state] or state == "ok"]
    for number, state in enumerate(shown):
        colour, dashes, letter = LOOKS[state]
        x, y = 20 + 300 * (number % 3), HEIGHT - 40 + 24 * (number // 3)
        pattern = f' stroke-dasharray="{dashes}"' if dashes else ""
        yield (
            f'<g><line x1="{x}" y1="{y}" x2="{x + 40}" y2="{y}" stroke="{colour}" stroke-width="3"{pattern}/>'
            f'<text x="{x + 50}" y="{y + 5}" fill="#111111">{letter} {escape(MEANINGS[state])}</text></g>'
        )


def _reading() -> str:
    return (
        f'<text x="20" y="{HEIGHT - 64}" fill="#555555" font-size="12">'
        "A sign stands near the node that tries; a line without signs is fine both ways.</text>"
    )


def _way(source: SurveyedNode, target: SurveyedNode) -> str:
    return f"{printable(source.name, NAME_MAX)} to {printable(target.name, NAME_MAX)}"
