"""One DNS question and the head of its answer (RFC 1035 section 4): no more than nss-mdns itself looks at."""

from __future__ import annotations

import struct
from dataclasses import dataclass

HEADER_BYTES = 12
LABEL_MAX = 63
NAME_MAX = 255
TYPE_SOA = 6
CLASS_IN = 1

NOERROR, SERVFAIL, NXDOMAIN, REFUSED = 0, 2, 3, 5

_RESPONSE = 0x8000
_TRUNCATED = 0x0200
_RECURSION_DESIRED = 0x0100


@dataclass(frozen=True)
class Reply:
    """The head of an answer: its code, and how many records answer the question."""

    rcode: int
    answers: int
    truncated: bool = False


def make_query(number: int, name: str, rtype: int) -> bytes:
    """Return a question for ``name`` (``local.``; ``.`` is the root) with recursion desired.

    ``number`` (0 to 65535) is the one that its answer repeats. Raises ValueError for what is no domain name.
    """
    return struct.pack(">6H", number, _RECURSION_DESIRED, 1, 0, 0, 0) + _encode(name, rtype)


def read_reply(message: bytes, query: bytes) -> Reply | None:
    """Return what ``message`` answers to ``query``; None where it is no answer to it.

    The question must be repeated as it was, its capitals aside; only a server that refuses may leave it out,
    as glibc allows (res_send.c). Nothing behind the question is read: any bytes may stand there.
    """
    if len(message) < HEADER_BYTES:
        return None
    number, flags, questions, answers = struct.unpack(">4H", message[:8])
    if number != struct.unpack(">H", query[:2])[0] or not flags & _RESPONSE:
        return None
    rcode = flags & 0xF
    question = query[HEADER_BYTES:]
    repeated = message[HEADER_BYTES : HEADER_BYTES + len(question)].lower() == question.lower()
    if not (repeated and questions == 1) and not (questions == 0 and rcode != NOERROR):
        return None
    return Reply(rcode, answers, bool(flags & _TRUNCATED))


def _encode(name: str, rtype: int) -> bytes:
    labels = [label.encode("ascii") for label in name.rstrip(".").split(".") if name.rstrip(".")]
    if any(not 1 <= len(label) <= LABEL_MAX for label in labels):
        raise ValueError(f"{name!r} is no domain name")
    wire = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    if len(wire) > NAME_MAX:
        raise ValueError(f"{name!r} is too long for a domain name")
    return wire + struct.pack(">2H", rtype, CLASS_IN)
