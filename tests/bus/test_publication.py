"""Publishing at a daemon that refuses, renames, restarts: the records are always those of now."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from dbus_next import Message

from avahi_gpu.avahi import publish as publish_module
from avahi_gpu.avahi.bus import connect
from avahi_gpu.avahi.publish import Publication
from avahi_gpu.errors import MalformedInput, PublishingForbidden
from tests.bus.conftest import BUS_NAME, FakeAvahi, PrivateBus, fake_avahi, refuse, reply, run

TYPE = "_torch-rdzv._tcp"
PTR, TXT, SRV = 12, 16, 33
UNIQUE, NO_PROBE, UPDATE = 1, 2, 64
RUNNING, REGISTERING, COLLISION = 2, 1, 3


@dataclass(frozen=True)
class Record:
    group: str
    flags: int
    name: str
    kind: int
    ttl: int
    data: bytes


class Groups:
    """The entry groups of a fake daemon: what is in the one that stands now."""

    def __init__(self, fake: FakeAvahi) -> None:
        self.fake = fake
        self.records: list[Record] = []
        self.log: list[str] = []
        self.group = ""
        self._numbers = itertools.count()
        fake.answers["EntryGroupNew"] = self._make
        fake.answers["AddRecord"] = self._add
        fake.answers["Commit"] = self._commit
        fake.answers["Reset"] = self._reset
        fake.answers["Free"] = self._reset

    def _make(self, call: Message) -> Message:
        self.group = f"/Client0/EntryGroup{next(self._numbers)}"
        self.to = call.sender
        return Message.new_method_return(call, "o", [self.group])

    def _add(self, call: Message) -> Message:
        _, _, flags, name, _, kind, ttl, data = call.body
        if flags & UPDATE:
            self.records = [r for r in self.records if r.kind != kind]
        self.records.append(Record(call.path, flags, name, kind, ttl, bytes(data)))
        self.log.append(f"add {kind}")
        return Message.new_method_return(call)

    def _commit(self, call: Message) -> Message:
        self.log.append("commit")
        self.state(1)
        self.state(2)
        return Message.new_method_return(call)

    def _reset(self, call: Message) -> Message:
        self.log.append(call.member.lower())
        self.records = []
        return Message.new_method_return(call)

    def state(self, state: int, error: str = "") -> None:
        self.fake.signal(
            self.to, self.group, "StateChanged", "is", state, error, interface=f"{BUS_NAME}.EntryGroup"
        )

    def server_state(self, state: int) -> None:
        self.fake.signal("", "/", "StateChanged", "is", state, "", interface=f"{BUS_NAME}.Server")

    def data(self, kind: int) -> bytes:
        (record,) = [r for r in self.records if r.kind == kind]
        return record.data

    @property
    def txt(self) -> bytes:
        return self.data(TXT)


async def until(true: Callable[[], bool], within_s: float = 3.0) -> None:
    """Wait until ``true()``."""
    loop = asyncio.get_running_loop()
    end = loop.time() + within_s
    while not true():
        assert loop.time() < end, "it did not become true"
        await asyncio.sleep(0.01)


@asynccontextmanager
async def publishing(bus: PrivateBus, name: str = "n-1") -> AsyncIterator[tuple[Groups, Publication]]:
    async with fake_avahi(bus) as fake, connect(bus.address) as avahi:
        groups = Groups(fake)
        async with Publication(avahi, TYPE, name, 4000, [b"a=1"]) as publication:
            await asyncio.wait_for(publication.established(), 2)
            yield groups, publication


def test_a_service_is_three_records_with_a_short_life(private_bus: PrivateBus) -> None:
    async def scenario() -> None:
        async with publishing(private_bus, "gpu node.1") as (groups, _):
            pointer, service, text = groups.records
            instance = rf"gpu\032node\.1.{TYPE}.local"
            wire = b"\x0agpu node.1\x0b_torch-rdzv\x04_tcp\x05local\x00"
            target = b"\x0agpu-node-1\x05local\x00"
            assert pointer == Record(groups.group, 0, f"{TYPE}.local", PTR, 10, wire)
            assert service == Record(
                groups.group, UNIQUE | NO_PROBE, instance, SRV, 10, b"\0\0\0\0\x0f\xa0" + target
            )
            assert text == Record(groups.group, UNIQUE | NO_PROBE, instance, TXT, 10, b"\x03a=1")
        assert groups.records == []

    run(scenario())


def test_updates_go_out_once_a_second_and_the_last_one_stays(
    private_bus: PrivateBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish_module, "UPDATE_INTERVAL_S", 0.3)

    async def scenario() -> None:
        async with publishing(private_bus) as (groups, publication):
            groups.log.clear()
            for number in range(20):
                publication.update([f"a={number}".encode()])
                await asyncio.sleep(0.01)
            assert len(groups.log) <= 1
            await until(lambda: groups.txt == b"\x04a=19")
            assert 1 <= len(groups.log) <= 2
            assert groups.records[-1].flags == UNIQUE | UPDATE

    run(scenario())


def test_an_update_that_changes_nothing_is_not_sent(private_bus: PrivateBus) -> None:
    async def scenario() -> None:
        async with publishing(private_bus) as (groups, publication):
            groups.log.clear()
            publication.update([b"a=1"])
            await asyncio.sleep(0.1)
            assert groups.log == []

    run(scenario())


def test_a_new_host_name_is_taken_over(private_bus: PrivateBus) -> None:
    """Avahi leaves the records of clients at the old name."""

    async def scenario() -> None:
        async with publishing(private_bus) as (groups, publication):
            for state in (REGISTERING, COLLISION, REGISTERING):
                groups.server_state(state)
            groups.fake.answers["GetHostNameFqdn"] = reply("s", "gpu-node-1-2.local")
            await until(lambda: groups.records == [])
            groups.server_state(RUNNING)
            await asyncio.wait_for(publication.established(), 2)
            assert b"gpu-node-1-2" in groups.data(SRV)
            assert len(groups.records) == 3

    run(scenario())


def test_a_collision_leads_to_another_name(private_bus: PrivateBus) -> None:
    async def scenario() -> None:
        async with publishing(private_bus) as (groups, publication):
            groups.fake.answers["GetAlternativeServiceName"] = reply("s", "n-1 #2")
            groups.state(COLLISION)
            await until(lambda: publication.name == "n-1 #2" and len(groups.records) == 3)
            assert groups.records[1].name == rf"n-1\032\0352.{TYPE}.local"

    run(scenario())


def test_a_failure_of_the_group_is_tried_again(
    private_bus: PrivateBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish_module, "RETRY_S", 0.05)

    async def scenario() -> None:
        async with publishing(private_bus) as (groups, publication):
            groups.state(4, "org.freedesktop.Avahi.OSError")
            await until(lambda: groups.group.endswith("1") and len(groups.records) == 3)
            await asyncio.wait_for(publication.established(), 2)

    run(scenario())


def test_a_restart_of_the_daemon_is_survived_with_the_txt_of_now(
    private_bus: PrivateBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish_module, "RETRY_S", 0.05)

    async def scenario() -> None:
        async with publishing(private_bus) as (groups, publication):
            await groups.fake.stop()
            await until(lambda: not publication._established.is_set())
            publication.update([b"a=2"])
            await asyncio.sleep(0.1)
            async with fake_avahi(private_bus) as fake:
                successor = Groups(fake)
                await asyncio.wait_for(publication.established(), 3)
                assert len(successor.records) == 3
                assert successor.txt == b"\x03a=2"
                publication.update([b"a=3"])
                await until(lambda: successor.txt == b"\x03a=3")

    run(scenario())


def test_what_avahi_forbids_is_told(private_bus: PrivateBus) -> None:
    async def scenario() -> None:
        async with fake_avahi(private_bus) as fake, connect(private_bus.address) as avahi:
            fake.answers["EntryGroupNew"] = refuse("org.freedesktop.Avahi.NotPermittedError", "Not permitted")
            with pytest.raises(PublishingForbidden) as caught:
                async with Publication(avahi, TYPE, "n", 4000):
                    pass
            assert "disable-user-service-publishing" in caught.value.hint

    run(scenario())


@pytest.mark.parametrize(("name", "txt"), [("n" * 64, []), ("", []), ("n", [b"x" * 300])])
def test_what_cannot_be_published_is_refused_before_anything_is_said(
    private_bus: PrivateBus, name: str, txt: list[bytes]
) -> None:
    async def scenario() -> None:
        async with fake_avahi(private_bus) as fake, connect(private_bus.address) as avahi:
            with pytest.raises(MalformedInput):
                Publication(avahi, TYPE, name, 4000, txt)
            assert "EntryGroupNew" not in fake.members()

    run(scenario())


def test_an_update_that_is_too_long_leaves_the_old_one(private_bus: PrivateBus) -> None:
    async def scenario() -> None:
        async with publishing(private_bus) as (groups, publication):
            with pytest.raises(MalformedInput):
                publication.update([b"x" * 300])
            await asyncio.sleep(0.05)
            assert groups.txt == b"\x03a=1"

    run(scenario())
