"""The connection to Avahi: quick to tell what is missing, a deadline on everything, nothing left behind."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from dbus_next import Message, MessageType
from dbus_next.aio import MessageBus

from avahi_gpu.avahi import bus as bus_module
from avahi_gpu.avahi.bus import connect
from avahi_gpu.errors import (
    AvahiCallFailed,
    AvahiUnavailable,
    BusUnavailable,
    DeadlineExceeded,
    NameCollision,
    PublishingForbidden,
    ResolveTimeout,
)
from tests.bus.conftest import BUS_NAME, PrivateBus, fake_avahi, refuse, reply, run, silence

AT_ONCE_S = 1.0  # what takes milliseconds, on a machine that is busy
BROWSER = "/Client0/ServiceBrowser1"


async def enter(address: str) -> None:
    async with connect(address):
        pass


def fails(address: str, error: type[Exception], within_s: float = AT_ONCE_S) -> Exception:
    """Connecting raises ``error``, soon enough."""
    started = time.monotonic()
    with pytest.raises(error) as caught:
        run(enter(address))
    assert time.monotonic() - started < within_s
    return caught.value


# --- nobody there ----------------------------------------------------------------------------------------


def test_no_socket_is_an_error_at_once(tmp_path: Path) -> None:
    error = fails(f"unix:path={tmp_path}/bus", BusUnavailable)

    assert "No such file" in str(error)
    assert error.hint  # type: ignore[attr-defined]


def test_a_socket_that_nobody_listens_to_is_an_error_at_once(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(tmp_path / "bus"))
        fails(f"unix:path={tmp_path}/bus", BusUnavailable)


@pytest.mark.parametrize("address", ["", "nonsense", "unix:path=", "launchd:env=x"])
def test_an_address_without_sense_is_an_error(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus")
    fails(address, BusUnavailable)


@contextmanager
def listener(path: Path, answer: bytes | None) -> Iterator[None]:
    """A server that sends ``answer`` and closes, or with None accepts and says nothing."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        held = []

        def serve() -> None:
            peer, _ = server.accept()
            held.append(peer)
            if answer is not None:
                peer.recv(100)
                peer.sendall(answer)
                peer.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield
        thread.join(5)
        for peer in held:
            peer.close()


@pytest.mark.parametrize("answer", [b"", b"REJECTED EXTERNAL\r\n", b"nonsense\r\n", b"OK", b"\xff\r\n"])
def test_a_bus_that_hangs_up_is_an_error_at_once(tmp_path: Path, answer: bytes) -> None:
    """dbus-next itself would spin here and block the whole process."""
    with listener(tmp_path / "bus", answer):
        fails(f"unix:path={tmp_path}/bus", BusUnavailable)


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming a user whom nobody knows is root's")
def test_a_bus_that_refuses_our_user_is_an_error_and_nothing_else_is_printed(private_bus: PrivateBus) -> None:
    """A container that was started with just any number for its user."""
    private_bus.folder.chmod(0o711)
    private_bus.socket.chmod(0o777)
    code = """
import asyncio, os
from avahi_gpu.avahi.bus import connect
from avahi_gpu.errors import BusUnavailable
async def enter():
    async with connect("unix:path=bus"):
        pass
os.setgid(54321); os.setuid(54321)
for _ in range(20):  # whether writing or reading notices it first is chance
    try:
        asyncio.run(enter())
    except BusUnavailable as error:
        print(error.message)
"""
    argv = [sys.executable, "-c", code]
    done = subprocess.run(
        argv, cwd=private_bus.folder, capture_output=True, text=True, timeout=60, check=False
    )

    assert done.stderr == ""
    assert set(done.stdout.splitlines()) == {"the D-Bus system bus closed the connection of user id 54321"}


def test_a_bus_that_says_nothing_is_an_error_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_module, "CONNECT_TIMEOUT_S", 0.2)
    with listener(tmp_path / "bus", None):
        error = fails(f"unix:path={tmp_path}/bus", BusUnavailable)
    assert "no answer within 0.2 s" in str(error)


