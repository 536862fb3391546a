"""The TXT record of a node (RFC 6763 section 6): facts to items, items to facts. Everything read is hostile.

Keys, in this order: ``txtvers=1 id cluster gpus gpu vram cc driver cuda torch nccl python prio host``. What
is not known has no item. ``host`` is the kernel's host name: Avahi publishes another one where that is taken.
``gpus`` counts the GPUs; ``gpu`` (names), ``vram`` (MiB) and ``cc`` list them in order, equal neighbours as
``value*n``, and **the last value stands for all that remain**:

    gpus=8 gpu=NVIDIA H100 80GB HBM3 vram=81559 cc=9.0
    gpus=3 gpu=NVIDIA GeForce RTX 4090*2,NVIDIA GeForce RTX 3090 vram=24564*2,24576 cc=8.9*2,8.6

In names ``%``, ``,`` and ``*`` are written %25, %2C and %2A. A list that would be too long ends in an empty
value: the remaining ones are not told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from avahi_gpu.errors import AS_ROOT, MalformedInput
from avahi_gpu.model import DEFAULT_CLUSTER, Gpu, NodeFacts, Versions

TXT_VERSION = "1"
MAX_ITEM_BYTES = 255  # RFC 6763 section 6.1
MAX_TOTAL_BYTES = 1000  # with length bytes; beyond 1400 Avahi 0.8 publishes and silently sends nothing
MAX_ITEMS = 64  # read from one record; ours has 14
MAX_GPUS = 256  # of one node: 16 GPUs of 7 slices each, and some
MAX_VALUE_BYTES = {
    "gpu": 200,
    "vram": 150,
    "cc": 100,
    "cluster": 63,
    "host": 63,
}  # the sum stays below MAX_TOTAL_BYTES
MAX_NAME_BYTES = 64  # of a GPU; three times that with escapes
MAX_VRAM_MIB = 999_999_999
MAX_VERSION_BYTES = 32  # 2.13.0.dev20260101+cu130 has 24
MAX_PRIORITY = 9999

_ID = re.compile(r"[0-9a-f]{12}")
_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
_ESCAPES = {"%": "%25", ",": "%2C", "*": "%2A"}
_VERSION_KEYS = ("driver", "cuda", "torch", "nccl", "python")


def encode(facts: NodeFacts) -> tuple[bytes, ...]:
    """Return the items of ``facts``, together at most MAX_TOTAL_BYTES.

    What does not fit its place is cut; control characters are left out.
    """
    gpus = facts.gpus[:MAX_GPUS]
    values = {
        "txtvers": TXT_VERSION,
        "id": facts.id,
        "cluster": _clean(facts.cluster, MAX_VALUE_BYTES["cluster"]) or DEFAULT_CLUSTER,
        "gpus": str(len(gpus)),
        "gpu": _encode_list([_escape(_clean(g.name, MAX_NAME_BYTES)) for g in gpus], "gpu"),
        "vram": _encode_list([_encode_vram(g.vram_mib) for g in gpus], "vram"),
        "cc": _encode_list([_escape(_clean(g.cc, MAX_VERSION_BYTES)) for g in gpus], "cc"),
        **{key: _clean(getattr(facts.versions, key), MAX_VERSION_BYTES) for key in _VERSION_KEYS},
        "prio": str(_bounded_priority(facts.priority)),
        "host": _clean(facts.calls_itself, MAX_VALUE_BYTES["host"]),
    }
    return tuple(f"{key}={value}".encode() for key, value in values.items() if value)


def decode(items: Iterable[bytes], where: str = "TXT record") -> NodeFacts:
    """Return the facts in ``items``, in any order; unknown keys and senseless values are as if not there.

    Raises MalformedInput, with ``where`` as the sender, where there is no node id.
    """
    facts = read(items)
    if not facts.id:
        raise MalformedInput(
            where,
            "its TXT has no node id (id= and 12 hexadecimal digits)",
            f"let `{AS_ROOT} setup` write the service file on that machine",
        )
    return facts


def read(items: Iterable[bytes]) -> NodeFacts:
    """Return the facts in ``items`` like ``decode``; ``id`` is '' where there is none."""
    values = read_values(items)
    node_id = values.get("id", "").lower()
    cluster = _clean(values.get("cluster", ""), MAX_VALUE_BYTES["cluster"])
    return NodeFacts(
        id=node_id if _ID.fullmatch(node_id) else "",
        cluster=cluster or DEFAULT_CLUSTER,
        gpus=_read_gpus(values),
        versions=Versions(**{key: _clean(values.get(key, ""), MAX_VERSION_BYTES) for key in _VERSION_KEYS}),
        priority=_bounded_priority(_integer(values.get("prio", "")) or 0),
        calls_itself=_clean(values.get("host", ""), MAX_VALUE_BYTES["host"]),
    )


def read_values(items: Iterable[bytes]) -> dict[str, str]:
    """Return key and value of each item that has both: keys in lower case, the first of a repeated key wins.

    Items of more than 255 bytes and what is not UTF-8 are left out, control characters too.
    """
    values: dict[str, str] = {}
    for number, item in enumerate(items):
        if number >= MAX_ITEMS:
            break
        key, equals, value = item.partition(b"=")
        if not key or not equals or len(item) > MAX_ITEM_BYTES or not _is_key(key):
            continue
        text = _decoded(value)
        if text is not None:
            values.setdefault(key.decode("ascii").lower(), _clean(text, MAX_ITEM_BYTES))
    return values


def _is_key(key: bytes) -> bool:
    return all(0x20 <= byte <= 0x7E for byte in key)  # RFC 6763 section 6.4


def _decoded(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _clean(text: str, limit: int) -> str:
    """Return ``text`` without what steers a terminal, cut to ``limit`` bytes."""
    visible = "".join(c for c in text if c.isprintable())
    return visible.encode("utf-8", "ignore")[:limit].decode("utf-8", "ignore").strip()


def _integer(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) else None


def _bounded_priority(priority: int) -> int:
    return max(-MAX_PRIORITY, min(MAX_PRIORITY, priority))


# --- lists of GPUs ---------------------------------------------------------------------------------------


def _escape(name: str) -> str:
    return "".join(_ESCAPES.get(c, c) for c in name)


def _unescape(name: str) -> str:
    for char, code in reversed(_ESCAPES.items()):  # % last, so that %252C stays %2C
        name = name.replace(code, char)
    return name


def _encode_vram(mib: int) -> str:
    return str(min(mib, MAX_VRAM_MIB)) if mib > 0 else ""


def _encode_list(values: Sequence[str], key: str) -> str:
    """Return ``a*2,b`` for ``a, a, b``, the last group's count left out; empty where nothing is known."""
    if not any(values):
        return ""
    groups = [(value, len(list(equal))) for value, equal in groupby(values)]
    parts = [value if count == 1 else f"{value}*{count}" for value, count in groups[:-1]]
    parts.append(groups[-1][0])
    text = ",".join(parts)
    while len(text.encode()) > MAX_VALUE_BYTES[key]:
        parts = [*parts[:-2], ""]  # what is left out is not known; better than a wrong one
        text = ",".join(parts)
    return text


