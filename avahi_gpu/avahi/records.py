"""DNS records of a service in wire format (RFC 1035 section 3, RFC 6763 sections 4 and 6). Pure."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from avahi_gpu.errors import MalformedInput

MAX_LABEL_BYTES = 63  # RFC 1035 section 2.3.4
MAX_NAME_BYTES = 255
MAX_TXT_ITEM_BYTES = 255
MAX_TXT_BYTES = 1000  # all items with their length bytes: beyond 1400 Avahi 0.8 silently sends nothing


def fit_label(text: str, limit: int = MAX_LABEL_BYTES) -> str:
    """Return ``text`` cut to ``limit`` bytes of UTF-8, never inside a character."""
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def escape_label(text: str) -> str:
    """Return one label as Avahi's calls take it inside a name (avahi_escape_label).

    A dot and a backslash get a backslash before them; whatever else is no letter, digit, ``-`` or ``_``
    is written as ``\\DDD``, byte by byte.
    """
    parts = []
    for byte in text.encode():
        char = chr(byte)
        if char in ".\\":
            parts.append("\\" + char)
        elif byte < 128 and (char.isalnum() or char in "-_"):
            parts.append(char)
        else:
            parts.append(f"\\{byte:03d}")
    return "".join(parts)


def encode_name(labels: Sequence[str]) -> bytes:
    """Return a domain name, uncompressed. Raises MalformedInput where a label or the name is too long."""
    wire = b""
    for label in labels:
        raw = label.encode()
        if not 0 < len(raw) <= MAX_LABEL_BYTES:
            raise MalformedInput(
                "DNS name",
                f"the label {label[:80]!r} has {len(raw)} bytes",
                f"a label has 1 to {MAX_LABEL_BYTES}",
            )
        wire += bytes([len(raw)]) + raw
    wire += b"\0"
    if len(wire) > MAX_NAME_BYTES:
        raise MalformedInput("DNS name", f"it has {len(wire)} bytes", f"a name has at most {MAX_NAME_BYTES}")
    return wire


def split_name(name: str) -> list[str]:
    """Return the labels of a host name or service type, which hold no escapes: ``_torch._tcp.local``."""
    return name.rstrip(".").split(".")


def encode_srv(port: int, target: str) -> bytes:
    """Return the data of an SRV record (RFC 2782): priority 0, weight 0, ``port``, ``target``."""
    return struct.pack("!HHH", 0, 0, port) + encode_name(split_name(target))


def encode_txt(items: Sequence[bytes]) -> bytes:
    """Return the data of a TXT record; without items it is one empty string (RFC 6763 section 6.1).

    Raises MalformedInput where an item or the whole is too long.
    """
    wire = b""
    for item in items:
        if not 0 < len(item) <= MAX_TXT_ITEM_BYTES:
            raise MalformedInput(
                "TXT record",
                f"an item has {len(item)} bytes",
                f"an item has 1 to {MAX_TXT_ITEM_BYTES}",
            )
        wire += bytes([len(item)]) + item
    if len(wire) > MAX_TXT_BYTES:
        raise MalformedInput(
            "TXT record", f"it has {len(wire)} bytes", f"all items together have at most {MAX_TXT_BYTES}"
        )
    return wire or b"\0"


def decode_txt(wire: bytes) -> tuple[bytes, ...]:
    """Return the items of a TXT record's data; what is cut off in the middle of an item is left out."""
    items: list[bytes] = []
    at = 0
    while at < len(wire):
        end = at + 1 + wire[at]
        if end > len(wire):
            break
        if end > at + 1:
            items.append(wire[at + 1 : end])
        at = end
    return tuple(items)
