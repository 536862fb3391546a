"""Running jobs for people: a line for each job, and one below it for each of its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from avahi_gpu.model import Job, JobNode, Peer
from avahi_gpu.render.table import NAME_LIMIT, align
from avahi_gpu.render.text import printable

NOBODY = "No job runs on this LAN."
NOBODY_HINT = (
    "`avahi-gpu launch --nnodes N SCRIPT` on each node starts one; `avahi-gpu peers` shows the nodes, and "
    "`avahi-gpu doctor` tells what is in the way."
)
JOB_LIMIT = 40  # characters of a name in a column
NAMED_MAX = 8  # nodes in one sentence
AHEAD_S = 5  # a clock that is ahead of ours by less tells a moment ago
DASH = "–"
MINUTE, HOUR, DAY = 60, 3600, 86400


def job_data(job: Job, absent: Sequence[Peer]) -> dict[str, Any]:
    """Return a job as ``jobs --json`` shows it. ``absent``: nodes that it waits for, or might."""
    return {
        "name": job.name,
        "cluster": job.cluster,
        "state": "running" if job.running else "waiting",
        "leader": job.leader_host or None,
        "round": job.round,
        "size": job.size,
        "since": job.since,
        "began": job.began,
        "restarts": job.restarts,
        "min_nodes": job.min_nodes,
        "max_nodes": job.max_nodes,
        "wants": job.wants,
        "members": [_node_data(n) for n in job.members],
        "waiting": [_node_data(n) for n in job.waiting],
        "absent": [{"name": p.name, "alive": p.alive} for p in absent],
        "notes": list(job.notes),
    }


def _node_data(node: JobNode) -> dict[str, Any]:
    return {
        "id": node.id,
        "host": node.host,
        "address": node.address,
        "interface": node.interface,
        "port": node.port,
        "rank": node.part.rank,
        "processes": node.processes,
        "alive": node.alive,
        "self": node.self,
    }


def show_jobs(jobs: Sequence[tuple[Job, Sequence[Peer]]], cluster: str, now: int, out: Console) -> None:
    """Print ``jobs``, each with who is absent; those of ``cluster``, ours, come first. ``now``: Unix time."""
    if not jobs:
        out.print(NOBODY)
        out.print(NOBODY_HINT)
        return
    ours = [(job, absent) for job, absent in jobs if job.cluster == cluster]
    others = [(job, absent) for job, absent in jobs if job.cluster != cluster]
    header, *rows = align([HEADER, *[_row(job, now) for job, _ in [*ours, *others]]])
    if ours:
        out.print(Text(header, style="bold"))
        _show(ours, rows[: len(ours)], now, out)
    else:
        out.print(f"No job runs in the cluster of this machine, {printable(cluster, NAME_LIMIT)}.")
    rows = rows[len(ours) :]
    for other in dict.fromkeys(job.cluster for job, _ in others):
        same = [(job, absent) for job, absent in others if job.cluster == other]
        out.print()
        out.print(Text(f"Cluster {printable(other, NAME_LIMIT)}:"))
        out.print(Text(header, style="bold"))
        _show(same, rows[: len(same)], now, out)
        rows = rows[len(same) :]


def _show(jobs: Sequence[tuple[Job, Sequence[Peer]]], rows: Sequence[str], now: int, out: Console) -> None:
    for (job, absent), row in zip(jobs, rows, strict=True):
        out.print(Text(row, style="" if job.running else "yellow"))
        lines = align([_node_row(n) for n in job.nodes])
        for node, line in zip(job.nodes, lines, strict=True):
            out.print(Text(f"  {line}", style="red" if node.alive is False else ""))
        for sentence in sentences(job, absent, now):
            out.print(Text(f"  {sentence}", style="yellow"))


HEADER = ["JOB", "STATE", "LEADER", "NODES", "ROUND", "SINCE", "RESTARTS"]


def _row(job: Job, now: int) -> list[str]:
    since = ago(job.since, now)
    ran = ago(job.began, now)
    return [
        printable(job.name, JOB_LIMIT),
        "runs" if job.running else "waits",
        printable(job.leader_host, NAME_LIMIT) or DASH if job.running else DASH,
        _nodes(job),
        str(job.round) if job.running else DASH,
        f"{since} (job: {ran})" if job.restarts and ran not in (since, DASH) else since,
        str(job.restarts),
    ]


def _nodes(job: Job) -> str:
    """Return ``2 of 3``: how many there are, of how many that it takes."""
    there = len(job.members) if job.running else len(job.waiting)
    return f"{there} of {job.max_nodes}" if job.max_nodes else str(there)


def _node_row(node: JobNode) -> list[str]:
    part = "waits" if node.part.rank is None or not node.part.running else f"rank {node.part.rank}"
    more = [f"{node.processes} processes"] if node.processes > 1 else []
    more += ["no answer"] if node.alive is False else []
    own = " (this machine)" if node.self else ""
    return [part, (printable(node.host, NAME_LIMIT) or DASH) + own, node.address, ", ".join(more)]


def sentences(job: Job, absent: Sequence[Peer], now: int) -> list[str]:
    """Return what is to be said of a job: whom it waits for, and what contradicts itself."""
    found = []
    if job.wants:
        found.append(f"waits for {job.wants} node{'s' if job.wants > 1 else ''} more{_who(absent)}")
    elif not job.running:
        found.append("its nodes are there, and agree on a round just now or cannot reach each other")
    if job.since is not None and job.since > now + AHEAD_S:
        found.append(f"its clock is {_length(job.since - now)} ahead of this machine's")
    return [*found, *(printable(note, 1000) for note in job.notes)]


def _who(absent: Sequence[Peer]) -> str:
    there = [printable(p.name, NAME_LIMIT) for p in absent if p.alive is not False]
    silent = [printable(p.name, NAME_LIMIT) for p in absent if p.alive is False]
    words = f": start the same command on {_list(there)}" if there else ""
    if silent:
        words += f"{';' if there else ':'} {_list(silent)} {'do' if len(silent) > 1 else 'does'} not answer"
    return words or ": no other node of its cluster is seen"


def _list(names: Sequence[str]) -> str:
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def ago(moment: int | None, now: int) -> str:
    """Return how long ago a moment was, ``12 min``; a dash where it is not known or still to come."""
    if moment is None or moment > now + AHEAD_S:
        return DASH
    return _length(max(0, now - moment))


def _length(seconds: int) -> str:
    if seconds < MINUTE:
        return f"{seconds} s"
    if seconds < HOUR:
        return f"{seconds // MINUTE} min"
    if seconds < DAY:
        return f"{seconds // HOUR} h {seconds % HOUR // MINUTE} min"
    return f"{seconds // DAY} d {seconds % DAY // HOUR} h"


def describe_change(before: Job | None, now: Job | None) -> str:
    """Return what has become of a job in one line, '' where nothing that matters has changed."""
    if now is None:
        return f"{printable(before.name, JOB_LIMIT)}  is over" if before is not None else ""
    name = printable(now.name, JOB_LIMIT)
    if now.running:
        if before is not None and (before.round, before.members) == (now.round, now.members):
            return ""
        members = _list([printable(n.host, NAME_LIMIT) for n in now.members])
        leader = printable(now.leader_host, NAME_LIMIT) or "nobody known"
        unseen = now.size - len(now.members)
        more = f", {unseen} not seen" if unseen > 0 else ""
        return f"{name}  runs round {now.round}: {members}{more}; leader {leader}"
    if before is not None and not before.running and _ids(before) == _ids(now):
        return ""
    wants = f", waits for {now.wants} more" if now.wants else ""
    return f"{name}  waits: {_list([printable(n.host, NAME_LIMIT) for n in now.waiting])}{wants}"


def _ids(job: Job) -> list[str]:
    return [n.id for n in job.nodes]
