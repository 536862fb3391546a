"""The table and the picture of a cluster, for people and against them."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from avahi_gpu.model import ClusterView, Passage
from avahi_gpu.render.matrix import MEANINGS, WORDS, show_matrix, states_of, view_data
from avahi_gpu.render.picture import LOOKS, draw
from avahi_gpu.render.text import console
from tests.unit.checks.views import node, shut, view_of, with_way, without_doctor


def shown(view: ClusterView) -> list[str]:
    out = io.StringIO()
    show_matrix(view, console(out))
    return out.getvalue().splitlines()


def test_who_tries_stands_in_a_line_and_who_is_tried_in_a_column() -> None:
    header, first, second, third, legend, *_ = shown(with_way(view_of(), "n2", "n3", shut("high")))

    assert header.split() == ["from", "\\", "to", "1", "2", "3"]
    assert first.split() == ["1", "n1", "-", "ok", "ok"]
    assert second.split() == ["2", "n2", "ok", "-", "port"]
    assert third.split() == ["3", "n3", "ok", "ok", "-"]
    assert legend == "ok: all was reached; port: some ports are shut"


def test_ten_nodes_with_long_names_fit_into_eighty_columns() -> None:
    nodes = tuple(replace(node(n), name=f"a-very-long-name-of-a-node-{n}") for n in range(1, 11))
    lines = shown(ClusterView(nodes, tuple(Passage(a.name, b.name) for a in nodes for b in nodes if a != b)))

    assert max(map(len, lines)) <= 80 and len(lines) == 13


def test_a_node_that_was_not_asked_is_a_question() -> None:
    view = without_doctor(view_of(), "n3")

    assert states_of(view)["n1", "n3"] == states_of(view)["n3", "n1"] == "unknown"
    assert [w["state"] for w in view_data(view)["matrix"]].count("unknown") == 4


def test_every_state_has_a_word_a_meaning_and_a_look_of_its_own() -> None:
    assert set(WORDS) == set(MEANINGS) == set(LOOKS)
    assert len({(dashes, letter) for _, dashes, letter in LOOKS.values()}) == len(LOOKS)


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_name_makes_a_picture_and_a_table(name: str, address: str) -> None:
    view = ClusterView((replace(node(1), name=name), replace(node(2), address=address)))
    root = ET.fromstring(draw(view))

    assert root.tag.endswith("svg") and not [e for e in root.iter() if e.tag.endswith("script")]
    assert all(line.isprintable() for line in shown(view))


@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_a_picture_has_each_node_and_each_pair(count: int) -> None:
    root = ET.fromstring(draw(view_of(count)))
    texts = [e.text for e in root.iter() if e.tag.endswith("text")]
    titles = [e.text for e in root.iter() if e.tag.endswith("title")]

    assert [f"n{n}" for n in range(1, count + 1) if f"n{n}" not in texts] == []
    assert len(titles) == 1 + count * (count - 1) // 2
