"""The roll of a survey: this machine, everybody who was met, and those who were missed and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from avahi_gpu.files import txt
from avahi_gpu.model import (
    DEFAULT_CLUSTER,
    Address,
    Attached,
    Purpose,
    SurveyedNode,
    Versions,
    natural_order,
)
from avahi_gpu.survey import messages as m
from avahi_gpu.survey.inquiry import REFUSED, Meeting, Met, Missed, missing_nodes, name_of, unmet
from avahi_gpu.survey.station import Station

# one of each kind: the first control port, torch's store, the last of the workers' range, any high one
ASKED: tuple[tuple[int, Purpose], ...] = (
    (29400, "control"),
    (29500, "store"),
    (29999, "workers"),
    (0, "high"),
)


@dataclass
class Entry:
    """A node while it is surveyed. ``ports``: where somebody is sure to listen (True), or may."""

    node: SurveyedNode
    met: Met | None = None
    ports: tuple[tuple[int, Purpose, bool], ...] = ()


def enter(here: Station, meeting: Meeting, by_ssh: Mapping[str, str]) -> list[Entry]:
    """Return this machine, then everybody who was met, then those who were missed, each in natural order."""
    met = sorted(meeting.met.values(), key=lambda each: natural_order(name_of(each.about)))
    ends = Counter(each.line.here.partition("%")[0] for each in met)
    lan = [a.ip for n in here.witness.about.networks for a in n.addresses]
    address = ends.most_common(1)[0][0] if ends else next(iter(lan), "")
    entries = [Entry(_describe(here.witness.about, address, own=True))]
    entries += [Entry(_describe(each.about, each.address), each) for each in met]
    # a record that has gone tells of nobody any more: after a power cut that takes ten seconds
    announced = {d.id for d in here.doctors}
    missed = [one for key, one in meeting.missed.items() if key in announced or key in meeting.named]
    listed = sorted(missing_nodes(here, meeting), key=lambda service: natural_order(service.name))
    busy = {address.partition("%")[0] for address in meeting.queued}
    for service in listed:
        if service.address in busy:
            missed.append(Missed("busy", "somebody else asks it just now", service.address))
        of_it = [x for x in missed if x.address.partition("%")[0] == service.address]
        entries.append(_missing(service.name, service.host, service.address, of_it))
        if entries[-1].node.silence == "no-offer" and service.address in by_ssh:
            why = by_ssh[service.address]
            entries[-1].node = replace(entries[-1].node, silence="ssh", why=why)
    known = {e.node.address for e in entries}
    for one in missed:
        if one.address.partition("%")[0] not in known:
            entries.append(_missing(one.address, "", one.address, [one]))
    known = {e.node.address for e in entries}
    entries += [
        _missing(address, "", address, ())
        for address in unmet(meeting.named, here, meeting)
        if address.partition("%")[0] not in known
    ]
    entries += [
        Entry(SurveyedNode(name, silence="no-offer", why="nobody answers for its name"))
        for name in sorted(here.unresolved, key=natural_order)
    ]
    return _with_names_of_their_own(entries[: m.NODES_MAX])


def _missing(name: str, host: str, address: str, missed: Sequence[Missed]) -> Entry:
    if not missed:
        why = "no doctor answers there"
        return Entry(SurveyedNode(name, host, address, silence="no-offer", why=why))
    one = missed[0]
    if one.why == REFUSED:
        why = "its doctor has ended, or a firewall rejects what comes to it"
        return Entry(SurveyedNode(name, host, address.partition("%")[0], silence="no-offer", why=why))
    node = SurveyedNode(name, host, address.partition("%")[0], silence=one.silence, why=one.why)
    if one.silence != "unreached" or not one.port:
        return Entry(node)
    # its doctor is announced, so it is there: who gets no answer from it is cut off from it
    tried: list[tuple[int, Purpose, bool]] = [(port, what, False) for port, what in ASKED if port]
    return Entry(node, None, (*tried, (one.port, "doctor", True)) if host else ())


def _with_names_of_their_own(entries: list[Entry]) -> list[Entry]:
    count = Counter(e.node.name for e in entries)
    for number, entry in enumerate(entries, 1):
        if count[entry.node.name] > 1:
            where = entry.node.address or f"number {number}"
            entry.node = replace(entry.node, name=f"{entry.node.name} ({where})")
    return entries


def _describe(about: m.About, address: str, *, own: bool = False) -> SurveyedNode:
    networks = tuple(
        Attached(
            n.interface,
            n.mtu,
            tuple(Address(a.ip, a.prefix, 6 if ":" in a.ip else 4, "global") for a in n.addresses),
        )
        for n in about.networks
    )
    return SurveyedNode(
        name=name_of(about),
        host=about.host,
        address=address,
        own=own,
        hostname=about.hostname,
        id=about.node,
        cluster=about.cluster or DEFAULT_CLUSTER,
        networks=networks,
        gpus=about.gpus,
        gpu=about.gpu,
        versions=Versions(about.python, about.torch, about.cuda, about.nccl, about.driver),
        clock_s=0.0 if own else None,
    )


def elsewhere(here: Station) -> tuple[str, ...]:
    cluster = here.witness.about.cluster
    return tuple(sorted(s.name for s in here.nodes if not s.own and txt.read(s.txt).cluster != cluster))


def may_ask(entry: Entry) -> bool:
    return entry.node.own or (entry.met is not None and not entry.met.fault)


def ended(entry: Entry) -> SurveyedNode:
    if entry.met is not None and entry.met.fault:
        return replace(entry.node, silence="fault", why=entry.met.fault)
    return entry.node
