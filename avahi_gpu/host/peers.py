"""The cluster's nodes as this machine sees them: who is listed, where, with what GPUs, and who answers."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType

from avahi_gpu.avahi.browse import RELIABLE_S, RESOLVE_GRACE_S, Appeared, Browser, Left
from avahi_gpu.avahi.bus import Avahi
from avahi_gpu.avahi.names import avahi_missing
from avahi_gpu.files import txt
from avahi_gpu.host.net import PROBE_WITHIN_S, lan_interfaces, probe
from avahi_gpu.model import (
    DEFAULT_CLUSTER,
    NODE_SERVICE,
    Gpu,
    Interface,
    NodeFacts,
    Peer,
    Service,
    Versions,
    natural_order,
)

PROBE_AGAIN_S = 1.0  # who does not answer is asked again as long as somebody waits
SEEN_WITHIN_S = RELIABLE_S  # without a number of peers to wait for


@dataclass(frozen=True)
class Sighting:
    """A resolved service and what the probe of its address said so far."""

    service: Service
    alive: bool | None = None
    probed: bool = False


class PeerWatch:
    """Browses for nodes and probes each; an async context manager. ``peers()`` tells the state at any time.

    Who does not answer is asked again every second; who does, no more: ``host.watch`` goes on. With
    ``cluster`` nodes of that one alone are told. Entering it raises a BusError where Avahi is not there.
    """

    def __init__(self, avahi: Avahi, interfaces: Sequence[Interface], *, cluster: str | None = None) -> None:
        self._cluster = cluster
        prefer = [i.index for i in lan_interfaces(interfaces)]
        self._interfaces = {i.index: i.name for i in interfaces}
        self._browser = Browser(avahi, NODE_SERVICE, prefer=prefer)
        self._sightings: dict[str, Sighting] = {}
        self._probes: dict[str, asyncio.Task[None]] = {}
        self._follow: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    async def __aenter__(self) -> PeerWatch:
        await self._browser.__aenter__()
        self._follow = asyncio.get_running_loop().create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks = [*self._probes.values(), *([self._follow] if self._follow else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._browser.__aexit__(kind, error, trace)

    def peers(self) -> list[Peer]:
        """Return who is seen now; see ``make_peers``."""
        peers = make_peers(self._sightings.values(), self._browser.unresolved, self._interfaces)
        return [p for p in peers if self._cluster is None or p.cluster == self._cluster]

    def count(self) -> int:
        """Return ``count_present`` of those that are probed."""
        unprobed = {name for name, sighting in self._sightings.items() if not sighting.probed}
        return count_present(p for p in self.peers() if p.name not in unprobed)

    @property
    def is_settled(self) -> bool:
        """Whether everybody seen so far is resolved and probed."""
        return not self._browser.unresolved and all(s.probed for s in self._sightings.values())

    async def change(self, within_s: float) -> bool:
        """Wait until something has changed since the last call; False where nothing does in time."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._changed.wait(), max(0.0, within_s))
        changed = self._changed.is_set()
        self._changed.clear()
        return changed

    async def _run(self) -> None:
        async for event in self._browser:
            if isinstance(event, Left):
                self._drop(event.name)
            elif isinstance(event, Appeared):
                self._add(event.service)
            self._changed.set()

    def _add(self, service: Service) -> None:
        self._drop(service.name)
        if service.own:
            self._sightings[service.name] = Sighting(service, alive=True, probed=True)
            return
        self._sightings[service.name] = Sighting(service)
        self._probes[service.name] = asyncio.get_running_loop().create_task(self._probe(service))

    def _drop(self, name: str) -> None:
        self._sightings.pop(name, None)
        task = self._probes.pop(name, None)
        if task is not None:
            task.cancel()

    async def _probe(self, service: Service) -> None:
        address = service.address
        if ipaddress.ip_address(address).version == 6 and ipaddress.ip_address(address).is_link_local:
            address = f"{address}%{service.interface}"
        while True:
            alive = await probe(address, service.port, PROBE_WITHIN_S)
            self._sightings[service.name] = Sighting(service, alive, probed=True)
            self._changed.set()
            if alive:
                return
            await asyncio.sleep(PROBE_AGAIN_S)


