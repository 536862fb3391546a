"""From the records of nodes to jobs. Pure; anything may be missing, stale, contradictory or a lie.

What the most records agree on is taken for true, and what does not fit is said. A record that claims anything
by itself changes nothing about a round of two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from statistics import median_low
from typing import TypeVar

from avahi_gpu.model import Job, JobNode, natural_order

CLOCKS_APART_S = 30  # members begin a round within a second: beyond this their clocks differ
NOTES_MAX = 6  # of one job; whoever makes more contradictions than that is not worth more words
NAMED_MAX = 4  # hosts in one sentence

T = TypeVar("T", bound=Hashable)


def make_jobs(nodes: Iterable[JobNode]) -> tuple[Job, ...]:
    """Return the jobs of ``nodes`` by cluster and name, each node once; the order of ``nodes`` means nothing.

    Two rounds of one job that both have their leader are two entries: the network, or the job, is split.
    """
    of_job: dict[tuple[str, str], list[JobNode]] = {}
    for node in sorted(nodes, key=_order):
        of_job.setdefault((node.cluster, node.job), []).append(node)
    jobs = [job for (cluster, name), some in of_job.items() for job in _make(cluster, name, some)]
    return tuple(sorted(jobs, key=lambda j: (*_name_order(j.cluster), *_name_order(j.name))))


def _make(cluster: str, name: str, nodes: Sequence[JobNode]) -> list[Job]:
    rounds: dict[tuple[int, str], list[JobNode]] = {}
    for node in nodes:
        if node.part.running:
            rounds.setdefault(_round_of(node), []).append(node)
    best_first = sorted(rounds.values(), key=lambda some: (-len(some), -some[0].part.epoch, _order(some[0])))
    main = best_first[0] if best_first else []
    splits = [some for some in best_first[1:] if _has_leader(some)]
    seated = [node for some in [main, *splits] for node in some]
    waiting, notes = _spares([n for n in nodes if n not in seated], main)
    found = [_job(cluster, name, main, waiting, notes)]
    if splits:
        said = f"{1 + len(splits)} groups run this job side by side"
        found = [_with_note(found[0], said), *(_job(cluster, name, s, [], [said]) for s in splits)]
    return found


def _job(
    cluster: str, name: str, members: Sequence[JobNode], waiting: Sequence[JobNode], notes: Sequence[str]
) -> Job:
    everyone = [*members, *waiting]
    members = sorted(members, key=lambda n: (n.part.rank is None, n.part.rank or 0, _order(n)))
    leader = next((n for n in members if _leads(n)), None)
    size = _most([n.part.size for n in members if n.part.size]) or len(members)
    ranges = [(n.min_nodes, n.max_nodes) for n in everyone if n.max_nodes]
    smallest, largest = _most(ranges) or (0, 0)
    since = _moment(members or waiting, leader)
    ran = [n.part.since - n.part.began for n in members or waiting if n.part.since and n.part.began]
    said = list(notes)
    if len(set(ranges)) > 1:
        said.append(f"its nodes were started with different --nnodes: {_each(everyone, ranges)}")
    return Job(
        name=name,
        cluster=cluster,
        members=tuple(members),
        waiting=tuple(waiting),
        leader=leader,
        leader_host=leader.host if leader else _most([n.part.leader for n in members if n.part.leader]) or "",
        round=members[0].part.epoch if members else None,
        size=size if members else 0,
        since=since,
        # durations by the nodes' own clocks, so that it does not matter whether these agree
        began=since - max(0, *ran, 0) if since and ran else None,
        restarts=max((n.part.restarts for n in members or waiting), default=0),
        min_nodes=smallest,
        max_nodes=largest,
        notes=tuple([*_contradictions(members, leader, size), *said][:NOTES_MAX]),
    )


def _contradictions(members: Sequence[JobNode], leader: JobNode | None, size: int) -> list[str]:
    """Return what does not fit together in the records of one round."""
    if not members:
        return []
    found = []
    if leader is None and any(n.part.leader_id for n in members):
        found.append(f"its leader, {members[0].part.leader or 'of an unknown name'}, is not seen")
    elif leader is not None and leader.part.rank:
        found.append(f"{leader.host} leads and says that its rank is {leader.part.rank}, not 0")
    ranks = Counter(n.part.rank for n in members if n.part.rank is not None)
    for rank, count in sorted(ranks.items()):
        if count > 1:
            both = _names([n for n in members if n.part.rank == rank])
            found.append(f"{count} nodes say that they have rank {rank}: {both}")
    if len(members) < size:
        lost = [rank for rank in range(min(size, 1000)) if rank not in ranks]
        which = ", ".join(map(str, lost[:NAMED_MAX])) + (" …" if len(lost) > NAMED_MAX else "")
        found.append(f"{size - len(members)} of its {size} members not seen: rank {which}")
    elif len(members) > size or len({n.part.size for n in members if n.part.size}) > 1:
        found.append(f"its nodes do not agree on how many members the round has: {len(members)} are seen")
    starts = [n.part.since for n in members if n.part.since]
    if starts and max(starts) - min(starts) > CLOCKS_APART_S:
        found.append(f"the clocks of its members are {max(starts) - min(starts)} s apart")
    return found


def _spares(nodes: Sequence[JobNode], main: Sequence[JobNode]) -> tuple[list[JobNode], list[str]]:
    """Return the nodes that are in no round, and what is to be said of their records.

    A host runs one node of a job: another record of its is of a start that has ended, and goes by itself.
    """
    places = {(n.host, n.address) for n in main}
    kept: dict[tuple[str, str], JobNode] = {}
    old: list[JobNode] = []
    for node in sorted(nodes, key=lambda n: (-n.part.running, -(n.part.since or 0), _order(n))):
        place = (node.host, node.address)
        (old if place in places or place in kept else []).append(node)
        if place not in places:
            kept.setdefault(place, node)
    notes = [f"a record of {_names(old)} is of a start that has ended"] if len(old) == 1 else []
    notes += [f"{len(old)} records of {_names(old)} are of starts that have ended"] if len(old) > 1 else []
    notes += [
        f"the record of {n.host} tells of round {n.part.epoch} under {n.part.leader or 'nobody'}"
        for n in kept.values()
        if n.part.running
    ]
    return sorted(kept.values(), key=_order), notes


def _round_of(node: JobNode) -> tuple[int, str]:
    return node.part.epoch, node.part.leader_id or node.part.leader


def _leads(node: JobNode) -> bool:
    return node.part.leader_id == node.id if node.part.leader_id else node.part.rank == 0


def _has_leader(nodes: Sequence[JobNode]) -> bool:
    """Whether these can be a round by themselves: with its leader, and at least half of its members."""
    size = _most([n.part.size for n in nodes if n.part.size]) or len(nodes)
    return any(_leads(n) for n in nodes) and 2 * len(nodes) >= size


def _moment(nodes: Sequence[JobNode], leader: JobNode | None) -> int | None:
    """Return since when, by this machine's own clock if it is one of them, else by the leader's, or most."""
    own = next((n.part.since for n in nodes if n.self and n.part.since), None)
    starts = [n.part.since for n in nodes if n.part.since]
    return own or (leader.part.since if leader else None) or (median_low(starts) if starts else None)


def _with_note(job: Job, note: str) -> Job:
    return replace(job, notes=(note, *job.notes)[:NOTES_MAX])


def _each(nodes: Sequence[JobNode], ranges: Sequence[tuple[int, int]]) -> str:
    told = []
    for smallest, largest in sorted(set(ranges))[:NAMED_MAX]:
        who = _names([n for n in nodes if (n.min_nodes, n.max_nodes) == (smallest, largest)])
        told.append(f"{smallest if smallest == largest else f'{smallest}:{largest}'} on {who}")
    return "; ".join(told)


def _names(nodes: Sequence[JobNode]) -> str:
    hosts = list(dict.fromkeys(n.host or n.name for n in nodes))
    return ", ".join(hosts[:NAMED_MAX]) + (" …" if len(hosts) > NAMED_MAX else "")


def _most(values: Sequence[T]) -> T | None:
    """Return the value that is there most often, the first of equals in their order; None of none."""
    counts = Counter(values)
    return min(counts, key=lambda v: (-counts[v], v), default=None)


def _name_order(name: str) -> tuple[object, ...]:
    return natural_order(name), name


def _order(node: JobNode) -> tuple[object, ...]:
    return *_name_order(node.host), node.id, node.address, node.port, node.name
