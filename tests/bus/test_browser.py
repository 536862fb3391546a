"""The browser against a daemon that restarts, fails, repeats itself and answers in any order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from dbus_next import Message

from avahi_gpu.avahi import browse as browse_module
from avahi_gpu.avahi.browse import Appeared, Browser, Event, Left, browse, resolve_host
from avahi_gpu.avahi.bus import Avahi, connect
from avahi_gpu.errors import AvahiCallFailed, AvahiUnavailable, ResolveTimeout
from tests.bus.conftest import FakeAvahi, PrivateBus, fake_avahi, refuse, reply, run

TYPE = "_torch-rdzv._tcp"
BROWSER = "/Client0/ServiceBrowser0"
LOOPBACK, ETHERNET = 1, 2
IPV4, IPV6 = 0, 1
TIMEOUT = "org.freedesktop.Avahi.TimeoutError"


class Lan:
    """What a fake daemon knows: the address of each instance, and which it lists when a browser starts."""

    def __init__(self, fake: FakeAvahi, *listed: str) -> None:
        self.fake = fake
        self.listed = list(listed)
        self.address = {name: f"192.0.2.{n}" for n, name in enumerate("abcdefgh", 1)}
        self.failures = 0  # so many resolves fail yet
        self.asked: list[tuple[int, int, str]] = []
        fake.answers["ServiceBrowserPrepare"] = reply("o", BROWSER)
        fake.answers["Start"] = self._start
        fake.answers["ResolveService"] = self._resolve

    def _start(self, call: Message) -> Message:
        self.to = call.sender
        for name in self.listed:
            self.new(name)
        return Message.new_method_return(call)

    def new(self, name: str, interface: int = ETHERNET, protocol: int = IPV4, flags: int = 0) -> None:
        self.fake.signal(
            self.to, BROWSER, "ItemNew", "iisssu", interface, protocol, name, TYPE, "local", flags
        )

    def remove(self, name: str, interface: int = ETHERNET, protocol: int = IPV4) -> None:
        self.fake.signal(
            self.to, BROWSER, "ItemRemove", "iisssu", interface, protocol, name, TYPE, "local", 0
        )

    def _resolve(self, call: Message) -> Message:
        interface, protocol, name = call.body[:3]
        self.asked.append((interface, protocol, name))
        if self.failures or name not in self.address:
            self.failures = max(0, self.failures - 1)
            return Message.new_error(call, TIMEOUT, "Timeout reached")
        address = self.address[name] if protocol == IPV4 else "fe80::1"
        values: list[Any] = [interface, protocol, name, TYPE, "local", f"{name}.local", protocol, address]
        return Message.new_method_return(call, "iissssisqaayu", [*values, 4000, [b"job=x"], 0])


@asynccontextmanager
async def browsing(bus: PrivateBus, *listed: str) -> AsyncIterator[tuple[Lan, Avahi, Browser]]:
    async with fake_avahi(bus) as fake, connect(bus.address) as avahi:
        lan = Lan(fake, *listed)
        async with Browser(avahi, TYPE) as browser:
            yield lan, avahi, browser


async def events(browser: Browser, count: int, within_s: float = 2.0) -> list[Event]:
    """Return the next ``count`` events, fewer where no more come."""
    found = []
    while len(found) < count and (event := await browser.next_event(within_s)) is not None:
        found.append(event)
    return found


def told(found: list[Event]) -> set[str]:
    return {f"+{e.service.name}" if isinstance(e, Appeared) else f"-{e.name}" for e in found}


def test_what_is_listed_appears_resolved(private_bus: PrivateBus) -> None:
    async def scenario() -> None:
        async with browsing(private_bus, "a", "b") as (_, _, browser):
            assert told(await events(browser, 2)) == {"+a", "+b"}
            service = browser.services["a"]
            assert (service.address, service.port, service.interface) == ("192.0.2.1", 4000, ETHERNET)
            assert (service.host, service.protocol, service.txt) == ("a.local", 4, (b"job=x",))

    run(scenario())


def test_repeated_signals_are_one_event(private_bus: PrivateBus) -> None:
    async def scenario() -> None:
        async with browsing(private_bus, "a", "a") as (lan, _, browser):
            assert told(await events(browser, 1)) == {"+a"}
            lan.new("a")
            lan.remove("a")
            lan.remove("a")
            assert told(await events(browser, 2, 0.2)) == {"-a"}
            assert browser.services == {}

    run(scenario())


def test_an_instance_leaves_with_its_last_place(private_bus: PrivateBus) -> None:
    async def scenario() -> None:
        async with browsing(private_bus, "a") as (lan, _, browser):
            lan.new("a", LOOPBACK, flags=8)
            assert told(await events(browser, 1)) == {"+a"}
            lan.remove("a", LOOPBACK)
            assert await browser.next_event(0.2) is None
            lan.remove("a")
            assert told(await events(browser, 1)) == {"-a"}

    run(scenario())


def test_ipv6_waits_a_moment_for_ipv4(private_bus: PrivateBus) -> None:
    async def scenario() -> None:
        async with browsing(private_bus) as (lan, _, browser):
            lan.new("a", ETHERNET, IPV6)
            lan.new("a", LOOPBACK, IPV4)
            await asyncio.sleep(0.02)
            started = time.monotonic()
            lan.new("a", ETHERNET, IPV4)
            (event,) = await events(browser, 1)
            assert time.monotonic() - started < browse_module.BETTER_PLACE_S / 2
            assert isinstance(event, Appeared)
            assert event.service.address == "192.0.2.1"
            assert lan.asked == [(ETHERNET, IPV4, "a")]

    run(scenario())


def test_ipv6_alone_is_used_after_that(private_bus: PrivateBus) -> None:
    async def scenario() -> None:
        async with browsing(private_bus) as (lan, _, browser):
            lan.new("a", ETHERNET, IPV6)
            (event,) = await events(browser, 1)
            assert isinstance(event, Appeared)
            assert (event.service.address, event.service.protocol) == ("fe80::1", 6)
            lan.new("a", ETHERNET, IPV4)  # late, and still better
            (event,) = await events(browser, 1)
            assert isinstance(event, Appeared)
            assert event.service.address == "192.0.2.1"

    run(scenario())


def test_what_does_not_resolve_is_tried_again(
    private_bus: PrivateBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Avahi lists an instance before its other records are there, and may ask nobody at all."""
    monkeypatch.setattr(browse_module, "RETRY_S", 0.02)

    async def scenario() -> None:
        async with fake_avahi(private_bus) as fake, connect(private_bus.address) as avahi:
            lan = Lan(fake, "a", "ghost")
            lan.failures = 3
            async with Browser(avahi, TYPE) as browser:
                assert told(await events(browser, 1)) == {"+a"}
                assert browser.unresolved == ["ghost"]
                lan.remove("ghost")
                assert await browser.next_event(0.1) is None  # it never appeared, so it does not leave
                assert browser.unresolved == []

    run(scenario())


