"""The rooms of the code as a picture: read from the imports of avahi_gpu, layer by layer.

An arrow that follows from others is left out: who imports ``host`` may import what ``host`` does.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations

from avahi_gpu.render.drawing import box, document, fit, group, line, paint, words
from tests.unit.test_arrows import ARROWS, EXCEPTIONS, FILES, PACKAGE, imports, is_pure

HOLDS = {  # what a room is for; the rest is read from the code
    "cli": "one module a command: parse, call, render",
    "checks": "facts to findings",
    "render": "tables, diffs, pictures",
    "launch": "preflight, torch's agent",
    "gauge": "measures the network",
    "survey": "all nodes try each other",
    "changes": "plan, journal, undo",
    "rendezvous": "how a job's nodes agree: a state machine with thin edges",
    "host": "the machine: one door to files and processes, facts read once",
    "avahi": "avahi-daemon over D-Bus: browsing and publishing",
    "files": "parsers and writers of every format: text in, data out",
    "model": "the words of the project as frozen data",
}
WIDTH, GAP, MARGIN = 208.0, 24.0, 28.0
STEP = WIDTH + GAP
HEIGHT, BETWEEN, TOP = 70.0, 40.0, 74.0
PILL = 18.0
SMALL = 11.0


@dataclass(frozen=True)
class Room:
    """A folder of the package. ``libraries``: of others, that it imports; ``pure``: all of it, or most."""

    name: str
    imports: frozenset[str]
    libraries: tuple[str, ...]
    pure: str


@dataclass(frozen=True)
class Spot:
    left: float
    right: float
    top: float


@cache
def read_rooms() -> dict[str, Room]:
    """Return the folders of avahi_gpu with what their modules import, single exceptions left out."""
    found: dict[str, set[str]] = {name: set() for name in ARROWS}
    libraries: dict[str, set[str]] = {name: set() for name in ARROWS}
    for place in FILES:
        room = place.split("/")[0]
        if "/" not in place:
            continue
        for _, name in imports(ast.parse((PACKAGE / place).read_text()), place):
            head, *rest = name.split(".")
            if head != "avahi_gpu":
                if head not in sys.stdlib_module_names and head not in ("tomli", "typing_extensions"):
                    libraries[room].add(head)
            elif rest and rest[0] in found and rest[0] != room and not _is_exception(place, name):
                found[room].add(rest[0])
    return {
        name: Room(name, frozenset(found[name]), tuple(sorted(libraries[name])), _purity(name))
        for name in ARROWS
    }


def _is_exception(place: str, name: str) -> bool:
    return any(place == p and name.startswith(n) for p, n in EXCEPTIONS)


def _purity(room: str) -> str:
    modules = [place for place in FILES if place.startswith(f"{room}/") and not place.endswith("__init__.py")]
    share = sum(map(is_pure, modules)) / len(modules)
    return "pure" if share == 1 else "pure core" if share > 0.4 else ""


def reduced(rooms: Mapping[str, Room]) -> dict[str, frozenset[str]]:
    """Return each room's imports without those that follow from others."""

    def reach(name: str) -> set[str]:
        return {name}.union(*(reach(other) for other in rooms[name].imports))

    found = {}
    for name, room in rooms.items():
        implied = set().union(*(reach(other) - {other} for other in room.imports))
        found[name] = frozenset(room.imports - implied)
    return found


def lay_out(arrows: Mapping[str, Iterable[str]]) -> dict[str, Spot]:
    """Return where each room stands: below all that import it, as wide as these together.

    The rooms of the second row, from which all others follow, stand in the first order, by name, in which
    the fewest arrows run through a room.
    """
    users: dict[str, list[str]] = {name: [u for u in arrows if name in set(arrows[u])] for name in arrows}

    def depth(name: str) -> int:
        return 1 + max((depth(user) for user in users[name]), default=-1)

    rows: dict[int, list[str]] = {}
    for name in arrows:
        rows.setdefault(depth(name), []).append(name)
    trials = (_place({**rows, 1: list(order)}, users) for order in permutations(sorted(rows[1])))
    return min(trials, key=lambda spots: len(crossings(arrows, spots)))


def crossings(arrows: Mapping[str, Iterable[str]], spots: Mapping[str, Spot]) -> list[tuple[str, str]]:
    """Return the arrows that run through a room on their way, or find none straight down."""
    found = []
    for user, used in ((one, other) for one in arrows for other in arrows[one]):
        source, target, x = spots[user], spots[used], _way(spots[user], spots[used])
        between = [s for s in spots.values() if source.top < s.top < target.top]
        if not target.left < x < target.right or any(s.left <= x <= s.right for s in between):
            found.append((user, used))
    return found


def _place(rows: Mapping[int, Sequence[str]], users: Mapping[str, Sequence[str]]) -> dict[str, Spot]:
    spots: dict[str, Spot] = {}
    for number, name in enumerate(rows[1]):
        spots[name] = Spot(MARGIN + number * STEP, MARGIN + number * STEP + WIDTH, _top(1))
    for name in rows[0]:
        spots[name] = Spot(MARGIN, MARGIN + len(rows[1]) * STEP - GAP, _top(0))
    for row in sorted(rows)[2:]:
        of = [[spots[user] for user in users[name]] for name in rows[row]]
        wanted = [Spot(min(s.left for s in some), max(s.right for s in some), _top(row)) for some in of]
        spots.update(zip(rows[row], _apart(wanted), strict=True))
    return spots


