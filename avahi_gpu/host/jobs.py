"""The running jobs of the LAN: the records of their nodes as they come, change and go."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType

from avahi_gpu.avahi.browse import RELIABLE_S, RESOLVE_GRACE_S, Appeared, Browser
from avahi_gpu.avahi.bus import Avahi
from avahi_gpu.avahi.names import ANY, CLASS_IN, TYPE_TXT, avahi_missing
from avahi_gpu.avahi.records import decode_txt, escape_label
from avahi_gpu.errors import BusError
from avahi_gpu.files.job_groups import make_jobs
from avahi_gpu.files.job_txt import read_job_node
from avahi_gpu.host.net import PROBE_WITHIN_S, lan_interfaces, may_be_asked, probe
from avahi_gpu.host.questions import open_question
from avahi_gpu.model import DOMAIN, JOB_SERVICE, Interface, Job, JobNode, Peer, Service

NODES_MAX = 512  # records that are followed; what somebody floods the LAN with is not
PROBED_MAX = 64  # nodes of jobs; whatever else is listed is shown, and nobody asks it
AGAIN_S = 1.0  # after a question that Avahi refused


class JobWatch:
    """Follows the records of running jobs; an async context manager. ``jobs()`` tells the state at any time.

    A change of what a record says is seen within a second if ``follow`` is true, else not at all. ``tell`` is
    called after each change. Entering it raises a BusError where Avahi is not there; from then on it lives
    through restarts of the daemon.
    """

    def __init__(
        self,
        avahi: Avahi,
        interfaces: Sequence[Interface],
        *,
        follow: bool = True,
        tell: Callable[[], None] = lambda: None,
    ) -> None:
        self._avahi = avahi
        self._follows = follow
        self._tell = tell
        self._interfaces = {i.index: i.name for i in interfaces}
        self._browser = Browser(avahi, JOB_SERVICE, prefer=[i.index for i in lan_interfaces(interfaces)])
        self._services: dict[str, Service] = {}
        self._texts: dict[str, asyncio.Task[None]] = {}
        self._watch: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    async def __aenter__(self) -> JobWatch:
        await self._browser.__aenter__()
        self._watch = asyncio.get_running_loop().create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks = [*self._texts.values(), *([self._watch] if self._watch else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._browser.__aexit__(kind, error, trace)

    def nodes(self) -> list[JobNode]:
        """Return the nodes of jobs that are seen now, whatever their cluster."""
        found = (read_job_node(s, self._interfaces.get(s.interface)) for s in self._services.values())
        return [node for node in found if node is not None]

    def jobs(self) -> tuple[Job, ...]:
        """Return the jobs that are seen now."""
        return make_jobs(self.nodes())

    def of_host(self, host: str, address: str | None) -> list[JobNode]:
        """Return the nodes of jobs on one machine: by the name that Avahi gives it, or by its address."""
        name = host.rstrip(".").removesuffix("." + DOMAIN)
        return [n for n in self.nodes() if n.host == name or (address is not None and n.address == address)]

    @property
    def is_settled(self) -> bool:
        """Whether everything seen so far is resolved."""
        return not self._browser.unresolved

    async def change(self, within_s: float) -> bool:
        """Wait until something has changed since the last call; False where nothing does in time."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._changed.wait(), max(0.0, within_s))
        changed = self._changed.is_set()
        self._changed.clear()
        return changed

    def _note(self) -> None:
        self._changed.set()
        self._tell()

    async def _run(self) -> None:
        async for event in self._browser:
            if isinstance(event, Appeared):
                self._add(event.service)
            else:
                self._drop(event.name)
            self._note()

    def _add(self, service: Service) -> None:
        if service.name not in self._services and len(self._services) >= NODES_MAX:
            return
        self._services[service.name] = service
        if self._follows and service.name not in self._texts:
            follow = asyncio.get_running_loop().create_task(self._follow_text(service.name))
            self._texts[service.name] = follow

    def _drop(self, name: str) -> None:
        self._services.pop(name, None)
        task = self._texts.pop(name, None)
        if task is not None:
            task.cancel()

    async def _follow_text(self, name: str) -> None:
        """Take in every change of a record's TXT: a browser of services is told of none."""
        while True:
            with contextlib.suppress(BusError):
                await self._read_texts(name)
            await asyncio.sleep(AGAIN_S)  # another daemon may have come

    async def _read_texts(self, name: str) -> None:
        whole = f"{escape_label(name)}.{JOB_SERVICE}.{DOMAIN}"
        async with contextlib.AsyncExitStack() as stack:
            question = (ANY, ANY, whole, CLASS_IN, TYPE_TXT, 0)
            remote = await open_question(self._avahi, stack, "iisqqu", *question)
            told: dict[bytes, set[tuple[int, int]]] = {}  # where each text is known
            while True:
                signal = await remote.next_signal()
                if signal.member not in ("ItemNew", "ItemRemove"):
                    continue
                interface, protocol, _name, _class, _type, text = signal.body[:6]
                places = told.setdefault(bytes(text), set())
                (places.add if signal.member == "ItemNew" else places.discard)((interface, protocol))
                told = {text: known for text, known in told.items() if known}
                self._take(name, [decode_txt(text) for text in reversed(told)])

    def _take(self, name: str, texts: Sequence[tuple[bytes, ...]]) -> None:
        """Take the newest of a record's texts, the last ones first: Avahi knows the old one for a while."""
        service = self._services.get(name)
        if service is None or not texts:
            return
        newest = max((replace(service, txt=txt) for txt in texts), key=_age)
        if set(newest.txt) != set(service.txt):  # Avahi turns the order round where it resolves
            self._services[name] = newest
            self._note()


def _age(service: Service) -> tuple[int, int]:
    """Return what grows with every change of a record."""
    node = read_job_node(service)
    return (node.part.epoch, node.part.since or 0) if node is not None else (-1, 0)


async def look_for_jobs(
    avahi: Avahi, interfaces: Sequence[Interface], *, within_s: float = RELIABLE_S
) -> tuple[Job, ...]:
    """Return the jobs that are seen within so many seconds, each node probed. Raises a BusError."""
    loop = asyncio.get_running_loop()
    end = loop.time() + within_s
    async with JobWatch(avahi, interfaces, follow=False) as watch:
        while loop.time() < end:
            await watch.change(end - loop.time())
        settled_by = loop.time() + RESOLVE_GRACE_S
        while not watch.is_settled and (left_s := settled_by - loop.time()) > 0:
            await watch.change(left_s)
        if not avahi.on_bus:
            raise avahi_missing()
        return make_jobs(await _probe_all(watch.nodes()))


async def _probe_all(nodes: Sequence[JobNode]) -> list[JobNode]:
    async def ask(node: JobNode) -> JobNode:
        if not may_be_asked(node.address):
            return node
        zone = f"%{node.interface}" if node.address.lower().startswith("fe80:") else ""
        return replace(node, alive=await probe(f"{node.address}{zone}", node.port, PROBE_WITHIN_S))

    return [*await asyncio.gather(*map(ask, nodes[:PROBED_MAX])), *nodes[PROBED_MAX:]]


def absentees(job: Job, peers: Sequence[Peer]) -> list[Peer]:
    """Return the nodes of the job's cluster that do not take part, where it waits for more; else nobody."""
    if not job.wants:
        return []
    hosts = {n.host for n in job.nodes}
    addresses = {n.address for n in job.nodes}
    return [
        p
        for p in peers
        if p.cluster == job.cluster
        and p.address is not None
        and p.address not in addresses
        and p.host.rstrip(".").removesuffix("." + DOMAIN) not in hosts
    ]
