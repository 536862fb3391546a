"""The nodes that the doctor has seen here since the machine started, so that it knows who is missing.

A hint and nothing more: whoever is in it is asked again before anything is said. In /run, so that it is
forgotten with the next start.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from avahi_gpu.errors import AvahiGpuError
from avahi_gpu.host.system import System
from avahi_gpu.model import PeerFacts

FOLDER = "/run/avahi-gpu"
FILE = f"{FOLDER}/peers.json"
KEPT_S = 86400.0  # who was taken out of service is not missed for longer
AT_MOST = 64  # nodes
SIZE_MAX = 64 * 1024
TEXT_MAX = 255  # characters of a name


@dataclass(frozen=True)
class Remembered:
    """A node as it was when it last answered; ``seen_at`` in seconds since 1970."""

    id: str
    name: str
    host: str
    address: str
    cluster: str
    seen_at: float


def recall(system: System, now: float | None = None) -> tuple[Remembered, ...]:
    """Return who was seen within a day; nobody where there is no memory, or one that is no use."""
    return parse(system.read(FILE, SIZE_MAX).content or b"", time.time() if now is None else now)


def parse(content: bytes, now: float) -> tuple[Remembered, ...]:
    """Return what a memory holds. What is malformed, old or of the future is left out."""
    try:
        entries = json.loads(content)["peers"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ()
    if not isinstance(entries, list):
        return ()
    found = [_read_entry(entry) for entry in entries[:AT_MOST]]
    return tuple(r for r in found if r is not None and 0 <= now - r.seen_at <= KEPT_S)


def _read_entry(entry: Any) -> Remembered | None:
    if not isinstance(entry, Mapping):
        return None
    texts = [entry.get(key) for key in ("id", "name", "host", "address", "cluster")]
    seen_at = entry.get("seen_at")
    if not all(isinstance(t, str) and len(t) <= TEXT_MAX for t in texts) or not isinstance(seen_at, int):
        return None
    id, name, host, address, cluster = map(str, texts)
    return Remembered(id, name, host, address, cluster, float(seen_at))


def remember(system: System, peers: Iterable[PeerFacts], now: float | None = None) -> None:
    """Add the peers that answer; the oldest go where they are too many. Never raises."""
    now = time.time() if now is None else now
    seen = [
        Remembered(p.id, p.name, p.host, p.address, p.cluster, now) for p in peers if p.alive and p.address
    ]
    if not seen or not system.is_root:
        return
    old = [r for r in recall(system, now) if not any(is_same(r, p.id, p.name) for p in seen)]
    kept = sorted([*seen, *old], key=lambda r: r.seen_at, reverse=True)[:AT_MOST]
    entries = [{**asdict(r), "seen_at": int(r.seen_at)} for r in kept]
    content = json.dumps({"version": 1, "peers": entries}).encode()
    with contextlib.suppress(AvahiGpuError):
        system.make_folder(FOLDER)
        system.write(FILE, content, 0o644)


def is_same(one: Remembered, id: str, name: str) -> bool:
    """Tell whether a node is the remembered one: by its id, by its name where one of them has none."""
    return one.id == id if one.id and id else one.name == name