def _way(source: Spot, target: Spot) -> float:
    """Return the middle of what both have of the width in common."""
    return (max(source.left, target.left) + min(source.right, target.right)) / 2


def _top(row: int) -> float:
    return TOP + row * (HEIGHT + BETWEEN)


def _apart(wanted: list[Spot]) -> list[Spot]:
    """Return the places of one row's rooms, which share the row where two want the same place."""
    if all(one.right < other.left or other.right < one.left for one, other in combinations(wanted, 2)):
        return wanted
    left = min(spot.left for spot in wanted)
    columns = round((max(spot.right for spot in wanted) - left + GAP) / STEP)
    edges = [left + columns * number // len(wanted) * STEP for number in range(len(wanted) + 1)]
    order = sorted(range(len(wanted)), key=lambda number: (wanted[number].left, number))
    found = {n: Spot(edges[at], edges[at + 1] - GAP, wanted[n].top) for at, n in enumerate(order)}
    return [found[number] for number in range(len(wanted))]


def draw_architecture() -> str:
    """Return the picture's text."""
    rooms = read_rooms()
    arrows = reduced(rooms)
    spots = lay_out(arrows)
    assert set(HOLDS) == set(rooms), "say in HOLDS what each room is for"
    width = max(spot.right for spot in spots.values()) + MARGIN
    bottom = max(spot.top for spot in spots.values()) + HEIGHT
    parts = [words(MARGIN, 42, "The rooms of avahi_gpu", size=20, bold=True)]
    for user in arrows:
        parts += [_arrow(spots, user, used) for used in sorted(arrows[user])]
    parts += [_side_door(spots, place, name) for place, name in _side_doors()]
    parts += [_room(room, spots[name]) for name, room in rooms.items()]
    told = (
        "An arrow: imports, and may import what lies further down its way. Dashed: that one module alone. "
        "Pure: no I/O, no clock, no chance."
    )
    parts.append(words(MARGIN, bottom + 28, told, ink="soft"))
    says = "; ".join(f"{user} imports {', '.join(sorted(arrows[user]))}" for user in arrows if arrows[user])
    return document(width, bottom + 48, "The rooms of avahi_gpu and who imports whom", f"{says}.", parts)


def _arrow(spots: Mapping[str, Spot], user: str, used: str) -> str:
    """Return an arrow straight down, in the middle of what both rooms have of their width in common."""
    source, target = spots[user], spots[used]
    x = _way(source, target)
    y1, y2 = source.top + HEIGHT, target.top
    shaft = line(x, y1, x, y2 - 8, stroke="rail")
    head = f'<path d="M{x - 5:g} {y2 - 9:g}h10l-5 8z"{paint("rail")}/>'
    return group([shaft, head], f"{user} imports {used}")


def _side_doors() -> list[tuple[str, str]]:
    """Return module and room of the single imports against the arrows, each pair once."""
    return sorted({(place, name.split(".")[1]) for place, name in EXCEPTIONS})


def _side_door(spots: Mapping[str, Spot], place: str, target: str) -> str:
    """Return the dashed way of one module to a room beside its own."""
    room, module = place.split("/")
    source, end = spots[room], spots[target]
    right = end.left >= source.left
    x1, x2 = (source.right - 8, end.left + 26) if right else (source.left + 8, end.right - 26)
    y1, y2 = source.top, end.top + HEIGHT
    way = f"M{x1:g} {y1:g}V{y2 + 34:g}C{x1:g} {y2 + 12:g} {x2:g} {y2 + 34:g} {x2:g} {y2 + 8:g}"
    dashed = f'<path d="{way}" stroke-width="1.5" stroke-dasharray="4 4"{paint("none", "warn")}/>'
    head = f'<path d="M{x2 - 5:g} {y2 + 9:g}h10l-5 -8z"{paint("warn")}/>'
    label = words(
        x1 + (-8 if right else 8), y1 - 8, module, size=SMALL, ink="warn", anchor="end" if right else "start"
    )
    return group([dashed, head, label], f"{place} alone imports {target}")


def _room(room: Room, spot: Spot) -> str:
    x, y, width = spot.left, spot.top, spot.right - spot.left
    drawn = [
        box(x, y, width, HEIGHT, fill="card", stroke="good" if room.pure == "pure" else "edge", round=10),
        words(x + 14, y + 25, f"{room.name}/", size=15, bold=True),
        words(x + 14, y + 44, fit(HOLDS[room.name], width - 28, 12), ink="soft"),
    ]
    right = x + width - 12
    if room.pure:
        long = len(room.pure) * 6.4 + 16
        drawn.append(box(right - long, y + 11, long, PILL, fill="chip", round=9))
        drawn.append(words(right - long / 2, y + 24, room.pure, size=SMALL, ink="good", anchor="middle"))
    if room.libraries:
        drawn.append(
            words(
                x + 14,
                y + 60,
                fit("uses " + ", ".join(room.libraries), width - 28, SMALL),
                size=SMALL,
                ink="blue",
            )
        )
    return group(drawn, f"{room.name}: {HOLDS[room.name]}")
