"""A measurement on a terminal, on a pipe, as data and as a picture."""

from __future__ import annotations

import io
import re
from xml.etree import ElementTree

import pytest
from rich.console import Console

from avahi_gpu.gauge.figures import estimate
from avahi_gpu.gauge.verdict import card_share, judge
from avahi_gpu.model.gauge import GaugedLink, GaugedNode, Measurement, Reduction
from avahi_gpu.render.gauge import heat_step, measurement_data, show_brief, show_measurement
from avahi_gpu.render.heat import draw_heat

HOSTILE = 'x"<script>alert(1)</script>&\x1b[31m\u202e'


def lan(count: int = 3, name: str = "gpu-node", *, curve: bool = True) -> Measurement:
    """The last node's cable gives a tenth of the others."""
    nodes = tuple(
        GaugedNode(f"{name}-{i + 1}", f"10.77.0.{i + 1}", "eth0", "wired", 1000, "full") for i in range(count)
    )
    links = tuple(
        GaugedLink(s, t, 94e6 if count - 1 in (s, t) else 941e6, 8e-5, 1.2e-4, 3e-4)
        for s in range(count)
        for t in range(count)
        if s != t
    )
    sizes = (Reduction(8, 0.0004, 200), Reduction(1 << 20, 0.02), Reduction(256 << 20, 4.6))
    return Measurement(nodes, links, sizes if curve else (), "gloo", count, "2.13.0+cpu")


def shown(measured: Measurement, *, terminal: bool = False) -> str:
    out = io.StringIO()
    console = Console(
        file=out,
        force_terminal=terminal,
        width=100,
        soft_wrap=True,
        highlight=False,
        emoji=False,
        markup=False,
    )
    show_measurement(measured, judge(measured), [estimate(measured, 7_000_000_000, "bf16")], console)
    return out.getvalue()


def test_the_tables_are_readable_without_colours() -> None:
    text = shown(lan())

    assert "TCP, Mbit/s\n                  →1    →2    →3\n" in text
    assert "  1 gpu-node-1     -   941  94.0" in text
    assert "  3 gpu-node-3  94.0  94.0     -" in text
    assert "round trip, µs" in text and "   120" in text
    assert re.search(r"256 MiB\s+4\.60 s\s+58\.4 MB/s\s+77\.8 MB/s", text)
    assert "slowest link: gpu-node-1 to gpu-node-3, 94.0 Mbit/s, 0.09 of the 1 Gbit/s of its cards" in text
    assert "every link to and from gpu-node-3 is slow" in text
    assert re.search(r"7B\s+14\.0 GB of bf16\s+4 min 0 s", text)
    assert "busbw = algbw × 2(n-1)/n" in text and "no overlap" in text
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines() if line.startswith("  1 ")) <= 80


def test_colours_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[" in shown(lan(), terminal=True)


def test_ten_nodes_fit_eighty_columns_and_more_are_listed() -> None:
    ten = shown(lan(10, "a-node-with-a-rather-long-name"))
    many = shown(lan(12))

    assert max(len(line) for line in ten.splitlines() if re.match(r" {0,2}\d+ a-node|  +→", line)) <= 80
    assert "SLOWEST OF   132 LINKS" in many and "→1" not in many


def test_what_was_not_measured_is_told() -> None:
    measured = lan(2, curve=False)
    links = (GaugedLink(0, 1, error="10.77.0.2 port 9: no answer"), *measured.links[1:])
    text = shown(Measurement(measured.nodes, links, omitted="gpu-node-2: torch is not installed there"))

    assert "failed" in text
    assert "all-reduce was not measured: gpu-node-2: torch is not installed there" in text


def test_names_from_the_network_steer_no_terminal_and_no_picture() -> None:
    measured = lan(2, HOSTILE)
    judged = judge(measured)
    out = io.StringIO()
    show_brief(measured, judged, HOSTILE, Console(file=out, soft_wrap=True, markup=False))
    text, picture = shown(measured) + out.getvalue(), draw_heat(measured, judged)

    for each in (text, picture):
        assert "\x1b" not in each and "\u202e" not in each
    assert "<script>" not in picture
    ElementTree.fromstring(picture)


def test_the_data_has_every_link_and_size() -> None:
    measured = lan()
    data = measurement_data(measured, judge(measured), [], lambda link: card_share(link, measured.nodes))

    assert len(data["links"]) == 6
    assert data["links"][1] == {
        "from": "gpu-node-1",
        "to": "gpu-node-3",
        "bits_per_s": 94_000_000,
        "share_of_cards": 0.094,
        "round_trip_s": 1.2e-4,
        "round_trip_best_s": 8e-5,
        "round_trip_p99_s": 3e-4,
        "resent": 0.0,
        "slow": True,
        "error": "",
    }
    last = data["all_reduce"]["sizes"][-1]
    assert last["busbw_gb_per_s"] == pytest.approx(last["algbw_gb_per_s"] * 4 / 3)
    assert data["slowest"] == {"from": "gpu-node-1", "to": "gpu-node-3"}


@pytest.mark.parametrize("count", [2, 3, 10, 40])
@pytest.mark.parametrize("curve", [True, False])
def test_the_picture_shows_every_link_and_stays_in_its_frame(count: int, curve: bool) -> None:
    measured = lan(count, curve=curve)
    picture = ElementTree.fromstring(draw_heat(measured, judge(measured)))
    space = "{http://www.w3.org/2000/svg}"
    _, _, width, height = map(float, picture.attrib["viewBox"].split())
    cells = [e for e in picture.iter(f"{space}rect") if re.fullmatch(r"f-heat\d", e.get("class", ""))]

    assert len(list(picture.iter(f"{space}g"))) == (count * (count - 1) if count <= 32 else 0)
    assert len(cells) == (count * (count - 1) if count <= 32 else 0) + 6  # and the legend's
    assert (len(list(picture.iter(f"{space}polyline"))) == 1) is curve
    for each in picture.iter():
        if "x" in each.attrib and "y" in each.attrib:
            assert 0 <= float(each.attrib["x"]) <= width and 0 <= float(each.attrib["y"]) <= height


def test_the_best_is_coldest() -> None:
    assert [heat_step(share) for share in (1.0, 0.94, 0.8, 0.7, 0.5, 0.3, 0.05, 0.0)] == [
        0,
        0,
        1,
        2,
        3,
        4,
        5,
        5,
    ]