def test_another_place_is_tried_where_the_best_fails(private_bus: PrivateBus) -> None:
    async def scenario() -> None:
        async with browsing(private_bus) as (lan, _, browser):
            lan.failures = 1
            lan.new("a", LOOPBACK)
            lan.new("a", ETHERNET)
            (event,) = await events(browser, 1)
            assert isinstance(event, Appeared)
            assert event.service.interface == LOOPBACK

    run(scenario())


def test_an_old_daemon_without_prepare_is_browsed_too(private_bus: PrivateBus) -> None:
    async def scenario() -> None:
        async with fake_avahi(private_bus) as fake, connect(private_bus.address) as avahi:
            lan = Lan(fake)
            fake.answers["ServiceBrowserPrepare"] = refuse("org.freedesktop.DBus.Error.UnknownMethod")
            fake.answers["ServiceBrowserNew"] = reply("o", BROWSER)
            async with Browser(avahi, TYPE) as browser:
                lan.to = fake.calls[-1].sender
                lan.new("a")
                assert told(await events(browser, 1)) == {"+a"}
                assert "Start" not in fake.members()

    run(scenario())


def test_a_first_start_that_fails_is_told(private_bus: PrivateBus) -> None:
    async def scenario() -> None:
        async with fake_avahi(private_bus) as fake, connect(private_bus.address) as avahi:
            fake.answers["ServiceBrowserPrepare"] = refuse("org.freedesktop.Avahi.InvalidServiceTypeError")
            with pytest.raises(AvahiCallFailed, match="InvalidServiceType"):
                async with Browser(avahi, "nonsense"):
                    pass

    run(scenario())


def test_asking_anew_gives_the_address_of_now(private_bus: PrivateBus) -> None:
    """Avahi tells nobody when a host's address changes."""

    async def scenario() -> None:
        async with browsing(private_bus, "a") as (lan, _, browser):
            await events(browser, 1)
            lan.address["a"] = "192.0.2.99"
            assert (await browser.resolve("a")).address == "192.0.2.99"
            (event,) = await events(browser, 1)
            assert isinstance(event, Appeared)
            assert event.service.address == "192.0.2.99"
            for name in ("b", "a"):
                lan.address.pop(name)
                with pytest.raises(ResolveTimeout):
                    await browser.resolve(name)

    run(scenario())


# --- restarts --------------------------------------------------------------------------------------------


def test_a_restart_takes_away_only_those_who_are_not_seen_again(
    private_bus: PrivateBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browse_module, "SETTLE_S", 0.4)

    async def scenario() -> None:
        async with browsing(private_bus, "a", "b", "c") as (lan, _, browser):
            assert told(await events(browser, 3)) == {"+a", "+b", "+c"}
            await lan.fake.stop()
            assert await browser.next_event(0.6) is None  # a daemon that is away says nothing about anybody
            async with fake_avahi(private_bus) as fake:
                successor = Lan(fake, "a", "b", "d")
                successor.address["b"] = "192.0.2.99"
                first = await events(browser, 2, 0.3)
                assert told(first) == {"+b", "+d"}  # moved, and new; nothing to say about a
                assert browser.services["b"].address == "192.0.2.99"
                assert told(await events(browser, 1)) == {"-c"}
                assert set(browser.services) == {"a", "b", "d"}
                assert await browser.next_event(0.2) is None

    run(scenario())


