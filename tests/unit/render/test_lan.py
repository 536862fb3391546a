"""The picture of the LAN: well-formed and legible whatever the nodes are called, in light and in dark."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from avahi_gpu.model import Address, Interface, Job, JobNode, JobPart, Peer, Versions
from avahi_gpu.render.card import CARD_WIDTH
from avahi_gpu.render.drawing import COLOURS, HEAT_COLOURS, WIDE, fit, on_heat
from avahi_gpu.render.lan import draw_lan

SVG = "{http://www.w3.org/2000/svg}"
SMALL_TEXT = 4.5  # the contrast that WCAG 2.1 asks of it (1.4.3)
# no text is of these colours, or has these as its ground
GROUNDS = {"paper", "card", "edge", "rail", "chip", "own", *HEAT_COLOURS, "white", "black"}
ETH0 = Interface(
    "eth0", 2, "wired", up=True, running=True, multicast=True, speed_mbit=2500,
    addresses=(Address("192.0.2.1", 24, 4, "global"),),
)  # fmt: skip


def peer(number: int, *, alive: bool | None = True, gpus: int = 2) -> Peer:
    name = f"gpu-node-{number}"
    model = "NVIDIA GeForce RTX 4090" if gpus else ""
    return Peer(
        f"{number:012x}", name, f"{name}.local", f"192.0.2.{number}", "eth0", 29500, "default", alive,
        number == 1, gpus, model, (24564,) * gpus, Versions(),
    )  # fmt: skip


def node(number: int, rank: int | None) -> JobNode:
    host = f"gpu-node-{number}"
    part = JobPart(running=rank is not None, rank=rank)
    return JobNode(host, f"{number:016x}", host, f"192.0.2.{number}", "eth0", 29400, "llama", part=part)


LEADER = node(2, 0)
LLAMA = Job(
    "llama", "default", members=(LEADER, node(1, 1)), waiting=(node(3, None),), leader=LEADER,
    leader_host="gpu-node-2", round=4, size=2,
)  # fmt: skip


def parse(peers: Sequence[Peer], jobs: Sequence[Job] = ()) -> ET.Element:
    return ET.fromstring(draw_lan(peers, jobs, [ETH0]))


def texts(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def boxes(root: ET.Element) -> list[tuple[float, float, float, float]]:
    """Return left, top, right, bottom of every card."""
    found = []
    for rect in root.iter(f"{SVG}rect"):
        x, y, width, height = (float(rect.get(key, "0")) for key in ("x", "y", "width", "height"))
        if width == CARD_WIDTH:
            found.append((x, y, x + width, y + height))
    return found


def test_a_node_shows_its_name_address_gpus_and_part_in_a_job() -> None:
    root = parse([peer(1), peer(2), peer(3, gpus=0)], [LLAMA])
    told = texts(root)

    assert {"gpu-node-1", "192.0.2.2", "2 × 24 GiB", "RTX 4090", "no GPU", "this machine"} <= set(told)
    assert {"llama: rank 1", "★ llama: leads", "llama: waits"} <= set(told)
    assert "eth0 of this machine · wired · 2.5 Gbit/s · 192.0.2.1/24" in told
    assert "3 nodes, 4 GPUs, 1 job running" in told
    assert "llama: round 4 on 2 nodes, leader gpu-node-2" in told


def test_it_says_in_words_what_it_shows() -> None:
    root = parse([peer(1), peer(2, alive=False)], [LLAMA])
    title, what = root.find(f"{SVG}title"), root.find(f"{SVG}desc")

    assert title is not None and title.text == "2 nodes, 2 GPUs, 1 job running"
    assert what is not None and what.text is not None
    assert "gpu-node-2 at 192.0.2.2, no answer, 2 × RTX 4090" in what.text
    assert "leader gpu-node-2" in what.text


def test_who_does_not_answer_is_cut_off_by_shape_and_not_by_colour_alone() -> None:
    def broken(*peers: Peer) -> int:
        return len(re.findall("stroke-dasharray", draw_lan(peers, [], [ETH0])))

    assert broken(peer(1), peer(2)) == 0
    assert broken(peer(1), peer(2, alive=False)) == 2
    assert "no answer" in texts(parse([peer(1), peer(2, alive=False)]))
    assert broken(replace(peer(2), address=None, interface=None)) == 2


def test_networks_and_clusters_are_told_apart() -> None:
    told = texts(parse([peer(1), replace(peer(2), interface="wlan0", cluster="lab")]))

    assert "wlan0 of this machine" in told
    assert "in lab" in told
    assert "in lab" not in texts(parse([replace(peer(2), cluster="lab")]))  # we ourselves are of none


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 9, 10, 16, 20, 60])
def test_cards_stand_apart_and_inside_the_picture(count: int) -> None:
    root = parse([peer(n, alive=n % 3 != 0, gpus=n % 10) for n in range(1, count + 1)], [LLAMA])
    cards = boxes(root)

    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    assert len(cards) == count
    assert all(0 < x1 < x2 < width and 0 < y1 < y2 < height for x1, y1, x2, y2 in cards)
    for (left, top, right, bottom), (x1, y1, x2, y2) in itertools.combinations(cards, 2):
        assert right < x1 or x2 < left or bottom < y1 or y2 < top
    assert count < 5 or width < 1400


def test_hundreds_of_nodes_are_counted_instead_of_drawn() -> None:
    root = parse([replace(peer(n % 250), name=f"n{n}") for n in range(300)])

    assert len(boxes(root)) == 200
    assert "100 nodes more are not drawn" in texts(root)


@settings(max_examples=60)
@given(st.text(max_size=300), st.text(max_size=80), st.text(max_size=80), st.integers(0, 300))
def test_names_of_others_neither_break_out_nor_run_over(name: str, model: str, job: str, gpus: int) -> None:
    evil = replace(peer(2), name=name, gpu=model, gpus=gpus, cluster=job, vram_mib=(1,) * gpus)
    text = draw_lan([peer(1), evil], [replace(LLAMA, name=job, leader_host=name)], [ETH0])
    root = ET.fromstring(text)

    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        "svg", "title", "desc", "style", "rect", "circle", "line", "text", "g",
    }  # fmt: skip
    attributes = {key for element in root.iter() for key in element.attrib}
    assert not {a for a in attributes if a.startswith("on") or "href" in a}
    for left, top, right, bottom in boxes(root):
        for element in root.iter(f"{SVG}text"):
            x, y, size = (float(element.get(key, "0")) for key in ("x", "y", "font-size"))
            if left < x < right and top < y < bottom and element.get("text-anchor") is None:
                assert x + cell_len(element.text or "") * size * WIDE <= right


def test_what_does_not_fit_ends_in_an_ellipsis() -> None:
    assert fit("gpu-node-1", 200, 15) == "gpu-node-1"
    assert fit("x" * 100, 58, 10) == "x" * 9 + "…"
    assert cell_len(fit("節" * 100, 58, 10)) <= 10


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(ink: str, ground: str, scheme: int) -> float:
    one, other = luminance(COLOURS[ink][scheme]), luminance(COLOURS[ground][scheme])
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("ink", [name for name in COLOURS if name not in GROUNDS])
def test_every_ink_is_readable_on_paper_and_card(ink: str, scheme: int) -> None:
    for ground in ("paper", "card"):
        assert contrast(ink, ground, scheme) >= SMALL_TEXT, (ink, ground)


def test_every_number_is_readable_on_the_heat_map() -> None:
    for step, ground in enumerate(HEAT_COLOURS):
        for scheme in (0, 1):
            assert contrast(on_heat(step), ground, scheme) >= SMALL_TEXT, ground


def test_dark_colours_wait_for_who_prefers_them() -> None:
    text = draw_lan([peer(1)], [], [ETH0])

    assert "@media (prefers-color-scheme: dark){" in text
    assert f'fill="{COLOURS["paper"][0]}"' in text  # a viewer without style sheets shows the light ones
