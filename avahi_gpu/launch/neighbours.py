"""Which nodes of the cluster are on the LAN, whether they have started the job or not. For people alone."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Collection

from avahi_gpu.avahi.browse import Appeared, Browser
from avahi_gpu.avahi.bus import connect
from avahi_gpu.errors import AvahiGpuError, MalformedInput
from avahi_gpu.files.txt import decode
from avahi_gpu.model import NODE_SERVICE

NEIGHBOURS_MAX = 64  # more names than that help nobody


class Neighbours:
    """Looks for the cluster's nodes in a thread of its own until closed; silent where that fails."""

    def __init__(self, cluster: str, tell: Callable[[Collection[str]], None]) -> None:
        self.cluster = cluster
        self.tell = tell
        self.names: dict[str, str] = {}  # by service instance
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="neighbours", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """End the look."""
        with self._lock:
            self._closed = True
            if self._loop is not None and self._task is not None:
                with contextlib.suppress(RuntimeError):  # it has ended by itself
                    self._loop.call_soon_threadsafe(self._task.cancel)

    def _run(self) -> None:
        with contextlib.suppress(AvahiGpuError, OSError, asyncio.CancelledError):
            asyncio.run(self._watch())

    async def _watch(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        async with connect() as avahi, Browser(avahi, NODE_SERVICE) as browser:
            async for event in browser:
                if isinstance(event, Appeared):
                    with contextlib.suppress(MalformedInput):
                        if decode(event.service.txt).cluster == self.cluster:
                            self.names[event.service.name] = host_of(event.service.host)
                else:
                    self.names.pop(event.name, None)
                self.tell(sorted(set(self.names.values()))[:NEIGHBOURS_MAX])


def host_of(host: str) -> str:
    """Return ``gpu-node-1`` of ``gpu-node-1.local.``."""
    return host.rstrip(".").removesuffix(".local")