async def look_for_peers(
    avahi: Avahi,
    interfaces: Sequence[Interface],
    *,
    expect: int | None = None,
    within_s: float = SEEN_WITHIN_S,
    tell: Callable[[list[Peer]], None] = lambda _: None,
    cluster: str | None = None,
) -> list[Peer]:
    """Return the peers, this machine among them: once ``expect`` are there, or after ``within_s``.

    What was seen but is neither resolved nor probed by then has a moment more; whoever turns out to be dead
    is not counted, and the wait goes on. ``tell`` is called with the peers whenever they change.
    ``cluster``: those of that one alone. Raises a BusError.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + within_s
    async with PeerWatch(avahi, interfaces, cluster=cluster) as watch:
        while True:
            while loop.time() < end and (expect is None or watch.count() < expect):
                tell(watch.peers())
                await watch.change(end - loop.time())
            settled_by = loop.time() + max(RESOLVE_GRACE_S, PROBE_WITHIN_S)
            while not watch.is_settled and (left_s := settled_by - loop.time()) > 0:
                await watch.change(left_s)
            if loop.time() >= end or (expect is not None and watch.count() >= expect):
                break
        if not avahi.on_bus:
            raise avahi_missing()
        return watch.peers()


def count_present(peers: Iterable[Peer]) -> int:
    """Return how many peers are there to work with, this machine included.

    Those of ``fellows`` that are resolved and not known to be silent.
    """
    return sum(p.address is not None and p.alive is not False for p in fellows(peers))


def fellows(peers: Iterable[Peer]) -> list[Peer]:
    """Return those of this machine's own cluster; all of them where this machine does not publish itself."""
    peers = list(peers)
    own = {p.cluster for p in peers if p.self}
    return [p for p in peers if not own or p.cluster in own]


# --- from services to peers, pure ------------------------------------------------------------------------


def make_peers(
    sightings: Iterable[Sighting], unresolved: Iterable[str], interfaces: Mapping[int, str]
) -> list[Peer]:
    """Return one peer for each node, in natural order of names.

    A node id that is seen twice at one address is one node: after a change of its name the old entry lingers.
    At different addresses they are two, clones that share a machine-id; one of them may be dead.
    ``interfaces``: index -> name.
    """
    by_id: dict[str, list[Peer]] = {}
    for sighting in sightings:
        peer = _make_peer(sighting, interfaces)
        by_id.setdefault(peer.id or f"name {peer.name}", []).append(peer)
    peers = [peer for same in by_id.values() for peer in _merge(same)]
    known = {p.name for p in peers}
    peers += [_unresolved_peer(name) for name in unresolved if name not in known]
    return sorted(peers, key=lambda p: (natural_order(p.name), p.name))


def _merge(same: Sequence[Peer]) -> list[Peer]:
    best_first = sorted(same, key=lambda p: (not p.self, p.alive is not True, p.alive is False))
    kept: dict[str | None, Peer] = {}
    for peer in best_first:
        kept.setdefault(peer.address, peer)
    return list(kept.values())


def _make_peer(sighting: Sighting, interfaces: Mapping[int, str]) -> Peer:
    service = sighting.service
    facts: NodeFacts = txt.read(service.txt)
    return Peer(
        id=facts.id,
        name=service.name,
        host=service.host,
        address=service.address,
        interface=interfaces.get(service.interface),
        port=service.port,
        cluster=facts.cluster,
        alive=sighting.alive,
        self=service.own,
        gpus=len(facts.gpus),
        gpu=describe_models(facts.gpus),
        vram_mib=tuple(g.vram_mib for g in facts.gpus),
        versions=facts.versions,
        models=tuple(dict.fromkeys(g.name for g in facts.gpus if g.name)),
        priority=facts.priority,
    )


def _unresolved_peer(name: str) -> Peer:
    return Peer(
        id="",
        name=name,
        host="",
        address=None,
        interface=None,
        port=0,
        cluster=DEFAULT_CLUSTER,
        alive=None,
        self=False,
        gpus=0,
        gpu="",
        vram_mib=(),
        versions=Versions(),
    )


def describe_models(gpus: Sequence[Gpu]) -> str:
    """Return the models in words: ``NVIDIA H100``, or ``RTX 4090 (2), RTX 3090 (1)`` where they differ."""
    counts: dict[str, int] = {}
    for gpu in gpus:
        name = gpu.name or "unknown model"
        counts[name] = counts.get(name, 0) + 1
    if len(counts) == 1:
        (name,) = counts
        return "" if name == "unknown model" else name
    return ", ".join(f"{name} ({count})" for name, count in counts.items())
