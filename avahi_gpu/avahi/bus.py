"""The one connection to Avahi over the D-Bus system bus: calls with a deadline, signals by object path.

dbus-next is used at its lowest level and nowhere else in the project, so that another library with the same
messages can replace it. Its own ``call`` is not used: it waits for ever once the bus has gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any, cast

from dbus_next import BusType, Message, MessageFlag, MessageType
from dbus_next.aio import MessageBus
from dbus_next.errors import AuthError

from avahi_gpu.avahi.dialling import bus_unavailable, open_socket
from avahi_gpu.avahi.names import (
    BUS_HINT,
    BUS_NAME,
    DBUS,
    DBUS_PATH,
    MATCHES,
    SERVER_PATH,
    SERVER_RUNNING,
    avahi_missing,
    error_of,
)
from avahi_gpu.avahi.remote import Remote
from avahi_gpu.avahi.signals import Inbox, Router, Signal
from avahi_gpu.errors import AvahiUnavailable, BusError, BusUnavailable, DeadlineExceeded

CONNECT_TIMEOUT_S = 3.0  # connecting takes a millisecond: longer means that nobody reads the socket
CALL_TIMEOUT_S = 3.0  # Avahi answers everything but resolving in a millisecond
DIAL_AGAIN_S = 0.05
FREE_TIMEOUT_S = 0.5  # on the way out nobody waits for a daemon that hangs: it cleans up when we are gone
RECONNECT_S = 1.0  # between two attempts to reach a bus that went away


class _Connection(MessageBus):  # type: ignore[misc]  # dbus-next is not typed
    """dbus-next's connection, mended where it hangs, leaks or writes to stderr on a bus that dies."""

    def _setup_socket(self) -> None:
        (transport, options), *others = self._bus_address
        try:
            if transport == "unix" and not others and {"path", "abstract"} & options.keys():
                self._sock = open_socket(options)
                self._stream = self._sock.makefile("rwb")
                self._fd = self._sock.fileno()
            else:
                super()._setup_socket()
        except BaseException:
            self.close()
            raise

    async def connect(self) -> _Connection:
        try:
            await super().connect()
        except BaseException:
            # the answer to the greeting, if only that the connection has ended, finds nobody any more
            self._loop.remove_reader(self._fd)
            self._method_return_handlers.clear()
            raise
        return self

    async def _auth_readline(self) -> str:
        line = b""
        while not line.endswith(b"\r\n"):
            piece = await self._loop.sock_recv(self._sock, 1)
            if not piece:  # the library would spin here without ever yielding to the loop
                raise EOFError("the bus closed the connection")
            line += piece
        return line[:-2].decode()

    def disconnect(self) -> None:
        self._user_disconnect = True
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the socket, which the library leaves to the garbage collector."""
        with contextlib.suppress(AttributeError, OSError, ValueError):
            if self.unique_name is not None and not self._disconnected:
                self._user_disconnect = True
                self._finalize(None)
            self._loop.remove_reader(self._fd)
            self._loop.remove_writer(self._fd)
            if self._disconnect_future.done() and not self._disconnect_future.cancelled():
                self._disconnect_future.exception()  # seen, so that nobody is told that it was not
        for thing in ("_stream", "_sock"):
            with contextlib.suppress(AttributeError, OSError, ValueError):
                getattr(self, thing).close()


class Avahi:
    """avahi-daemon as we talk to it. Made by ``connect``; survives restarts of the daemon and of the bus.

    ``generation`` counts daemons: every object made under an older number is gone. ``state`` is
    the server's as told last, None where it was not.
    """

    def __init__(self, address: str | None = None) -> None:
        self._address = address
        self._bus: _Connection | None = None
        self._pending: dict[int, asyncio.Future[Message]] = {}
        self._router = Router()
        self._owner = ""
        self.state: int | None = None
        self._news = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self.generation = 0

    # --- asking ------------------------------------------------------------------------------------------

    @property
    def on_bus(self) -> bool:
        """Whether avahi-daemon owns its name on the bus now."""
        return bool(self._owner)

    async def call(
        self,
        path: str,
        interface: str,
        member: str,
        signature: str = "",
        *body: Any,
        within_s: float = CALL_TIMEOUT_S,
        what: str = "",
    ) -> list[Any]:
        """Call ``interface`` (``Server`` for org.freedesktop.Avahi.Server) and return the answer's values.

        ``what`` names the call in an error's sentence where ``member`` tells people too little.

        Raises AvahiUnavailable, BusUnavailable, DeadlineExceeded, or what Avahi's error means
        (``names.error_of``).
        """
        message = Message(
            destination=BUS_NAME,
            path=path,
            interface=f"{BUS_NAME}.{interface}",
            member=member,
            signature=signature,
            body=list(body),
            flags=MessageFlag.NO_AUTOSTART,  # activation of a disabled daemon hangs for 25 s
        )
        return await self._exchange(message, within_s, what or member)

    async def version(self) -> str:
        """Return the daemon's version string, ``avahi 0.8``."""
        return str((await self.call(SERVER_PATH, "Server", "GetVersionString"))[0])

    async def host_name(self) -> str:
        """Return the name that the daemon publishes, without domain; not always the kernel's."""
        return str((await self.call(SERVER_PATH, "Server", "GetHostName"))[0])

    async def host_fqdn(self) -> str:
        """Return the published host name with its domain, ``gpu-node-1.local``."""
        return str((await self.call(SERVER_PATH, "Server", "GetHostNameFqdn"))[0])

    async def domain(self) -> str:
        """Return the daemon's mDNS domain, ``local`` unless configured otherwise."""
        return str((await self.call(SERVER_PATH, "Server", "GetDomainName"))[0])

    async def server_state(self, within_s: float = CALL_TIMEOUT_S) -> int:
        """Return the server's state, one of ``names.SERVER_…``."""
        return int((await self.call(SERVER_PATH, "Server", "GetState", within_s=within_s))[0])

    async def process_id(self) -> int:
        """Return the daemon's process id as the bus knows it."""
        if not self._owner:
            raise avahi_missing()
        return int((await self._ask_bus("GetConnectionUnixProcessID", "s", self._owner))[0])

    # --- waiting -----------------------------------------------------------------------------------------

    async def present(self) -> None:
        """Wait, for ever if need be, until avahi-daemon is on the bus."""
        while not self._owner:
            await self._news.wait()

    async def running(self) -> None:
        """Wait, for ever if need be, until avahi-daemon has a host name of its own and serves."""
        while self.state != SERVER_RUNNING:
            await self._news.wait()

    async def news(self) -> None:
        """Wait, for ever if need be, until the daemon comes, goes or changes its state."""
        await self._news.wait()

    # --- objects -----------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def make(
        self, kind: str, member: str, signature: str = "", *body: Any, server: str = "Server"
    ) -> AsyncIterator[Remote]:
        """Have Avahi make an object of interface ``kind`` by calling ``member``; freed at the end."""
        (path,) = await self.call(SERVER_PATH, server, member, signature, *body)
        inbox = Inbox(self._router)
        inbox.listen(path)
        remote = Remote(self.call, inbox, path, kind)
        try:
            yield remote
        finally:
            inbox.close()
            if inbox.ended is None:
                with contextlib.suppress(BusError):
                    await self.call(path, kind, "Free", within_s=FREE_TIMEOUT_S)

    # --- the connection ----------------------------------------------------------------------------------

    async def _open(self) -> None:
        """Connect and learn who is there. Raises BusUnavailable."""
        bus = None
        try:
            bus = await self._dial()
            bus.add_message_handler(self._take)
            await asyncio.wait_for(bus.connect(), CONNECT_TIMEOUT_S)
        except asyncio.CancelledError:
            if bus is not None:
                bus.close()
            raise
        except Exception as fault:  # dbus-next raises what it likes: OSError, EOFError, AuthError …
            if bus is not None:
                bus.close()
            raise bus_unavailable(fault, CONNECT_TIMEOUT_S, refused=isinstance(fault, AuthError)) from None
        self._bus = bus
        try:
            for rule in MATCHES:
                await self._ask_bus("AddMatch", "s", rule)
            with contextlib.suppress(AvahiUnavailable):
                (owner,) = await self._ask_bus("GetNameOwner", "s", BUS_NAME)
                if not self._owner:
                    self._greet(owner)
            if self._owner:
                await self._learn_state(self.generation)
        except BaseException:
            self._shut()
            raise

    async def _dial(self) -> _Connection:
        """Connect to the socket. A queue that is full empties in a moment where the bus is only busy."""
        loop = asyncio.get_running_loop()
        end = loop.time() + CONNECT_TIMEOUT_S
        while True:
            try:
                return _Connection(bus_address=self._address, bus_type=BusType.SYSTEM)
            except BlockingIOError:
                if loop.time() >= end:
                    raise
            await asyncio.sleep(DIAL_AGAIN_S)

    def _shut(self) -> None:
        bus, self._bus = self._bus, None
        if bus is not None:
            bus.close()
        self._lose(BusUnavailable("the D-Bus system bus has gone", BUS_HINT))

    async def _keep_open(self) -> None:
        """Connect again whenever the bus goes."""
        while True:
            if self._bus is not None:
                with contextlib.suppress(Exception):  # how it ended is of no interest
                    await self._bus.wait_for_disconnect()
            self._shut()
            await asyncio.sleep(RECONNECT_S)
            with contextlib.suppress(BusError):
                await self._open()

    async def _close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._shut()

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- the daemon's coming and going -------------------------------------------------------------------

    def _greet(self, owner: str) -> None:
        self._owner = owner
        self.generation += 1
        self._tell()

    def _lose(self, error: BusError) -> None:
        self._owner = ""
        self.state = None
        for future in self._pending.values():
            if not future.done():
                future.set_exception(error)
        self._router.end_all(error)
        self._tell()

    async def _learn_state(self, generation: int) -> None:
        with contextlib.suppress(BusError):
            state = await self.server_state()
            if self.generation == generation and self.state is None:  # a signal has told newer things
                self.state = state
                self._tell()

    def _tell(self) -> None:
        """Wake whoever waits for the daemon's state."""
        news, self._news = self._news, asyncio.Event()
        news.set()

    # --- messages ----------------------------------------------------------------------------------------

    async def _ask_bus(self, member: str, signature: str, *body: Any) -> list[Any]:
        message = Message(
            destination=DBUS,
            path=DBUS_PATH,
            interface=DBUS,
            member=member,
            signature=signature,
            body=list(body),
        )
        return await self._exchange(message, CALL_TIMEOUT_S, member)

    async def _exchange(self, message: Message, within_s: float, what: str) -> list[Any]:
        bus = self._bus
        if bus is None or not bus.connected:
            raise BusUnavailable("the D-Bus system bus has gone", BUS_HINT)
        message.serial = bus.next_serial()
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._pending[message.serial] = answer
        try:
            # a failed write ends the connection, which ends ``answer``: nobody needs its own exception
            bus.send(message).add_done_callback(lambda sent: sent.cancelled() or sent.exception())
            done, _ = await asyncio.wait({answer}, timeout=within_s)
        finally:
            del self._pending[message.serial]
            if not answer.cancel() and not answer.cancelled():
                answer.exception()  # seen, so that nobody is told that it was not
        if not done:
            raise DeadlineExceeded(
                f"avahi-daemon or the D-Bus system bus did not answer {what} within {within_s:g} s",
                "is the machine overloaded? restart avahi-daemon if not",
            )
        reply = answer.result()
        if reply.message_type is MessageType.ERROR:
            text = reply.body[0] if reply.body and isinstance(reply.body[0], str) else ""
            raise error_of(str(reply.error_name), text, what)
        return cast("list[Any]", reply.body)

    def _take(self, message: Message) -> None:
        """Sort one message; called by dbus-next for each in turn, before it is looked at in any other way."""
        if message.message_type is MessageType.SIGNAL:
            if message.sender == DBUS:
                if message.member == "NameOwnerChanged" and message.body[0] == BUS_NAME:
                    self._take_owner(message.body[2])
            elif message.sender == self._owner:  # anyone on the bus may send signals; only Avahi's count
                self._take_signal(message)
        elif message.message_type in (MessageType.METHOD_RETURN, MessageType.ERROR):
            answer = self._pending.get(message.reply_serial)
            if answer is not None and not answer.done():
                answer.set_result(message)

    def _take_owner(self, owner: str) -> None:
        if owner == self._owner:
            return
        if self._owner:
            self._lose_daemon()
        if owner:
            self._greet(owner)
            self._spawn(self._learn_state(self.generation))

    def _lose_daemon(self) -> None:
        # calls on their way are answered by the bus (NoReply): they stay pending until it does
        self._owner = ""
        self.state = None
        self._router.end_all(avahi_missing())
        self._tell()

    def _take_signal(self, message: Message) -> None:
        if message.path == SERVER_PATH and message.member == "StateChanged":
            self.state = int(message.body[0])
            self._tell()
        self._router.deliver(Signal(message.path, message.member, message.body))


@contextlib.asynccontextmanager
async def connect(address: str | None = None, *, need_avahi: bool = True) -> AsyncIterator[Avahi]:
    """Connect to the system bus (or the bus at ``address``) and yield Avahi as seen on it.

    Raises BusUnavailable, and AvahiUnavailable where ``need_avahi`` and it is not there; both at once.
    Never starts the daemon.
    """
    avahi = Avahi(address)
    try:
        await avahi._open()
        if need_avahi and not avahi.on_bus:
            raise avahi_missing()
        avahi._spawn(avahi._keep_open())
        yield avahi
    finally:
        await avahi._close()
