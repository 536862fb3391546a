"""The TXT of a running node of a job (``_torch-rdzv._tcp``). Pure.

Identity and port decide; everything else is for people, and the protocol is right when it is stale or wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from avahi_gpu.files.job_txt import encode_part
from avahi_gpu.model import DOMAIN, JobPart, Service
from avahi_gpu.rendezvous.election import Candidate
from avahi_gpu.rendezvous.messages import PROTOCOL
from avahi_gpu.rendezvous.terms import Terms, show_nodes

VALUE_MAX = 200  # bytes of one value; a TXT item has 255 with its key (RFC 6763 section 6.1)
PRIORITY_MAX = 1_000_000


def encode_record(terms: Terms, own: Candidate, part: JobPart) -> tuple[bytes, ...]:
    """Return the TXT items of this node; at most 900 bytes, since each value is cut."""
    items = {
        "txtvers": "1",
        "proto": str(PROTOCOL),
        "id": own.id,
        "job": terms.job,
        "cluster": terms.cluster,
        "nodes": show_nodes(terms.min_nodes, terms.max_nodes),
        "procs": str(terms.skills.processes),
        "prio": str(own.priority),
        **encode_part(part),
    }
    return tuple(f"{k}=".encode() + _cut(v) for k, v in items.items())


def _cut(value: str) -> bytes:
    """Return a value as it is published; half a character at the end harms nobody."""
    return value.encode("utf-8", "replace")[:VALUE_MAX]


def _said(value: str) -> str:
    """Return a value as others read it in our record."""
    return _cut(value).decode("utf-8", "replace")


def decode_record(txt: Sequence[bytes]) -> dict[str, str]:
    """Return what the items say, keys in small letters, the first of a repeated key; never raises."""
    found: dict[str, str] = {}
    for item in txt:
        key, separator, value = item.partition(b"=")
        if separator and len(value) <= VALUE_MAX + 55:
            found.setdefault(key.decode("ascii", "replace").lower(), value.decode("utf-8", "replace"))
    return found


def cluster_apart(service: Service, terms: Terms) -> str:
    """Return the cluster of a service instance that is of a job of our name in another one, '' elsewhere."""
    record = decode_record(service.txt)
    cluster = record.get("cluster", "default")
    return cluster if record.get("job") == _said(terms.job) and cluster != _said(terms.cluster) else ""


def describe_apart(service: Service, cluster: str, terms: Terms) -> str:
    """Return the sentence about a node of our job's name in another cluster."""
    who = f"{host_of(service)} runs a job of this name in cluster {cluster}"
    return f"{who}, this one is in {terms.cluster}: is it the same job? Then give both the same --cluster"


def host_of(service: Service) -> str:
    """Return ``gpu-node-1`` of a service on ``gpu-node-1.local.``; '' where it names no host."""
    return service.host.rstrip(".").removesuffix("." + DOMAIN)[:255]


def candidate_from(service: Service, terms: Terms) -> Candidate | None:
    """Return the candidate that a service instance is, None where it is of another job or malformed."""
    record = decode_record(service.txt)
    if record.get("job") != _said(terms.job) or record.get("cluster", "default") != _said(terms.cluster):
        return None
    id = record.get("id", "")
    if not re.fullmatch(r"[0-9a-f]{16}", id) or not 1 <= service.port <= 65535:
        return None
    if service.protocol == 6 and service.address.lower().startswith("fe80"):
        return None  # torch cannot take an address with a scope
    priority = record.get("prio", "0")
    number = int(priority) if re.fullmatch(r"-?\d{1,7}", priority) else 0
    host = host_of(service) or id
    return Candidate(id, host, service.address, service.port, max(-PRIORITY_MAX, min(number, PRIORITY_MAX)))
