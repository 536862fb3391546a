"""What ``bench`` has measured, for people: a heat map of the links, the all-reduce, and what it means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from avahi_gpu.model.gauge import Estimate, GaugedLink, Judgement, Measurement, Reduction
from avahi_gpu.model.units import (
    show_bandwidth,
    show_bytes,
    show_parameters,
    show_rate,
    show_seconds,
    show_speed,
    three_digits,
)
from avahi_gpu.render.drawing import COLOURS, HEAT_COLOURS, on_heat
from avahi_gpu.render.matrix import WIDTH
from avahi_gpu.render.table import align
from avahi_gpu.render.text import printable

CELL = 6  # characters of a number and the space before it
NODES_SHOWN = 10  # of a table; of more nodes the slowest links are listed
LINKS_LISTED = 10
NAME_MIN = 8
# the least share of the best link that has each of HEAT_COLOURS; the numbers say it all where there are none
HEAT = (0.9, 0.75, 0.6, 0.4, 0.2, 0.0)
HOW_COUNTED = (
    "Gbit/s and Mbit/s are of payload, one TCP stream at a time. algbw and busbw as nccl-tests define them: "
    "algbw = size / time, busbw = algbw × 2(n-1)/n; GB/s are 10⁹ bytes."
)


def show_measurement(
    measured: Measurement, judged: Judgement, estimates: Sequence[Estimate], out: Console
) -> None:
    """Print all of it."""
    show_links(measured, out)
    show_reductions(measured, out)
    out.print("")
    show_verdict(measured, judged, out)
    show_estimates(measured, estimates, out)
    out.print(Text(HOW_COUNTED, style="dim"))


def show_brief(measured: Measurement, judged: Judgement, leader: str, out: Console) -> None:
    """Print what a node says that does not lead."""
    show_verdict(measured, judged, out)
    out.print(f"the tables are on {printable(leader)}, which led")


def show_verdict(measured: Measurement, judged: Judgement, out: Console) -> None:
    """Print the sentences."""
    if judged.summary:
        out.print(Text(printable(judged.summary, 500)))
    for trouble in judged.troubles:
        out.print(Text(f"  {printable(trouble, 1000)}", style="yellow"))
    if measured.links and not judged.troubles:
        out.print("no link is far slower than the others or than its cards")


def show_links(measured: Measurement, out: Console) -> None:
    """Print the links: tables of rates and of round trips, or of many nodes the slowest ones."""
    if not measured.links:
        return
    for number, node in enumerate(measured.nodes, 1):
        card = [node.link, show_speed(node.speed_mbit) if node.speed_mbit else "", node.duplex]
        told = ", ".join(printable(word, 20) for word in card if word)
        where = f"{printable(node.interface, 15)} {printable(node.address, 64)}".strip()
        out.print(f"{number:>3} {printable(node.host, 63)}  {where}{f'  {told}' if told else ''}")
    out.print("")
    if len(measured.nodes) > NODES_SHOWN:
        list_links(measured, out)
        return
    best = max((link.bits_per_s or 0.0 for link in measured.links), default=0.0)
    unit, size = ("Gbit/s", 1e9) if best >= 1e9 else ("Mbit/s", 1e6)
    show_matrix(
        measured,
        f"TCP, {unit}",
        lambda x: None if x.bits_per_s is None else x.bits_per_s / size,
        out,
        heat_by=best / size,
    )
    show_matrix(
        measured, "round trip, µs", lambda x: None if x.round_trip_s is None else 1e6 * x.round_trip_s, out
    )


def show_matrix(
    measured: Measurement,
    title: str,
    value: Callable[[GaugedLink], float | None],
    out: Console,
    *,
    heat_by: float = 0.0,
) -> None:
    """Print one table: who sends stands in a line, who receives in a column."""
    links = {(link.source, link.target): link for link in measured.links}
    count = len(measured.nodes)
    width = max(NAME_MIN, WIDTH - CELL * count - 4)
    names = [
        f"{n:>3} {shorten_middle(printable(node.host), width)}" for n, node in enumerate(measured.nodes, 1)
    ]
    room = max(len(name) for name in names)
    out.print(Text(title, style="bold"))
    out.print(Text(" " * room + "".join(f"{f'→{n}':>{CELL}}" for n in range(1, count + 1)), style="bold"))
    for source, name in enumerate(names):
        line = Text(name.ljust(room))
        for target in range(count):
            link = links.get((source, target))
            number = value(link) if link is not None else None
            word = (
                "-"
                if source == target
                else "?"
                if link is None
                else "failed"
                if number is None
                else show_number(number)
            )
            style = heat_style((number or 0.0) / heat_by) if heat_by and link is not None else ""
            line.append(" ").append(f"{word:>{CELL - 1}}", style=style)
        out.print(line)
    out.print("")


def shorten_middle(name: str, width: int) -> str:
    """Return a name of at most ``width`` characters; both its ends stay, as names often end in a number."""
    if len(name) <= width:
        return name
    tail = (width - 1) // 2
    return f"{name[: width - 1 - tail]}…{name[len(name) - tail :]}"


def show_number(value: float) -> str:
    """Return a number that fits a cell."""
    return three_digits(value) if value < 99_999 else f"{value:.0e}"


def heat_step(share: float) -> int:
    """Return how hot a link is that gives this share of the best: 0 (as good as it) to 5."""
    return next(step for step, least in enumerate(HEAT) if share >= least)


def heat_style(share: float) -> str:
    """Return the colours of such a link on a terminal, those of the picture."""
    step = heat_step(share)
    return f"{on_heat(step)} on {COLOURS[HEAT_COLOURS[step]][0]}"


def list_links(measured: Measurement, out: Console) -> None:
    """Print the slowest links of many nodes."""
    ordered = sorted(measured.links, key=lambda link: link.bits_per_s or 0.0)
    rows = [["SLOWEST OF", f"{len(ordered)} LINKS", "RATE", "ROUND TRIP"]]
    for link in ordered[:LINKS_LISTED]:
        rate = "failed" if link.bits_per_s is None else show_rate(link.bits_per_s)
        trip = "" if link.round_trip_s is None else show_seconds(link.round_trip_s)
        names = [printable(measured.nodes[end].host, 40) for end in (link.source, link.target)]
        rows.append([names[0], f"→ {names[1]}", rate, trip])
    for line in align(rows):
        out.print(line)
    if measured.sampled:
        out.print(f"of {len(measured.nodes)} nodes each was measured with its neighbours alone")
    out.print("")


def show_reductions(measured: Measurement, out: Console) -> None:
    """Print the all-reduce by size, or why there is none."""
    if measured.omitted and not measured.failed:  # that is told as an error
        out.print(f"all-reduce was not measured: {printable(measured.omitted, 500)}")
    if not measured.reductions:
        return
    by = f"{printable(measured.backend, 15)}, torch {printable(measured.torch, 64)}"
    out.print(Text(f"all-reduce of {measured.ranks} processes over {by}", style="bold"))
    rows = [["SIZE", "TIME", "ALGBW", "BUSBW"]]
    for r in measured.reductions:
        widths = [show_bandwidth(each) for each in (r.size / r.seconds, bus_bandwidth(measured, r))]
        rows.append([show_bytes(r.size), show_seconds(r.seconds), *widths])
    for line in align(rows):
        out.print(line)


def bus_bandwidth(measured: Measurement, r: Reduction) -> float:
    """Return bytes per second over the link of each rank, as gauge.figures defines it."""
    return r.size / r.seconds * 2 * (measured.ranks - 1) / measured.ranks


def show_estimates(measured: Measurement, estimates: Sequence[Estimate], out: Console) -> None:
    """Print what exchanging the gradients takes, and what that assumes."""
    known = [estimate for estimate in estimates if estimate.seconds is not None]
    if not known:
        return
    out.print("")
    out.print(
        Text("exchanging all gradients once, as each step of data-parallel training does", style="bold")
    )
    rows = [["PARAMETERS", "GRADIENTS", "TIME"]]
    for e in known:
        size = f"{three_digits(e.size / 1e9)} GB" if e.size >= 1e9 else f"{three_digits(e.size / 1e6)} MB"
        rows.append([show_parameters(e.parameters), f"{size} of {e.dtype}", show_seconds(e.seconds or 0.0)])
    for line in align(rows):
        out.print(line)
    out.print(Text(assumption(measured, known), style="dim"))


def assumption(measured: Measurement, estimates: Sequence[Estimate]) -> str:
    """Return what the estimates rest on."""
    if not estimates[0].measured:
        return "A ring over the slowest link would take that long; no overlap with computing, no compression."
    largest = max(r.size for r in measured.reductions)
    return (
        f"By the measured all-reduce, beyond {show_bytes(largest)} at its bus bandwidth there; no overlap "
        "with computing, which hides a part of it, and no compression."
    )


# --- as data -----------------------------------------------------------------------------------------------


def measurement_data(
    measured: Measurement,
    judged: Judgement,
    estimates: Sequence[Estimate],
    share: Callable[[GaugedLink], float | None],
) -> dict[str, Any]:
    """Return ``bench --json``'s data. ``share``: of what a link's cards give."""
    names = [node.host for node in measured.nodes]
    return {
        "nodes": [
            {
                "name": node.host,
                "address": node.address,
                "interface": node.interface,
                "link": node.link,
                "speed_mbit": node.speed_mbit,
                "duplex": node.duplex or None,
            }
            for node in measured.nodes
        ],
        "links": [
            {
                "from": names[link.source],
                "to": names[link.target],
                "bits_per_s": None if link.bits_per_s is None else round(link.bits_per_s),
                "share_of_cards": None if share(link) is None else round(share(link) or 0.0, 4),
                "round_trip_s": link.round_trip_s,
                "round_trip_best_s": link.round_trip_best_s,
                "round_trip_p99_s": link.round_trip_p99_s,
                "resent": round(link.resent, 6),
                "slow": link in judged.slow,
                "error": link.error,
            }
            for link in measured.links
        ],
        "all_reduce": {
            "backend": measured.backend,
            "ranks": measured.ranks,
            "torch": measured.torch,
            "omitted": measured.omitted,
            "sizes": [
                {
                    "bytes": r.size,
                    "seconds": r.seconds,
                    "count": r.count,
                    "algbw_gb_per_s": r.size / r.seconds / 1e9,
                    "busbw_gb_per_s": bus_bandwidth(measured, r) / 1e9,
                }
                for r in measured.reductions
            ],
        },
        "slowest": None
        if judged.slowest is None
        else {"from": names[judged.slowest.source], "to": names[judged.slowest.target]},
        "summary": judged.summary,
        "troubles": list(judged.troubles),
        "gradients": [
            {
                "parameters": e.parameters,
                "dtype": e.dtype,
                "bytes": e.size,
                "seconds": e.seconds,
                "measured": e.measured,
            }
            for e in estimates
        ],
    }
