"""The live table of ``peers --watch``: lines that fit a terminal of any size, sorted as people wish."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from avahi_gpu.model import Peer, Seat, Watched, natural_order
from avahi_gpu.render.table import (
    GAP,
    NAME_LIMIT,
    NOBODY,
    NOBODY_HINT,
    describe_gpus,
    describe_memory,
    describe_name,
    gib,
)
from avahi_gpu.render.text import printable
from avahi_gpu.render.watch_events import describe_seat

UNKNOWN = "-"  # what a node does not tell
LINES_KEPT = 5  # of what happened last, below the table
LEAST_ROWS = 3  # nodes are shown before anything else where the terminal is low
NOW_S = 3.0  # who was heard within that is "now": it is asked once a second, and thrice before it is dead

# what goes first where the terminal is narrow; NODE and STATE stay
OWN, SHORT_OWN = " (this machine)", " *"
DROPPED = ("SPEED", "SEEN", OWN, "CLUSTER", "VIA", "VRAM", "FREE", "GPUS", "ADDRESS", "RTT", "JOB")
JOBS_NAMED = 3
JOB_WIDTH = 48  # cells
STATE_WIDTH = 9  # columns stand still when somebody falls silent


@dataclass(frozen=True)
class Order:
    """How rows are sorted: by the column of a key, and whether from its other end."""

    key: str = "n"
    reverse: bool = False


@dataclass(frozen=True)
class Scene:
    """All that is shown. ``gone``: nodes that have left, with the seconds since; ``lines``: what happened."""

    nodes: Sequence[Watched]
    gone: Sequence[tuple[Watched, float]] = ()
    lines: Sequence[str] = ()
    head: str = ""  # what there is to say beside the count of nodes
    alarm: str = ""  # what is wrong on this machine
    order: Order = Order()
    first: int = 0  # the row that stands at the top
    keys: bool = True  # whether keys are read
    looking: bool = False  # it has only begun: that nobody is there means nothing


def _memory_of(node: Watched) -> int:
    return sum(node.free_mib) if node.free_mib is not None else sum(node.peer.vram_mib)


# key -> word in the footer with the key in brackets, and what rows are sorted by; all but names best first
SORTS: dict[str, tuple[str, Callable[[Watched], Any]]] = {
    "n": ("[n]ame", lambda node: natural_order(node.peer.name)),
    "s": ("[s]tate", lambda node: {True: 0, None: 1, False: 2}[node.peer.alive]),
    "a": ("[a]ddress", lambda node: natural_order(node.peer.address or "~")),
    "r": ("[r]tt", lambda node: (node.rtt_s is None, node.rtt_s or 0.0)),
    "g": ("[g]pus", lambda node: -node.peer.gpus),
    "v": ("[v]ram", lambda node: -_memory_of(node)),
    "j": ("[j]ob", lambda node: (not node.seats, [(s.job, s.rank is None, s.rank or 0) for s in node.seats])),
    "l": ("[l]ast seen", lambda node: node.silent_s if node.silent_s is not None else float("inf")),
}


def press(order: Order, key: str) -> Order:
    """Return the order after a key was pressed; the same key again turns it round."""
    if key not in SORTS:
        return order
    return replace(order, reverse=not order.reverse) if key == order.key else Order(key)


def sort_nodes(nodes: Sequence[Watched], order: Order) -> list[Watched]:
    """Return the nodes in that order; among equals by name."""
    by_name = sorted(nodes, key=lambda node: (natural_order(node.peer.name), node.peer.name))
    return sorted(by_name, key=SORTS[order.key][1], reverse=order.reverse)


def draw(scene: Scene, width: int, height: int) -> list[Text]:
    """Return the lines of the screen, at most ``height`` and none wider than ``width`` cells."""
    head = [Text(_headline(scene), style="bold")]
    if scene.alarm:
        head.append(Text(scene.alarm, style="bold red"))
    foot = [_footer(scene)]
    room = height - len(head) - len(foot)
    rows = [(node, 0.0, False) for node in sort_nodes(scene.nodes, scene.order)]
    rows += [(node, since, True) for node, since in scene.gone]
    lines_room = min(len(scene.lines), LINES_KEPT, max(0, room - 2 - min(len(rows), LEAST_ROWS)))
    lines = [Text(line, style="dim") for line in scene.lines[len(scene.lines) - lines_room :]]
    body = _table(rows, scene, width, room - len(lines) - bool(lines))
    blank = [Text("")] * max(0, room - len(body) - len(lines))
    screen = [*head, *body, *blank, *lines, *foot] if room > 1 else [*body, *foot]
    for line in screen:
        line.no_wrap = True
        line.truncate(width, overflow="ellipsis")
    return screen[-height:] if height > 0 else []


def rows_shown(scene: Scene, height: int) -> int:
    """Return about how many nodes fit: what a page up or down moves by."""
    return max(1, height - 4 - min(len(scene.lines), LINES_KEPT))


def _headline(scene: Scene) -> str:
    alive = sum(node.peer.alive is True for node in scene.nodes)
    count = len(scene.nodes)
    words = [f"{count} node{'' if count == 1 else 's'}", f"{alive} alive"]
    silent = sum(node.peer.alive is False for node in scene.nodes)
    more = [f"{silent} silent"] if silent else []
    return ", ".join([*words, *more, *([scene.head] if scene.head else [])])


def _footer(scene: Scene) -> Text:
    if not scene.keys:
        return Text("Ctrl-C ends", style="reverse")
    text = Text(" [q]uit  sort: ", style="reverse")
    for key, (word, _) in SORTS.items():
        chosen = key == scene.order.key
        mark = ("▴" if scene.order.reverse else "▾") if chosen else ""
        text.append(f"{word}{mark}", style="bold underline" if chosen else "")
        text.append(" ")
    return text


def _table(rows: Sequence[tuple[Watched, float, bool]], scene: Scene, width: int, room: int) -> list[Text]:
    if not rows and scene.looking:
        return [Text("looking for nodes …")]
    if not rows:
        return [Text(NOBODY), Text(NOBODY_HINT)][: max(1, room)]
    columns = _fit(_columns(rows), width)
    fitting = max(1, room - 1)
    hidden = len(rows) > fitting
    shown = max(1, fitting - 1) if hidden else fitting
    first = max(0, min(scene.first, len(rows) - shown))
    part = range(first, min(len(rows), first + shown))
    titles = [title for title, _ in columns]
    widths = [max(map(cell_len, [title, *(cells[i] for i in part)])) for title, cells in columns]
    lines = [Text(_line(titles, widths), style="bold")] if room > 1 else []
    lines += [
        Text(_line([cells[i] for _, cells in columns], widths), style=_style(rows[i][0], rows[i][2]))
        for i in part
    ]
    if hidden:
        lines.append(Text(f"… {first} above, {len(rows) - first - len(part)} below: ↑ ↓", style="dim"))
    return lines


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return GAP.join(set_cell_size(cell, width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _style(node: Watched, gone: bool) -> str:
    if gone:
        return "dim"
    return {True: "", None: "yellow", False: "red"}[node.peer.alive]


def _columns(rows: Sequence[tuple[Watched, float, bool]]) -> list[tuple[str, list[str]]]:
    nodes = [node for node, _, _ in rows]
    peers = [node.peer for node in nodes]
    told = any(node.free_mib is not None for node in nodes)
    columns = {
        "NODE": [describe_name(p) for p in peers],
        "STATE": [_state(node, gone).ljust(STATE_WIDTH) for node, _, gone in rows],
        "RTT": [_milliseconds(node.rtt_s) for node in nodes],
        "ADDRESS": [p.address or "not resolved" for p in peers],
        "VIA": [printable(p.interface or "", 16) for p in peers],
        "SPEED": [_speed(node.speed_mbit) for node in nodes],
        "GPUS": [describe_gpus(p) for p in peers],
        "FREE": [_free(node) for node in nodes] if told else [],
        "VRAM": [describe_memory(p) for p in peers],
        "JOB": [_jobs(node.seats) for node in nodes],
        "CLUSTER": _clusters(peers),
        "SEEN": [_seen(node, since, gone) for node, since, gone in rows],
    }
    return [(title, cells) for title, cells in columns.items() if any(cells)]


def _jobs(seats: Sequence[Seat]) -> str:
    """Return the first jobs in a cell that leaves room for others: anybody may claim hundreds of a node."""
    more = len(seats) - JOBS_NAMED
    text = "; ".join(map(describe_seat, seats[:JOBS_NAMED])) + (f"; {more} more" if more > 0 else "")
    return text if cell_len(text) <= JOB_WIDTH else set_cell_size(text, JOB_WIDTH - 1).rstrip() + "…"


def _clusters(peers: Sequence[Peer]) -> list[str]:
    names = [printable(p.cluster, NAME_LIMIT) for p in peers]
    return names if len(set(names)) > 1 else []


def _fit(columns: list[tuple[str, list[str]]], width: int) -> list[tuple[str, list[str]]]:
    """Return the columns that fit, without the least important ones."""
    for title in ("", *DROPPED):
        if title == OWN:
            columns = [(t, [c.replace(OWN, SHORT_OWN) for c in cells]) for t, cells in columns]
        columns = [column for column in columns if column[0] != title]
        wide = sum(max(map(cell_len, [t, *cells])) for t, cells in columns) + len(GAP) * (len(columns) - 1)
        if wide <= width:
            break
    return columns


def _state(node: Watched, gone: bool) -> str:
    if gone:
        return "left"
    if not node.asked and node.peer.address is not None:
        return "not asked"
    return {True: "alive", False: "no answer", None: "unknown"}[node.peer.alive]


def _milliseconds(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds * 1000:.2f} ms" if seconds < 0.01 else f"{seconds * 1000:.0f} ms"


def _speed(mbit: int | None) -> str:
    if not mbit:
        return ""
    return f"{mbit / 1000:g} Gbit/s" if mbit >= 1000 else f"{mbit} Mbit/s"


def _free(node: Watched) -> str:
    if node.free_mib is None:
        return UNKNOWN if node.peer.gpus else ""
    return gib(sum(node.free_mib))


def _seen(node: Watched, since: float, gone: bool) -> str:
    if gone:
        return f"{describe_age(since)} ago"
    if not node.asked:
        return ""
    if node.silent_s is None:
        return "never" if node.peer.alive is False else ""
    return "now" if node.silent_s < NOW_S and node.peer.alive else f"{describe_age(node.silent_s)} ago"


def describe_age(seconds: float) -> str:
    """Return a time that has passed in one unit: ``12 s``, ``5 min``, ``3 h``, ``2 d``."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