def test_two_restarts_in_a_row_forget_nobody(
    private_bus: PrivateBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browse_module, "SETTLE_S", 0.4)

    async def scenario() -> None:
        async with browsing(private_bus, "a", "b") as (lan, _, browser):
            await events(browser, 2)
            await lan.fake.stop()
            async with fake_avahi(private_bus) as fake:
                Lan(fake, "a")
                await asyncio.sleep(0.2)
            async with fake_avahi(private_bus) as fake:
                Lan(fake, "b")
                assert await browser.next_event(0.2) is None
                assert told(await events(browser, 1)) == {"-a"}
                assert set(browser.services) == {"b"}

    run(scenario())


def test_a_loss_of_the_bus_is_survived(private_bus: PrivateBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("avahi_gpu.avahi.bus.RECONNECT_S", 0.05)

    async def scenario() -> None:
        async with browsing(private_bus, "a") as (_, _, browser):
            await events(browser, 1)
            private_bus.stop()
            await asyncio.sleep(0.1)
            private_bus.start()
            async with fake_avahi(private_bus) as fake:
                Lan(fake, "a", "b")
                assert told(await events(browser, 1)) == {"+b"}
                assert set(browser.services) == {"a", "b"}

    run(scenario())


# --- one look --------------------------------------------------------------------------------------------


def test_a_look_ends_as_soon_as_enough_are_there(private_bus: PrivateBus) -> None:
    async def scenario() -> None:
        async with fake_avahi(private_bus) as fake, connect(private_bus.address) as avahi:
            Lan(fake, "a", "b")
            started = time.monotonic()
            listing = await browse(avahi, TYPE, expect=2, within_s=5)
            assert time.monotonic() - started < 1
            assert sorted(s.name for s in listing.services) == ["a", "b"]
            assert "Free" in fake.members()

    run(scenario())


def test_a_look_ends_in_time_and_names_what_nobody_answered_for(
    private_bus: PrivateBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browse_module, "RESOLVE_GRACE_S", 0.2)

    async def scenario() -> None:
        async with fake_avahi(private_bus) as fake, connect(private_bus.address) as avahi:
            Lan(fake, "a", "ghost")
            started = time.monotonic()
            listing = await browse(avahi, TYPE, expect=3, within_s=0.3)
            assert 0.3 <= time.monotonic() - started < 1.5
            assert [s.name for s in listing.services] == ["a"]
            assert listing.unresolved == ("ghost",)

    run(scenario())


def test_a_daemon_that_dies_during_a_look_is_no_empty_lan(private_bus: PrivateBus) -> None:
    async def scenario() -> None:
        async with fake_avahi(private_bus) as fake, connect(private_bus.address) as avahi:
            Lan(fake)
            look = asyncio.ensure_future(browse(avahi, TYPE, within_s=0.3))
            await asyncio.sleep(0.1)
            await fake.stop()
            with pytest.raises(AvahiUnavailable):
                await look

    run(scenario())


def test_a_cancelled_look_leaves_nothing_behind(private_bus: PrivateBus) -> None:
    async def scenario() -> None:
        async with fake_avahi(private_bus) as fake, connect(private_bus.address) as avahi:
            Lan(fake, "a", "ghost")
            look = asyncio.ensure_future(browse(avahi, TYPE, within_s=5))
            await asyncio.sleep(0.1)
            look.cancel()
            with pytest.raises(asyncio.CancelledError):
                await look
            assert "Free" in fake.members()

    run(scenario())


def test_a_flood_of_instances_is_bounded(private_bus: PrivateBus) -> None:
    async def scenario() -> None:
        async with browsing(private_bus) as (lan, avahi, browser):
            lan.address = {f"n{n}": "192.0.2.1" for n in range(1500)}
            for number, name in enumerate(lan.address):
                lan.new(name)
                if number % 50 == 0:
                    await avahi.version()  # all are sent: dbus-next gives up on a full socket
            found = await events(browser, 1500, 1.0)
            assert len(found) == 1024
            assert not any(isinstance(e, Left) for e in found)

    run(scenario(), within_s=30)


def test_a_host_is_resolved_by_name(private_bus: PrivateBus) -> None:
    async def scenario() -> None:
        async with fake_avahi(private_bus) as fake, connect(private_bus.address) as avahi:
            fake.answers["ResolveHostName"] = reply("iisisu", 2, 0, "a.local", 0, "192.0.2.1", 0)
            assert await resolve_host(avahi, "a.local") == ("192.0.2.1", 2)
            fake.answers["ResolveHostName"] = refuse(TIMEOUT)
            with pytest.raises(ResolveTimeout, match=r"for the host b\.local"):
                await resolve_host(avahi, "b.local")

    run(scenario())
