"""The TXT of a node of a running job (``_torch-rdzv._tcp``), as people are shown it. All of it is hostile.

Keys: ``txtvers=1 proto id job cluster nodes procs prio state epoch leader``, and where there is something to
tell ``lid rank size since began restarts``: see ``model.JobPart``. ``nodes`` is ``3`` or ``2:3``, ``state``
is ``run`` or ``look``.
"""

from __future__ import annotations

import re

from avahi_gpu.files.txt import read_values
from avahi_gpu.model import DEFAULT_CLUSTER, DOMAIN, JobNode, JobPart, Service

RUNNING, LOOKING = "run", "look"  # values of ``state``
NODES_MAX = 9999  # more than that of one job is no number of nodes
EPOCH_MAX = 10**9
TIME_MIN, TIME_MAX = 1_500_000_000, 10**11  # 2017, before there was such a record, and the year 5138
PRIORITY_MAX = 1_000_000  # of the node that --master names
NAME_MAX = 200  # characters of a job or cluster, as rendezvous.record cuts them

_ID = re.compile(r"[0-9a-f]{16}")
_NUMBER = re.compile(r"[0-9]{1,11}")
_PRIORITY = re.compile(r"-?[0-9]{1,7}")


def encode_part(part: JobPart) -> dict[str, str]:
    """Return keys and values of what a node tells of its part; what is not known has no key."""
    values = {
        "state": RUNNING if part.running else LOOKING,
        "epoch": str(part.epoch),
        "leader": part.leader,
        "lid": part.leader_id,
        "rank": _shown(part.rank),
        "size": _shown(part.size),
        "since": _shown(part.since),
        "began": _shown(part.began),
        "restarts": str(part.restarts) if part.restarts else "",
    }
    return {k: v for k, v in values.items() if v or k == "leader"}


def _shown(value: int | None) -> str:
    return "" if value is None else str(value)


def read_job_node(service: Service, interface: str | None = None) -> JobNode | None:
    """Return the node that a service instance is, None where it names no job or has no id."""
    values = read_values(service.txt)
    job, id = values.get("job", "")[:NAME_MAX], values.get("id", "")
    if not job or not _ID.fullmatch(id):
        return None
    smallest, largest = _read_nodes(values.get("nodes", ""))
    priority = values.get("prio", "")
    return JobNode(
        name=service.name,
        id=id,
        host=service.host.rstrip(".").removesuffix("." + DOMAIN)[:255],
        address=service.address,
        interface=interface,
        port=service.port,
        job=job,
        cluster=values.get("cluster", "")[:NAME_MAX] or DEFAULT_CLUSTER,
        self=service.own,
        min_nodes=smallest,
        max_nodes=largest,
        processes=_number(values.get("procs", ""), NODES_MAX) or 0,
        priority=max(-PRIORITY_MAX, min(PRIORITY_MAX, int(priority))) if _PRIORITY.fullmatch(priority) else 0,
        part=_read_part(values),
    )


def _read_part(values: dict[str, str]) -> JobPart:
    running = values.get("state", "") == RUNNING
    size = _number(values.get("size", ""), NODES_MAX) if running else None
    leader_id = values.get("lid", "")
    return JobPart(
        running=running,
        epoch=_number(values.get("epoch", ""), EPOCH_MAX) or 0,
        leader=values.get("leader", "")[:NAME_MAX],
        leader_id=leader_id if _ID.fullmatch(leader_id) else "",
        rank=_number(values.get("rank", ""), NODES_MAX) if running else None,
        size=size or None,
        since=_time(values.get("since", "")),
        began=_time(values.get("began", "")),
        restarts=_number(values.get("restarts", ""), EPOCH_MAX) or 0,
    )


def _read_nodes(text: str) -> tuple[int, int]:
    """Return smallest and largest number of nodes, (0, 0) where the text does not tell them."""
    first, colon, last = text.partition(":")
    smallest, largest = _number(first, NODES_MAX), _number(last if colon else first, NODES_MAX)
    if not smallest or not largest or smallest > largest:
        return 0, 0
    return smallest, largest


def _number(text: str, limit: int) -> int | None:
    value = int(text) if _NUMBER.fullmatch(text) else None
    return value if value is not None and value <= limit else None


def _time(text: str) -> int | None:
    value = _number(text, TIME_MAX)
    return value if value is not None and value >= TIME_MIN else None