def test_a_bus_without_avahi_is_an_error_at_once_and_nobody_is_started(
    private_bus: PrivateBus, tmp_path: Path
) -> None:
    """Activation of a daemon that is not enabled would hang for 25 seconds."""
    witness = tmp_path / "activated-indeed"
    private_bus.offer_activation(witness)

    fails(private_bus.address, AvahiUnavailable)

    async def ask() -> None:
        async with connect(private_bus.address, need_avahi=False) as avahi:
            assert not avahi.on_bus
            with pytest.raises(AvahiUnavailable):
                await avahi.version()

    run(ask())
    assert not witness.exists()


# --- calls -----------------------------------------------------------------------------------------------


def test_avahi_is_asked(private_bus: PrivateBus) -> None:
    async def ask() -> tuple[str, str, int]:
        async with fake_avahi(private_bus), connect(private_bus.address) as avahi:
            return await avahi.version(), await avahi.host_fqdn(), await avahi.server_state()

    assert run(ask()) == ("avahi 0.8", "gpu-node-1.local", 2)


def test_many_calls_at_once_get_their_own_answers(private_bus: PrivateBus) -> None:
    async def ask() -> list[str]:
        async with fake_avahi(private_bus) as fake, connect(private_bus.address) as avahi:
            fake.answers["Echo"] = lambda call: Message.new_method_return(call, "s", call.body)
            answers = await asyncio.gather(
                *(avahi.call("/", "Server", "Echo", "s", str(n)) for n in range(100))
            )
            return [text for (text,) in answers]

    assert run(ask()) == [str(n) for n in range(100)]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("org.freedesktop.Avahi.TimeoutError", ResolveTimeout),
        ("org.freedesktop.Avahi.CollisionError", NameCollision),
        ("org.freedesktop.Avahi.NotPermittedError", PublishingForbidden),
        ("org.freedesktop.Avahi.InvalidServiceTypeError", AvahiCallFailed),
        ("org.freedesktop.DBus.Error.AccessDenied", AvahiCallFailed),
        ("org.freedesktop.DBus.Error.NameHasNoOwner", AvahiUnavailable),
        ("org.freedesktop.DBus.Error.UnknownObject", AvahiUnavailable),
    ],
)
def test_an_error_becomes_ours(private_bus: PrivateBus, name: str, error: type[Exception]) -> None:
    async def ask() -> None:
        async with fake_avahi(private_bus) as fake, connect(private_bus.address) as avahi:
            fake.answers["Ask"] = refuse(name)
            await avahi.call("/", "Server", "Ask")

    with pytest.raises(error) as caught:
        run(ask())
    assert type(caught.value) is error


def test_no_answer_is_an_error_in_time_and_the_next_call_works(private_bus: PrivateBus) -> None:
    async def ask() -> str:
        async with fake_avahi(private_bus) as fake, connect(private_bus.address) as avahi:
            fake.answers["Ask"] = silence
            started = time.monotonic()
            with pytest.raises(DeadlineExceeded, match=r"did not answer Ask within 0\.1 s"):
                await avahi.call("/", "Server", "Ask", within_s=0.1)
            assert 0.1 <= time.monotonic() - started < AT_ONCE_S
            return await avahi.version()

    assert run(ask()) == "avahi 0.8"


def test_a_late_answer_harms_nobody(private_bus: PrivateBus) -> None:
    async def ask() -> str:
        async with fake_avahi(private_bus) as fake, connect(private_bus.address) as avahi:
            fake.answers["Ask"] = silence
            with pytest.raises(DeadlineExceeded):
                await avahi.call("/", "Server", "Ask", within_s=0.05)
            fake._bus.send(Message.new_method_return(fake.calls[-1], "s", ["late"]))
            return await avahi.version()

    assert run(ask()) == "avahi 0.8"


def test_a_cancelled_call_is_over_at_once(private_bus: PrivateBus) -> None:
    async def ask() -> None:
        async with fake_avahi(private_bus) as fake, connect(private_bus.address) as avahi:
            fake.answers["Ask"] = silence
            task = asyncio.ensure_future(avahi.call("/", "Server", "Ask"))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert avahi._pending == {}

    run(ask())


# --- signals ---------------------------------------------------------------------------------------------


