"""What a doctor publishes of itself (``_torch-doctor._tcp``): who it is, and whether it asks. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from avahi_gpu.model import Service
from avahi_gpu.rendezvous.record import decode_record

Role = Literal["answers", "asks"]
_ID = re.compile(r"[0-9a-f]{16}")
NAME_MAX = 63  # bytes of a DNS label (RFC 1035 section 2.3.4)


@dataclass(frozen=True)
class Doctor:
    """A doctor of another node, as its record says: hostile until it has shown more."""

    id: str  # of its start
    role: Role
    host: str  # gpu-node-2.local
    address: str
    port: int


def encode_doctor(id: str, role: Role) -> tuple[bytes, ...]:
    """Return the TXT items of a doctor."""
    return tuple(f"{key}={value}".encode() for key, value in (("txtvers", 1), ("id", id), ("role", role)))


def decode_doctor(service: Service) -> Doctor | None:
    """Return what a record says, None where it is none of ours."""
    told = decode_record(service.txt)
    id, role = told.get("id", ""), told.get("role", "")
    if not _ID.fullmatch(id) or role not in ("answers", "asks"):
        return None
    return Doctor(id, "asks" if role == "asks" else "answers", service.host, service.address, service.port)


def label_of(host: str, id: str) -> str:
    """Return the name of a record: unique by itself."""
    return f"{host.encode()[: NAME_MAX - 17].decode(errors='ignore')}-{id}"
