"""What all nodes see of each other: a small table for people, and the same as data."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from avahi_gpu.model import ClusterView, Passage, SurveyedNode, Trial
from avahi_gpu.render.table import align
from avahi_gpu.render.text import printable

WIDTH = 80  # cells of a terminal; a column takes six, a number three
WORDS = {
    "ok": "ok",
    "names": "name",
    "frames": "size",
    "ports": "port",
    "blocked": "NONE",
    "unknown": "?",
}
MEANINGS = {
    "ok": "all was reached",
    "names": "reached, but its name does not resolve",
    "frames": "small packets pass, large ones do not",
    "ports": "some ports are shut",
    "blocked": "nothing gets through",
    "unknown": "not asked",
}
STYLES = {
    "ok": "green",
    "names": "yellow",
    "frames": "red",
    "ports": "red",
    "blocked": "bold red",
    "unknown": "magenta",
}


def show_matrix(view: ClusterView, out: Console) -> None:
    """Print the table: who tries stands in a line, who is tried in a column."""
    if len(view.nodes) < 2:
        return
    states = states_of(view)
    rows = [["from \\ to", *(str(n) for n, _ in enumerate(view.nodes, 1))]]
    width = max(8, WIDTH - 3 - 6 * len(view.nodes))
    for number, node in enumerate(view.nodes, 1):
        cells = ["-" if node is other else WORDS[states[node.name, other.name]] for other in view.nodes]
        rows.append([f"{number} {shorten(printable(node.name), width)}", *cells])
    header, *lines = align(rows)
    out.print(Text(header, style="bold"))
    for node, line in zip(view.nodes, lines, strict=True):
        worst = [states[node.name, other.name] for other in view.nodes if other is not node]
        shown = next((s for s in ("blocked", "ports", "frames", "names", "unknown") if s in worst), "ok")
        out.print(Text(line, style=STYLES[shown]))
    used = dict.fromkeys(s for s in MEANINGS if s in states.values())
    out.print(Text("; ".join(f"{WORDS[s]}: {MEANINGS[s]}" for s in used), style="dim"))
    if view.elsewhere:
        out.print(f"of another cluster, and left alone: {printable(', '.join(view.elsewhere))}")
    out.print("")


def shorten(name: str, width: int) -> str:
    """Return a name that takes at most ``width`` characters."""
    return name if len(name) <= width else name[: width - 1] + "…"


def states_of(view: ClusterView) -> dict[tuple[str, str], str]:
    """Return the state of every ordered pair; ``unknown`` where nobody could try."""
    known = {(p.source, p.target): p.state for p in view.passages}
    pairs = ((a.name, b.name) for a in view.nodes for b in view.nodes if a is not b)
    return {pair: known.get(pair, "unknown") for pair in pairs}


def view_data(view: ClusterView) -> dict[str, Any]:
    """Return ``{"nodes": […], "matrix": […]}``: every node, and every ordered pair of them."""
    known = {(p.source, p.target): p for p in view.passages}
    pairs = ((a.name, b.name) for a in view.nodes for b in view.nodes if a is not b)
    return {
        "nodes": [_node_data(n) for n in view.nodes],
        "matrix": [_passage_data(known.get(pair, Passage(*pair))) for pair in pairs],
    }


def _node_data(node: SurveyedNode) -> dict[str, Any]:
    versions = node.versions
    return {
        "name": node.name,
        "host": node.host,
        "address": node.address or None,
        "self": node.own,
        "asked": node.asked,
        "why": node.why,
        "id": node.id,
        "hostname": node.hostname,
        "mtu": next((n.mtu for n in node.networks if any(a.ip == node.address for a in n.addresses)), None),
        "gpus": node.gpus,
        "gpu": node.gpu,
        "clock_s": None if node.clock_s is None else round(node.clock_s, 4),
        "clock_error_s": round(node.clock_error_s, 4),
        "versions": {
            "python": versions.python,
            "torch": versions.torch,
            "cuda": versions.cuda,
            "nccl": versions.nccl,
            "driver": versions.driver,
        },
    }


def _passage_data(passage: Passage) -> dict[str, Any]:
    return {
        "from": passage.source,
        "to": passage.target,
        "state": passage.state,
        "glibc": _trial_data(passage.glibc),
        "avahi": _trial_data(passage.avahi),
        "ping": _trial_data(passage.echo),
        "full_frame": _trial_data(passage.frame),
        "tcp": [{"port": t.port, "purpose": t.purpose, "ok": t.ok, "words": t.words} for t in passage.ports],
    }


def _trial_data(trial: Trial) -> dict[str, Any]:
    return {"ok": trial.ok, "words": trial.words, "took_s": round(trial.took_s, 4)}