def test_signals_that_come_before_the_reply_are_not_lost(private_bus: PrivateBus) -> None:
    async def scenario() -> list[str]:
        async with fake_avahi(private_bus) as fake, connect(private_bus.address) as avahi:

            def early(call: Message) -> Message:
                for name in ("one", "two"):
                    fake.signal(call.sender, BROWSER, "ItemNew", "s", name)
                return Message.new_method_return(call, "o", [BROWSER])

            fake.answers["ServiceBrowserNew"] = early
            async with avahi.make("ServiceBrowser", "ServiceBrowserNew") as remote:
                names = [(await remote.next_signal()).body[0] for _ in range(2)]
            assert fake.members()[-1] == "Free"
            return names

    assert run(scenario()) == ["one", "two"]


def test_signals_of_a_stranger_are_not_heard(private_bus: PrivateBus) -> None:
    """Anybody on the system bus may send signals; only the owner of Avahi's name speaks for Avahi."""

    async def scenario() -> str:
        async with fake_avahi(private_bus) as fake, connect(private_bus.address) as avahi:
            fake.answers["ServiceBrowserNew"] = reply("o", BROWSER)
            stranger = await MessageBus(bus_address=private_bus.address).connect()
            async with avahi.make("ServiceBrowser", "ServiceBrowserNew") as remote:
                me = fake.calls[-1].sender
                fake._bus, own = stranger, fake._bus
                fake.signal(me, BROWSER, "ItemNew", "s", "forged")
                fake.signal("", "/", "StateChanged", "is", 4, "", interface=f"{BUS_NAME}.Server")
                await asyncio.sleep(0.1)
                fake._bus = own
                fake.signal(me, BROWSER, "ItemNew", "s", "real")
                name = (await remote.next_signal()).body[0]
            await asyncio.wait_for(avahi.running(), 0.5)
            stranger.disconnect()
            await stranger.wait_for_disconnect()
            stranger._stream.close()
            stranger._sock.close()
            return str(name)

    assert run(scenario()) == "real"


# --- comings and goings ----------------------------------------------------------------------------------


def test_the_end_of_the_daemon_ends_calls_and_objects_at_once(private_bus: PrivateBus) -> None:
    async def scenario() -> None:
        async with fake_avahi(private_bus) as fake, connect(private_bus.address) as avahi:
            fake.answers["ServiceBrowserNew"] = reply("o", BROWSER)
            fake.answers["Ask"] = silence
            async with avahi.make("ServiceBrowser", "ServiceBrowserNew") as remote:
                call = asyncio.ensure_future(avahi.call("/", "Server", "Ask"))
                signal = asyncio.ensure_future(remote.next_signal())
                await asyncio.sleep(0.05)
                started = time.monotonic()
                await fake.stop()
                for waiting in (call, signal):
                    with pytest.raises(AvahiUnavailable):
                        await waiting
                assert time.monotonic() - started < AT_ONCE_S
                assert not avahi.on_bus
                assert remote.gone
                with pytest.raises(AvahiUnavailable):
                    await remote.call("Start")

    run(scenario())


def test_a_new_daemon_is_a_new_generation(private_bus: PrivateBus) -> None:
    async def scenario() -> None:
        async with fake_avahi(private_bus) as fake, connect(private_bus.address) as avahi:
            before = avahi.generation
            await fake.stop()
            async with fake_avahi(private_bus) as new:
                new.answers["GetState"] = reply("i", 1)
                await asyncio.wait_for(avahi.present(), AT_ONCE_S)
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(avahi.running(), 0.1)
                new.signal("", "/", "StateChanged", "is", 2, "", interface=f"{BUS_NAME}.Server")
                await asyncio.wait_for(avahi.running(), AT_ONCE_S)
                assert avahi.generation == before + 1
                assert await avahi.version() == "avahi 0.8"

    run(scenario())


