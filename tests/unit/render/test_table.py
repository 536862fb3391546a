"""The table of peers: columns line up, nothing from outside steers the terminal."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from avahi_gpu.errors import AS_ROOT
from avahi_gpu.model import Peer, Versions
from avahi_gpu.render.table import align, describe_event, describe_strangers, peer_data, show_peers, table_of
from avahi_gpu.render.text import console

PEER = Peer(
    id="0123456789ab",
    name="gpu-node-1",
    host="gpu-node-1.local",
    address="192.0.2.1",
    interface="eth0",
    port=29500,
    cluster="default",
    alive=True,
    self=False,
    gpus=2,
    gpu="RTX 4090",
    vram_mib=(24564, 24564),
    versions=Versions(torch="2.13.0"),
)


def shown(*peers: Peer) -> str:
    stream = io.StringIO()
    show_peers(peers, console(stream))
    return stream.getvalue()


def test_a_row_tells_where_a_node_is_and_what_it_has() -> None:
    header, row = table_of([PEER])

    assert dict(zip(header, row, strict=True)) == {
        "NODE": "gpu-node-1",
        "ADDRESS": "192.0.2.1",
        "VIA": "eth0",
        "ALIVE": "yes",
        "GPUS": "2 × RTX 4090",
        "MEMORY": "2 × 24 GiB",
        "TORCH": "2.13.0",
    }


def test_clusters_are_told_where_they_differ() -> None:
    assert "CLUSTER" in table_of([PEER, replace(PEER, cluster="other")])[0]


def test_nodes_of_another_cluster_are_named_with_it() -> None:
    here = replace(PEER, self=True, cluster="lab")
    other, silent = replace(PEER, name="gpu-node-2"), replace(PEER, name="gpu-node-3", alive=False)

    assert describe_strangers([here, other, silent]) == "not of this cluster, lab: gpu-node-2 (default)"
    assert describe_strangers([here, replace(other, cluster="lab")]) == ""
    assert describe_strangers([other]) == ""


@pytest.mark.parametrize(("alive", "word"), [(True, "yes"), (False, "no answer"), (None, "unknown")])
def test_alive_has_three_answers(alive: bool | None, word: str) -> None:
    assert word in shown(replace(PEER, alive=alive))


def test_different_gpus_and_none() -> None:
    mixed = replace(PEER, gpus=3, gpu="RTX 4090 (2), RTX 3090 (1)", vram_mib=(24564, 24564, 11264))
    bare = replace(PEER, gpus=0, gpu="", vram_mib=())

    text = shown(mixed, bare)

    assert "RTX 4090 (2), RTX 3090 (1)  2 × 24 GiB + 11 GiB" in text
    assert "none" in text


def test_nobody_there_is_said_with_what_to_do() -> None:
    text = shown()

    assert "No node is seen" in text
    assert f"{AS_ROOT} setup" in text


def test_this_machine_alone_is_said() -> None:
    text = shown(replace(PEER, self=True))

    assert "(this machine)" in text
    assert "No other machine" in text


def test_a_hostile_node_cannot_steer_the_terminal() -> None:
    evil = "\x1b[2J\x1b]0;pwned\x07\u202e[red]x[/red]\r\n"

    text = shown(replace(PEER, name=evil, gpu=evil, cluster=evil, versions=Versions(torch=evil)), PEER)

    assert all(c.isprintable() or c == "\n" for c in text)
    assert len(text.splitlines()) == 3
    assert "[red]x[/red]" in text


def test_lines_are_not_wrapped_in_a_pipe() -> None:
    wide = replace(PEER, name="n" * 63, gpu="g" * 63, versions=Versions(torch="t" * 32))

    assert len(shown(wide).splitlines()) == 2


@given(st.lists(st.lists(st.text("aä漢 🙂", max_size=8), min_size=3, max_size=3), min_size=1, max_size=5))
def test_columns_line_up_whatever_the_characters_width(rows: list[list[str]]) -> None:
    marked = [[f"{cell}|" for cell in row] for row in rows]

    lines = align(marked)

    widths = [max(cell_len(row[n]) for row in marked) for n in range(2)]
    for row, line in zip(marked, lines, strict=True):
        assert line.startswith(row[0])
        rest = line[len(row[0]) :]
        assert rest.startswith(" " * (widths[0] - cell_len(row[0]) + 2))


def test_json_has_the_shape_of_the_contract() -> None:
    assert peer_data(replace(PEER, address=None, interface=None, alive=None)) == {
        "id": "0123456789ab",
        "name": "gpu-node-1",
        "host": "gpu-node-1.local",
        "address": None,
        "interface": None,
        "port": 29500,
        "alive": None,
        "self": False,
        "cluster": "default",
        "gpus": 2,
        "gpu": "RTX 4090",
        "vram_mib": [24564, 24564],
        "versions": {"python": "", "torch": "2.13.0", "cuda": "", "nccl": "", "driver": ""},
    }


@pytest.mark.parametrize(
    ("before", "now", "word"),
    [
        (None, PEER, "joined"),
        (PEER, None, "left"),
        (PEER, replace(PEER, address="192.0.2.2"), "moved"),
        (PEER, replace(PEER, alive=False), "no answer"),
        (replace(PEER, alive=False), PEER, "answers"),
        (replace(PEER, alive=None), PEER, ""),
        (PEER, PEER, ""),
    ],
)
def test_a_change_is_one_line(before: Peer | None, now: Peer | None, word: str) -> None:
    line = describe_event(before, now)

    assert line.startswith(word)
    assert bool(line) == bool(word)