def _decode_list(text: str, most: int) -> list[tuple[str, int]]:
    """Return the groups of a list: value and count, at most ``most`` values."""
    groups: list[tuple[str, int]] = []
    left = most
    for part in text.split(","):
        value, star, number = part.rpartition("*")
        count = _integer(number) if star else None
        if count is None:
            value, count = part, 1
        if count < 1 or left <= 0:
            continue
        count = min(count, left)
        left -= count
        groups.append((value.strip(), count))
    return groups


def _expand(text: str, size: int) -> list[str]:
    values = [value for value, count in _decode_list(text, size) for _ in range(count)]
    return [*values, *[values[-1] if values else ""] * (size - len(values))]


def _read_gpus(values: dict[str, str]) -> tuple[Gpu, ...]:
    size = _integer(values.get("gpus", ""))
    if size is None:  # a file written by hand: count what it lists
        listed = values.get("gpu") or values.get("vram") or ""
        size = sum(count for _, count in _decode_list(listed, MAX_GPUS)) if listed else 0
    size = max(0, min(MAX_GPUS, size))
    names = _expand(values.get("gpu", ""), size)
    memories = _expand(values.get("vram", ""), size)
    capabilities = _expand(values.get("cc", ""), size)
    return tuple(
        Gpu(
            _clean(_unescape(name), MAX_NAME_BYTES),
            max(0, _integer(memory) or 0),
            _clean(_unescape(capability), MAX_VERSION_BYTES),
        )
        for name, memory, capability in zip(names, memories, capabilities, strict=True)
    )
