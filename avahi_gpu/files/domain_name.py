"""Domain names, service types and host names by Avahi's own rules (avahi-common/domain.c)."""

from __future__ import annotations

import ipaddress
import re

LABEL_LIMIT = 63  # bytes, RFC 1035 section 2.3.4
NAME_LIMIT = 1013  # bytes of a name with its escapes, AVAHI_DOMAIN_NAME_MAX less the final zero

_ESCAPE = re.compile(rb"\\(?:([\\.])|([0-9]{3}))")


def labels_of(name: str) -> tuple[bytes, ...] | None:
    """Return the unescaped labels; None where the name is not valid. The root is an empty tuple.

    A dot at the end changes nothing. ``\\.``, ``\\\\`` and ``\\DDD`` are the only escapes.
    """
    raw = name.encode("utf-8", "surrogateescape")
    if len(raw) > NAME_LIMIT:
        return None
    if raw in (b"", b"."):
        return ()
    labels, label, at = [], bytearray(), 0
    while at < len(raw):
        if raw[at : at + 1] == b".":
            labels.append(bytes(label))
            label.clear()
            at += 1
        elif raw[at : at + 1] == b"\\":
            escape = _ESCAPE.match(raw, at)
            code = int(escape[2]) if escape and escape[2] else 1
            if escape is None or not 0 < code < 256:
                return None
            label += escape[1] or bytes([code])
            at = escape.end()
        else:
            label.append(raw[at])
            at += 1
    if label:
        labels.append(bytes(label))
    return tuple(labels) if all(_is_label(label) for label in labels) else None


def _is_label(label: bytes) -> bool:
    try:
        label.decode()
    except UnicodeDecodeError:
        return False
    return 0 < len(label) <= LABEL_LIMIT


def is_service_type(name: str) -> bool:
    """Whether ``name`` is a type like ``_torch._tcp``: a name of two bytes or more, then the transport."""
    labels = labels_of(name)
    if labels is None or len(labels) != 2:
        return False
    return len(labels[0]) > 2 and labels[0].startswith(b"_") and labels[1].lower() in (b"_tcp", b"_udp")


def is_host_name(name: str) -> bool:
    """Whether ``name`` has a host and a domain and is no address."""
    labels = labels_of(name)
    if labels is None or len(labels) < 2:
        return False
    try:
        ipaddress.ip_address(b".".join(labels).decode())
    except ValueError:
        return True
    return False