def test_a_state_that_changes_while_it_is_asked_for_is_the_newer_one(private_bus: PrivateBus) -> None:
    """The answer and the signal after it are read at once, before whoever asked goes on."""

    async def scenario() -> None:
        async with fake_avahi(private_bus) as fake:

            def answer(call: Message) -> list[Message]:
                newer = Message(
                    path="/",
                    interface=f"{BUS_NAME}.Server",
                    member="StateChanged",
                    message_type=MessageType.SIGNAL,
                    signature="is",
                    body=[2, ""],
                )
                return [Message.new_method_return(call, "i", [1]), newer]

            fake.answers["GetState"] = answer
            async with connect(private_bus.address) as avahi:
                await asyncio.wait_for(avahi.running(), AT_ONCE_S)

    run(scenario())


def test_an_object_of_the_old_daemon_is_not_freed_at_the_new_one(private_bus: PrivateBus) -> None:
    """Its path may be another object of ours there."""

    async def scenario() -> None:
        async with fake_avahi(private_bus) as fake, connect(private_bus.address) as avahi:
            fake.answers["ServiceBrowserNew"] = reply("o", BROWSER)
            async with avahi.make("ServiceBrowser", "ServiceBrowserNew"):
                await fake.stop()
                new = fake_avahi(private_bus)
                successor = await new.__aenter__()
                await asyncio.wait_for(avahi.present(), AT_ONCE_S)
            await avahi.version()
            assert "Free" not in successor.members()
            await new.__aexit__(None, None, None)

    run(scenario())


def test_the_end_of_the_bus_ends_calls_at_once(private_bus: PrivateBus) -> None:
    async def scenario() -> None:
        async with fake_avahi(private_bus) as fake, connect(private_bus.address) as avahi:
            fake.answers["Ask"] = silence
            call = asyncio.ensure_future(avahi.call("/", "Server", "Ask"))
            await asyncio.sleep(0.05)
            started = time.monotonic()
            private_bus.stop()
            with pytest.raises(BusUnavailable):
                await call
            with pytest.raises(BusUnavailable):
                await avahi.version()
            assert time.monotonic() - started < AT_ONCE_S

    run(scenario())


def test_a_new_bus_is_found_again(private_bus: PrivateBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_module, "RECONNECT_S", 0.05)

    async def scenario() -> str:
        async with fake_avahi(private_bus), connect(private_bus.address) as avahi:
            before = avahi.generation
            private_bus.stop()
            await asyncio.sleep(0.2)
            private_bus.start()
            async with fake_avahi(private_bus):
                await asyncio.wait_for(avahi.running(), 5)
                assert avahi.generation > before
                return await avahi.version()

    assert run(scenario()) == "avahi 0.8"


def test_a_daemon_that_appears_later_is_noticed(private_bus: PrivateBus) -> None:
    async def scenario() -> None:
        async with connect(private_bus.address, need_avahi=False) as avahi:
            waiting = asyncio.ensure_future(avahi.running())
            await asyncio.sleep(0.05)
            assert not waiting.done()
            async with fake_avahi(private_bus):
                await asyncio.wait_for(waiting, AT_ONCE_S)

    run(scenario())


async def connect_to(path: Path) -> None:
    async with connect(f"unix:path={path}", need_avahi=False):
        pass


def test_a_bus_that_takes_no_more_connections_is_told_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a dbus-daemon that is stopped: the kernel queues some, the next connect would wait for ever."""
    monkeypatch.setattr(bus_module, "CONNECT_TIMEOUT_S", 0.2)
    path = tmp_path / "socket"
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(path))
        listener.listen(0)
        queued = stack.enter_context(socket.socket(socket.AF_UNIX))
        queued.connect(str(path))

        with pytest.raises(BusUnavailable, match="accepts no connection"):
            asyncio.run(connect_to(path))


def test_a_bus_that_was_only_busy_is_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_module, "CONNECT_TIMEOUT_S", 5.0)
    path = tmp_path / "socket"

    async def relieve(listener: socket.socket) -> None:
        await asyncio.sleep(0.2)
        for _ in range(2):
            accepted, _ = listener.accept()
            accepted.close()

    async def both(listener: socket.socket) -> None:
        with pytest.raises(BusUnavailable, match="closed the connection"):
            await asyncio.gather(connect_to(path), asyncio.to_thread(asyncio.run, relieve(listener)))

    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(path))
        listener.listen(0)
        stack.enter_context(socket.socket(socket.AF_UNIX)).connect(str(path))

        asyncio.run(both(listener))
