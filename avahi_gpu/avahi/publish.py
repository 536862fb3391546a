"""Publishing a service for as long as a process runs, with records that vanish by themselves after its death.

The three records of a service (RFC 6763) are added one by one, since only that takes a lifetime of our
choice: Avahi's AddService uses 4500 s, for which a power-cut node would stay listed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from types import TracebackType

from avahi_gpu.avahi.bus import Avahi
from avahi_gpu.avahi.names import (
    ANY,
    CLASS_IN,
    GROUP_COLLISION,
    GROUP_ESTABLISHED,
    GROUP_FAILURE,
    PUBLISH_NO_PROBE,
    PUBLISH_UNIQUE,
    PUBLISH_UPDATE,
    SERVER_PATH,
    SERVER_RUNNING,
    TYPE_PTR,
    TYPE_SRV,
    TYPE_TXT,
)
from avahi_gpu.avahi.records import encode_name, encode_srv, encode_txt, escape_label, split_name
from avahi_gpu.avahi.remote import Remote
from avahi_gpu.errors import AvahiCallFailed, BusError, NameCollision
from avahi_gpu.model import DOMAIN

RECORD_TTL_S = 10  # a power-cut node is gone from the LAN's caches after that
UPDATE_INTERVAL_S = (
    1.0  # RFC 6762 section 6: a record goes out once a second; sooner ones leave stale TXT behind
)
RETRY_S = 1.0  # between two attempts at what failed


class Publication:
    """One service instance on the LAN; an async context manager.

    Making it raises MalformedInput where name or TXT are too long, entering it a BusError where Avahi refuses
    (PublishingForbidden). From then on it holds, through restarts of avahi-daemon and changes of the host's
    name. ``name`` changes where another instance turns out to have it. Leaving withdraws it, which peers see
    within about a second.

    ``probe``: ask the LAN whether the name is free, which takes 0.8 to 1.0 s. Without it the name has to be
    unique by itself, by a random part.
    """

    def __init__(
        self,
        avahi: Avahi,
        type: str,
        name: str,
        port: int,
        txt: Sequence[bytes] = (),
        *,
        ttl_s: int = RECORD_TTL_S,
        interface: int = ANY,
        probe: bool = False,
    ) -> None:
        self._avahi = avahi
        self.type = type
        self.name = name
        self.port = port
        self._ttl_s = ttl_s
        self._interface = interface
        self._unique = PUBLISH_UNIQUE if probe else PUBLISH_UNIQUE | PUBLISH_NO_PROBE
        encode_name([name])  # refuse what cannot be published before anything is
        self._txt = encode_txt(txt)
        self._published_txt = self._txt
        self._work: asyncio.Task[None] | None = None
        self._updating: asyncio.Task[None] | None = None
        self._last_update = 0.0
        self._remote: Remote | None = None  # the group that holds our records now
        self._established = asyncio.Event()

    async def __aenter__(self) -> Publication:
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._work = asyncio.get_running_loop().create_task(self._run(ready))
        try:
            await ready
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self._stop()

    async def _stop(self) -> None:
        tasks = [t for t in (self._work, self._updating) if t is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def established(self) -> None:
        """Wait until Avahi has announced the instance to the LAN. Give it a deadline."""
        await self._established.wait()

    def update(self, txt: Sequence[bytes]) -> None:
        """Publish this TXT from now on. Peers see it at once, or a second after the last update.

        Raises MalformedInput where it is too long.
        """
        self._txt = encode_txt(txt)
        self._start_updating()

    def _start_updating(self) -> None:
        if self._updating is None or self._updating.done():
            self._updating = asyncio.get_running_loop().create_task(self._update_soon())

    # --- holding it --------------------------------------------------------------------------------------

    async def _run(self, ready: asyncio.Future[None]) -> None:
        while await self._hold_until_lost(ready):
            await self._avahi.running()

    async def _hold_until_lost(self, ready: asyncio.Future[None]) -> bool:
        """Publish, and return whether to do so again: the daemon or the name was lost."""
        try:
            async with self._avahi.make("EntryGroup", "EntryGroupNew") as group:
                group.listen(SERVER_PATH)
                await self._fill(group)
                if not ready.done():
                    ready.set_result(None)
                await self._follow(group)
        except NameCollision:
            await self._take_another_name()
        except BusError as error:
            if not ready.done():
                ready.set_exception(error)
                return False
            await asyncio.sleep(RETRY_S)
        finally:
            self._remote = None
            self._established.clear()
        return True

    async def _fill(self, group: Remote) -> None:
        """Add the records and commit them."""
        self._remote = None
        host = await self._avahi.host_fqdn()
        txt = self._txt
        where = f"{self.type}.{DOMAIN}"
        instance = f"{escape_label(self.name)}.{where}"
        pointer = encode_name([self.name, *split_name(where)])
        await self._add(group, where, TYPE_PTR, 0, pointer)  # shared: one of many
        await self._add(group, instance, TYPE_SRV, self._unique, encode_srv(self.port, host))
        await self._add(group, instance, TYPE_TXT, self._unique, txt)
        await group.call("Commit")
        self._published_txt = txt
        self._last_update = asyncio.get_running_loop().time()
        self._remote = group

    async def _add(self, group: Remote, name: str, kind: int, flags: int, data: bytes) -> None:
        await group.call(
            "AddRecord",
            "iiusqquay",
            self._interface,
            ANY,
            flags,
            name,
            CLASS_IN,
            kind,
            self._ttl_s,
            data,
        )

    async def _follow(self, group: Remote) -> None:
        """Follow the group's and the server's states for as long as the records stand.

        A client's records keep the host name they were added with: a server that takes a new name wants them
        added anew. Raises NameCollision or another BusError where they have fallen.
        """
        while True:
            signal = await group.next_signal()
            state = int(signal.body[0])
            if signal.path == SERVER_PATH:
                if state != SERVER_RUNNING:
                    self._established.clear()
                    self._remote = None
                    await group.call("Reset")
                elif self._remote is None:
                    await self._fill(group)
            elif state == GROUP_ESTABLISHED:
                self._established.set()
                if self._txt != self._published_txt:
                    self._start_updating()
            elif state == GROUP_COLLISION:
                raise NameCollision("", f"{self.name}: that name is taken already")
            elif state == GROUP_FAILURE:
                raise AvahiCallFailed("", f"avahi-daemon dropped {self.name}: {signal.body[1]}")

    async def _take_another_name(self) -> None:
        try:
            (self.name,) = await self._avahi.call(
                SERVER_PATH, "Server", "GetAlternativeServiceName", "s", self.name
            )
        except BusError:
            await asyncio.sleep(RETRY_S)

    # --- updating ----------------------------------------------------------------------------------------

    async def _update_soon(self) -> None:
        loop = asyncio.get_running_loop()
        while self._txt != self._published_txt:
            await asyncio.sleep(max(0.0, self._last_update + UPDATE_INTERVAL_S - loop.time()))
            if self._remote is None:
                return  # whoever adds the records anew takes the new TXT
            txt, self._last_update = self._txt, loop.time()
            instance = f"{escape_label(self.name)}.{self.type}.{DOMAIN}"
            flags = PUBLISH_UNIQUE | PUBLISH_UPDATE
            with contextlib.suppress(BusError):  # tried again, or the group is gone and filled anew
                await self._add(self._remote, instance, TYPE_TXT, flags, txt)
                self._published_txt = txt
