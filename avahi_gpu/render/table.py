"""Peers for people: one line a node, columns that line up on a terminal and in a pipe alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from avahi_gpu.errors import AS_ROOT
from avahi_gpu.model import Peer
from avahi_gpu.render.text import printable

GAP = "  "
NAME_LIMIT = 63  # a name has 63 bytes at most; a GPU's is cut
GIB = 1024  # MiB

NOBODY = "No node is seen on this LAN."
NOBODY_HINT = (
    f"Run `{AS_ROOT} setup` on every machine that is to be one; `avahi-gpu doctor` tells what is in the way."
)
ALONE_HINT = "No other machine is seen: `avahi-gpu doctor` tells whether this one is deaf."


def peer_data(peer: Peer) -> dict[str, Any]:
    """Return a peer as ``peers --json`` shows it."""
    return {
        "id": peer.id,
        "name": peer.name,
        "host": peer.host,
        "address": peer.address,
        "interface": peer.interface,
        "port": peer.port,
        "alive": peer.alive,
        "self": peer.self,
        "cluster": peer.cluster,
        "gpus": peer.gpus,
        "gpu": peer.gpu,
        "vram_mib": list(peer.vram_mib),
        "versions": {
            "python": peer.versions.python,
            "torch": peer.versions.torch,
            "cuda": peer.versions.cuda,
            "nccl": peer.versions.nccl,
            "driver": peer.versions.driver,
        },
    }


def show_peers(peers: Sequence[Peer], out: Console) -> None:
    """Print the table of ``peers``, or that there are none."""
    if not peers:
        out.print(NOBODY)
        out.print(NOBODY_HINT)
        return
    header, *rows = align(table_of(peers))
    out.print(Text(header, style="bold"))
    for peer, row in zip(peers, rows, strict=True):
        out.print(Text(row, style="" if peer.alive else "yellow" if peer.alive is None else "red"))
    if all(peer.self for peer in peers):
        out.print(ALONE_HINT)


def table_of(peers: Sequence[Peer]) -> list[list[str]]:
    """Return header and rows; columns in which nobody has anything to say are left out."""
    columns = {
        "NODE": [describe_name(p) for p in peers],
        "ADDRESS": [p.address or "not resolved" for p in peers],
        "VIA": [printable(p.interface or "") for p in peers],
        "ALIVE": [_alive(p) for p in peers],
        "GPUS": [describe_gpus(p) for p in peers],
        "MEMORY": [describe_memory(p) for p in peers],
        "TORCH": [printable(p.versions.torch, 32) for p in peers],
        "CUDA": [printable(p.versions.cuda, 32) for p in peers],
        "CLUSTER": [printable(p.cluster, NAME_LIMIT) for p in peers],
    }
    if len(set(columns["CLUSTER"])) == 1:  # nothing to tell apart
        del columns["CLUSTER"]
    shown = {title: cells for title, cells in columns.items() if any(cells)}
    return [list(shown), *[list(row) for row in zip(*shown.values(), strict=True)]]


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return each row as one line; a column is as wide as its widest cell, counted in terminal cells."""
    widths = [max(cell_len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        GAP.join(
            cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def describe_present(peers: Sequence[Peer]) -> str:
    """Return who is there in a few words: ``gpu-node-1, gpu-node-3``."""
    return ", ".join(printable(p.name, NAME_LIMIT) for p in peers if p.alive) or "nobody"


def describe_strangers(peers: Sequence[Peer]) -> str:
    """Return which of those that are there are of another cluster than this machine, '' where none is."""
    own = [printable(p.cluster, NAME_LIMIT) for p in peers if p.self]
    others = [p for p in peers if p.alive and own and printable(p.cluster, NAME_LIMIT) not in own]
    if not others:
        return ""
    named = ", ".join(f"{printable(p.name, NAME_LIMIT)} ({printable(p.cluster, NAME_LIMIT)})" for p in others)
    return f"not of this cluster, {own[0]}: {named}"


def describe_event(before: Peer | None, now: Peer | None) -> str:
    """Return what changed about one peer in one line, '' where nothing that matters did."""
    peer = now or before
    if peer is None:
        return ""
    where = f"{describe_name(peer)}  {peer.address}"
    if now is None:
        return f"left       {describe_name(peer)}"
    if before is None:
        return f"joined     {where}"
    if before.address != now.address:
        return f"moved      {where}"
    if now.alive is False and before.alive is not False:
        return f"no answer  {where}"
    return f"answers    {where}" if now.alive and before.alive is False else ""


def describe_name(peer: Peer) -> str:
    """Return a peer's name, with a word where it is this machine."""
    return printable(peer.name, NAME_LIMIT) + (" (this machine)" if peer.self else "")


def _alive(peer: Peer) -> str:
    return {True: "yes", False: "no answer", None: "unknown"}[peer.alive]


def describe_gpus(peer: Peer) -> str:
    """Return ``2 × NVIDIA H100``, ``RTX 4090 (2), RTX 3090 (1)``, ``none`` or ''."""
    if not peer.gpus:
        return "none" if peer.address else ""
    if "(" in peer.gpu:  # several models, each with its count
        return printable(peer.gpu)
    return f"{peer.gpus} × {printable(peer.gpu, NAME_LIMIT)}" if peer.gpu else str(peer.gpus)


def describe_memory(peer: Peer) -> str:
    """Return ``2 × 24 GiB``, ``24 GiB + 12 GiB`` or ''."""
    sizes = Counter(gib(mib) for mib in peer.vram_mib if mib)
    return " + ".join(f"{count} × {size}" if count > 1 else size for size, count in sizes.items())


def gib(mib: int) -> str:
    """Return MiB as people say it: ``24 GiB``, ``512 MiB``."""
    return f"{round(mib / GIB)} GiB" if mib >= GIB else f"{mib} MiB"
