"""The live table as lines: it fits every terminal, sorts, and says no more than is known."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from avahi_gpu.model import Peer, Seat, Versions, Watched
from avahi_gpu.render.watch import SORTS, Order, Scene, describe_age, draw, press, rows_shown, sort_nodes

names = st.text(min_size=1, max_size=80) | st.sampled_from(["gpu-node-1", "\x1b[2J", "名前" * 20, "\u202e"])


def node(number: int = 1, *, alive: bool | None = True, own: bool = False, **more: object) -> Watched:
    peer = Peer(
        id=f"{number:012x}",
        name=f"gpu-node-{number}",
        host=f"gpu-node-{number}.local",
        address=f"10.0.0.{number}",
        interface="eth0",
        port=29500,
        cluster="default",
        alive=alive,
        self=own,
        gpus=number % 3,
        gpu="NVIDIA H100",
        vram_mib=(81559,) * (number % 3),
        versions=Versions(),
    )
    watched = Watched(peer, None if own else number / 1000, 0.5, 10_000)
    return replace(watched, **more)  # type: ignore[arg-type]


def shown(scene: Scene, width: int = 150, height: int = 24) -> list[str]:
    return [line.plain.rstrip() for line in draw(scene, width, height)]


@settings(max_examples=60)
@given(
    labels=st.lists(names, max_size=40),
    lines=st.lists(st.text(max_size=100), max_size=8),
    width=st.integers(1, 200),
    height=st.integers(1, 60),
    first=st.integers(0, 100),
    key=st.sampled_from([*SORTS]),
)
def test_it_fits_every_terminal(
    labels: list[str], lines: list[str], width: int, height: int, first: int, key: str
) -> None:
    nodes = [node(n) for n in range(len(labels))]
    nodes = [replace(n, peer=replace(n.peer, name=label)) for n, label in zip(nodes, labels, strict=True)]
    # what happened is made of printable words before it comes here
    clean = [line.encode("unicode_escape").decode() for line in lines]
    scene = Scene(nodes, lines=clean, order=Order(key), first=first, head="2 of 3 expected", alarm="alas")

    drawn = draw(scene, width, height)

    assert len(drawn) <= height
    for line in drawn:
        assert "\n" not in line.plain and "\x1b" not in line.plain and "\u202e" not in line.plain
        assert cell_len(line.plain) <= width


def test_everything_that_is_known_is_said() -> None:
    own = node(1, own=True, free_mib=(40960,), seats=(Seat("llama", 0, 2),))
    other = node(2, seats=(Seat("llama", 1, 2), Seat("next")))
    dead = node(3, alive=False, rtt_s=None, silent_s=75.0)

    head, titles, first, second, third, *_ = shown(Scene([own, other, dead]), width=220)

    assert head == "3 nodes, 2 alive, 1 silent"
    assert titles.split() == [
        "NODE",
        "STATE",
        "RTT",
        "ADDRESS",
        "VIA",
        "SPEED",
        "GPUS",
        "FREE",
        "VRAM",
        "JOB",
        "SEEN",
    ]
    assert first.split("  ")[0] == "gpu-node-1 (this machine)"
    assert "40 GiB  80 GiB" in first and "rank 0 of 2 in llama" in first
    assert "alive      2.00 ms  10.0.0.2  eth0  10 Gbit/s" in second
    assert " -  " in second  # a node does not tell what is free there
    assert "rank 1 of 2 in llama; waits in next" in second
    assert "no answer" in third and third.endswith("1 min ago") and " ms " not in third


def test_without_a_figure_there_is_no_column_of_dashes() -> None:
    titles = shown(Scene([node(1), node(2)]))[1].split()

    assert "FREE" not in titles and "JOB" not in titles


def test_a_narrow_terminal_keeps_what_matters_most() -> None:
    scene = Scene([node(1, own=True), node(2, alive=False, rtt_s=None)])
    wide = [len(shown(scene, width)[1].split()) for width in (150, 90, 60, 40, 24)]

    assert wide == sorted(wide, reverse=True)
    assert shown(scene, 24)[1].split() == ["NODE", "STATE"]
    assert shown(scene, 60)[2].startswith("gpu-node-1 *")
    assert shown(scene, 24)[3] == "gpu-node-2    no answer"
    assert shown(scene, 24)[-1].startswith(" [q]uit")


def test_a_low_terminal_shows_a_part_that_moves() -> None:
    nodes = [node(n) for n in range(1, 31)]

    top, bottom = shown(Scene(nodes), height=10), shown(Scene(nodes, first=99), height=10)

    assert [line.split()[0] for line in top[2:8]] == [f"gpu-node-{n}" for n in range(1, 7)]
    assert top[8] == "… 0 above, 24 below: ↑ ↓"
    assert [line.split()[0] for line in bottom[2:8]] == [f"gpu-node-{n}" for n in range(25, 31)]
    assert rows_shown(Scene(nodes), 10) == 6


def test_who_has_left_stands_below_for_a_while() -> None:
    lines = shown(Scene([node(2)], gone=[(node(1), 12.0)], order=Order("n")))

    assert lines[2].startswith("gpu-node-2") and lines[3].startswith("gpu-node-1")
    assert " left " in lines[3] and lines[3].endswith("12 s ago")


def test_nobody_is_told_only_after_a_look() -> None:
    assert shown(Scene([], looking=True))[1] == "looking for nodes …"
    assert shown(Scene([]))[1] == "No node is seen on this LAN."


def test_who_is_not_asked_is_not_called_dead() -> None:
    line = shown(Scene([node(1, alive=None, asked=False, silent_s=None)]))[2]

    assert "not asked" in line and "ago" not in line and "never" not in line


@pytest.mark.parametrize(
    ("key", "first", "last"),
    [
        ("n", 1, 10),
        ("s", 1, 2),
        ("a", 1, 10),
        ("r", 1, 10),
        ("g", 2, 9),
        ("v", 1, 9),
        ("j", 9, 10),
        ("l", 3, 2),
    ],
)
def test_every_key_sorts_and_again_turns_it_round(key: str, first: int, last: int) -> None:
    nodes = [node(n) for n in range(10, 0, -1)]
    nodes[8] = node(2, alive=False, silent_s=None)
    nodes[9] = replace(nodes[9], free_mib=(200_000,))
    nodes[1] = replace(nodes[1], seats=(Seat("a", 0, 1),))
    nodes[7] = replace(nodes[7], silent_s=0.1)
    order = press(Order("?"), key)

    found = [n.peer.name.rpartition("-")[2] for n in sort_nodes(nodes, order)]

    assert (found[0], found[-1]) == (str(first), str(last)), found
    assert press(order, key).reverse and press(order, "%") == order


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "0 s"), (59.4, "59 s"), (61, "1 min"), (7200, "2 h"), (200_000, "2 d")]
)
def test_an_age_has_one_unit(seconds: float, words: str) -> None:
    assert describe_age(seconds) == words


def test_hundreds_of_jobs_with_long_names_take_no_column_away() -> None:
    seats = tuple(Seat(f"{n}-" + "名" * 60, 0, 1) for n in range(400))

    header, row = shown(Scene([node(1, seats=seats)]), 150)[1:3]

    assert {"RTT", "ADDRESS", "JOB"} <= set(header.split())
    assert "10.0.0.1" in row and "…" in row
