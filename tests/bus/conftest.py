"""A D-Bus of our own for each test, and on it an avahi-daemon that misbehaves to order.

The real daemon is what tests/lab is for. This one does what the real one cannot be made to do at will: never
answer, answer late, vanish between two messages, number its objects anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dbus_next import Message, MessageType
from dbus_next.aio import MessageBus

BUS_NAME = "org.freedesktop.Avahi"
CONFIGURATION = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>custom</type>
  <listen>unix:path={folder}/bus</listen>
  <servicedir>{folder}/services</servicedir>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
    <allow own="*"/><allow user="*"/>
  </policy>
</busconfig>
"""


class PrivateBus:
    """A dbus-daemon on a socket in a folder of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "bus"
        self.address = f"unix:path={self.socket}"
        self._process: subprocess.Popen[bytes] | None = None
        (folder / "services").mkdir()
        (folder / "bus.conf").write_text(CONFIGURATION.format(folder=folder))

    def start(self) -> None:
        self.socket.unlink(missing_ok=True)
        self._process = subprocess.Popen(
            ["dbus-daemon", f"--config-file={self.folder}/bus.conf", "--nofork", "--nopidfile"],
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 5
        while not self._listens():
            assert time.monotonic() < deadline, "dbus-daemon did not start"
            time.sleep(0.005)

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as sock:
            return sock.connect_ex(str(self.socket)) == 0

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(5)
            self._process = None

    def offer_activation(self, witness: Path) -> None:
        """Let the bus start a service for Avahi's name: it touches ``witness`` and hangs."""
        script = self.folder / "activated"
        script.write_text(f"#!/bin/sh\ntouch {witness}\nexec sleep 30\n")
        script.chmod(0o755)
        (self.folder / "services" / "avahi.service").write_text(
            f"[D-BUS Service]\nName={BUS_NAME}\nExec={script}\n"
        )


@pytest.fixture
def private_bus(tmp_path: Path) -> Iterator[PrivateBus]:
    bus = PrivateBus(tmp_path)
    bus.start()
    yield bus
    bus.stop()


Answer = Callable[[Message], "Message | list[Message] | None"]


def reply(signature: str = "", *body: Any) -> Answer:
    """Answer with these values."""
    return lambda call: Message.new_method_return(call, signature, list(body))


def refuse(name: str, text: str = "no") -> Answer:
    """Answer with an error."""
    return lambda call: Message.new_error(call, name, text)


def silence(_call: Message) -> None:
    """Never answer."""


class FakeAvahi:
    """Owns Avahi's name and answers each member as it was told to. ``calls``: what was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {
            "GetState": reply("i", 2),
            "GetVersionString": reply("s", "avahi 0.8"),
            "GetHostName": reply("s", "gpu-node-1"),
            "GetHostNameFqdn": reply("s", "gpu-node-1.local"),
            "Free": reply(),
            "Start": reply(),
        }
        self.calls: list[Message] = []
        self._bus: Any = None

    async def start(self, address: str, name: str = BUS_NAME) -> None:
        self._bus = await MessageBus(bus_address=address).connect()
        self._bus.add_message_handler(self._handle)
        await self._bus.request_name(name)

    async def stop(self) -> None:
        """Vanish, as after SIGKILL."""
        self._bus.disconnect()
        with contextlib.suppress(Exception):
            await self._bus.wait_for_disconnect()
        self._bus._stream.close()
        self._bus._sock.close()

    def members(self) -> list[str]:
        return [call.member for call in self.calls]

    def signal(
        self, to: str, path: str, member: str, signature: str, *body: Any, interface: str = ""
    ) -> None:
        """Send a signal to one client, as Avahi does for the objects it makes."""
        self._bus.send(
            Message(
                destination=to or None,
                path=path,
                interface=interface or f"{BUS_NAME}.ServiceBrowser",
                member=member,
                message_type=MessageType.SIGNAL,
                signature=signature,
                body=list(body),
            )
        )

    def _handle(self, message: Message) -> bool:
        if message.message_type is not MessageType.METHOD_CALL:
            return False
        self.calls.append(message)
        default = refuse("org.freedesktop.DBus.Error.UnknownMethod", "no such method")
        answer = self.answers.get(message.member, default)(message)
        for part in answer if isinstance(answer, list) else [answer]:
            if part is not None:
                self._bus.send(part)
        return True


@contextlib.asynccontextmanager
async def fake_avahi(bus: PrivateBus) -> AsyncIterator[FakeAvahi]:
    """Yield a fake avahi-daemon on ``bus``."""
    fake = FakeAvahi()
    await fake.start(bus.address)
    try:
        yield fake
    finally:
        with contextlib.suppress(Exception):
            await fake.stop()


@pytest.fixture(autouse=True)
def _nothing_left(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No test leaves a socket open, and none makes asyncio or dbus-next complain."""
    before = _sockets()
    yield
    assert _sockets() - before == set()
    assert [r.getMessage() for r in caplog.records if r.levelname in ("WARNING", "ERROR")] == []


def _sockets() -> set[str]:
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            target = str(entry.readlink())
            if target.startswith("socket:"):
                found.add(target)
    return found


def run(work: Any, within_s: float = 10.0) -> Any:
    """Run a coroutine to its end, and fail where it hangs or leaves a task behind."""

    async def watched() -> Any:
        asyncio.get_running_loop().set_debug(False)
        result = await asyncio.wait_for(work, within_s)
        left = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
        assert left == []
        return result

    return asyncio.run(watched())
