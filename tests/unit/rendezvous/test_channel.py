"""Control connections over real sockets: the agreement hears of those who prove the key alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from avahi_gpu.files.cluster_key import ClusterKey
from avahi_gpu.rendezvous import messages as m
from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.channel import NO_PROOF_S, Channel
from avahi_gpu.rendezvous.election import Candidate
from avahi_gpu.rendezvous.proof import PROOF_LINE_MAX, Handshake, NotProven, Pass
from avahi_gpu.rendezvous.scout import Scout
from avahi_gpu.rendezvous.wire import PROVE_S

KEY, OTHER = ClusterKey(b"k" * 32), ClusterKey(b"K" * 32)
WITHIN_S = 10.0
PORTS = range(29400, 29420)  # where nodes listen, and so the only ones that records may name
WHO = m.Who("job", "lab")


class Peer:
    """One node's channel, with all that it told its agreement and people."""

    def __init__(self, number: int, key: ClusterKey | None) -> None:
        self.events: list[steps.Event] = []
        self.told: list[str] = []
        us = Pass(f"{number:016x}", f"node-{number}", "job", "lab", key, number)
        self.channel = Channel(self.feed, us, self.told.append)
        self.port = 0

    def feed(self, event: steps.Event) -> None:
        if isinstance(event, steps.Excluded):  # what the agreement tells people
            self.told.append(event.reason)
        else:
            self.events.append(event)

    @property
    def candidate(self) -> Candidate:
        us = self.channel.us
        return Candidate(us.id, us.host, "127.0.0.1", self.port)

    def seen(self, kind: type) -> list[steps.Event]:
        return [event for event in self.events if isinstance(event, kind)]


@asynccontextmanager
async def peers(*keys: ClusterKey | None) -> AsyncIterator[list[Peer]]:
    async with AsyncExitStack() as stack:
        found = [Peer(number, key) for number, key in enumerate(keys, 1)]
        for peer in found:
            peer.port = await peer.channel.listen(PORTS)
            stack.push_async_callback(peer.channel.close)
        yield found


async def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + WITHIN_S
    while not true():
        assert time.monotonic() < end, "in vain"
        await asyncio.sleep(0.005)


def play(scene: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await scene()

    asyncio.run(run())


@pytest.mark.parametrize("key", [None, KEY])
def test_two_nodes_of_a_kind_talk(key: ClusterKey | None) -> None:
    async def scene() -> None:
        async with peers(key, key) as (one, other):
            one.channel.open(other.candidate)
            await until(lambda: one.seen(steps.Opened))
            (opened,) = one.seen(steps.Opened)
            assert isinstance(opened, steps.Opened)
            for _ in range(3):
                one.channel.send(opened.conn, WHO)
            await until(lambda: len(other.seen(steps.Received)) == 3)
            kinds = [type(event) for event in other.events]
            assert kinds == [steps.Accepted, *3 * [steps.Received]]
            (accepted, first, *_) = other.events
            assert isinstance(accepted, steps.Accepted)
            assert isinstance(first, steps.Received)
            assert (accepted.remote, first.message) == ("127.0.0.1", WHO)
            other.channel.send(accepted.conn, m.Here(m.Record("a" * 16, "x", "127.0.0.1", 1)))
            await until(lambda: one.seen(steps.Received))
            other.channel.drop(accepted.conn)
            await until(lambda: one.seen(steps.Lost))
            assert not one.told + other.told

    play(scene)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ((KEY, OTHER), ("holds another cluster key", "holds another cluster key")),
        ((KEY, None), ("holds no cluster key", "this one has none")),
        ((None, KEY), ("this one has none", "holds no cluster key")),
    ],
)
def test_unequal_nodes_do_not_meet_and_both_are_told_once(
    keys: tuple[ClusterKey | None, ...], words: tuple[str, str]
) -> None:
    async def scene() -> None:
        async with peers(*keys) as (one, other):
            me = m.Record("1".zfill(16), "node-1", "127.0.0.1", 29400)
            for number in range(1, 4):
                one.channel.open(other.candidate)
                await until(lambda n=number: len(one.seen(steps.Opened) + one.seen(steps.OpenFailed)) == n)
                opened = one.seen(steps.Opened)
                if opened:  # without a key a hello goes out at once
                    one.channel.send(opened[-1].conn, m.Hello(me, "job", "lab", m.Skills()))  # type: ignore[attr-defined]
                    await until(lambda n=number: len(one.seen(steps.Lost)) == n)
            await until(lambda: other.told)
            assert not other.events
            for peer, host, word in ((one, "node-2", words[0]), (other, "node-1", words[1])):
                (told,) = peer.told
                assert f"{host} (127.0.0.1)" in told
                assert word in told

    play(scene)


async def connect(peer: Peer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", peer.port)


GARBAGE = [b"\n", b"\xff\x00garbage\n", b"x" * (PROOF_LINE_MAX + 1), b'{"a":1}\n']


@pytest.mark.parametrize("said", GARBAGE, ids=range(len(GARBAGE)))
@pytest.mark.parametrize("key", [None, KEY])
def test_garbage_ends_a_connection_unheard(key: ClusterKey | None, said: bytes) -> None:
    async def scene() -> None:
        async with peers(key) as (one,):
            reader, writer = await connect(one)
            writer.write(said if key or len(said) < PROOF_LINE_MAX else 5 * said)
            await asyncio.wait_for(reader.read(), WITHIN_S)
            writer.close()
            assert not one.events
            (told,) = one.told
            assert "127.0.0.1" in told
            assert ("avahi-gpu key new" in told) == (key is None)

    play(scene)


def test_silence_is_ended_in_time_and_nobody_is_told() -> None:
    async def scene() -> None:
        async with peers(KEY) as (one,):
            began = time.monotonic()
            reader, writer = await connect(one)
            assert await asyncio.wait_for(reader.read(), WITHIN_S) == b""
            assert time.monotonic() - began >= PROVE_S - 0.1
            writer.close()
            assert not one.events
            assert not one.told

    play(scene)


async def hang_up_in_the_proof(one: Peer) -> None:
    us = Pass("f" * 16, "node-9", "job", "lab", OTHER)
    reader, writer = await connect(one)
    writer.write(Handshake(us, b"9" * 32, "127.0.0.1", "127.0.0.1").begin())
    await reader.readline()
    writer.close()


def test_who_hangs_up_in_the_proof_is_told_of_unless_more_is_known_of_it() -> None:
    async def scene() -> None:
        async with peers(KEY) as (one,):
            await hang_up_in_the_proof(one)
            await until(lambda: one.told)
            assert one.told == ["node-9 (127.0.0.1) does not prove the cluster key and is ignored"]
        async with peers(KEY) as (one,):
            await hang_up_in_the_proof(one)
            one.channel.tell_unproven(NotProven("other-key", "node-9"), "127.0.0.1")
            await asyncio.sleep(2 * NO_PROOF_S)
            (told,) = one.told
            assert "holds another cluster key" in told

    play(scene)


def test_a_line_that_is_slipped_in_after_the_proof_ends_the_connection() -> None:
    async def scene() -> None:
        async with peers(KEY) as (one,):
            us = Pass("f" * 16, "node-9", "job", "lab", KEY)
            reader, writer = await connect(one)
            handshake = Handshake(us, b"9" * 32, "127.0.0.1", "127.0.0.1")
            writer.write(handshake.begin())
            writer.write(handshake.hear(await reader.readline()))
            assert handshake.session is not None
            writer.write(handshake.session.seal(m.encode(WHO)))
            await until(lambda: one.seen(steps.Received))
            writer.write(m.encode(WHO))
            await until(lambda: one.seen(steps.Lost))
            writer.close()
            assert [type(event) for event in one.events] == [steps.Accepted, steps.Received, steps.Lost]

    play(scene)


def test_a_node_gets_through_a_crowd_of_strangers() -> None:
    async def scene() -> None:
        async with peers(KEY, KEY) as (one, other), AsyncExitStack() as stack:
            for _ in range(100):
                _, writer = await connect(other)
                stack.callback(writer.close)
            one.channel.open(other.candidate)
            await until(lambda: one.seen(steps.Opened) and other.seen(steps.Accepted))
            (told,) = other.told
            assert "one connection after the other" in told

    play(scene)


def test_records_are_believed_when_they_are_proven_and_as_they_are_proven() -> None:
    """A record of another id, name and priority leads to whoever really listens there."""

    async def scene() -> None:
        async with peers(KEY, KEY, OTHER) as (one, other, stranger):
            scout = Scout(one.channel, lambda _: None)
            false = Candidate("e" * 16, "evil", "127.0.0.1", other.port, 1_000_000)
            nobody = Candidate("d" * 16, "evil", "127.0.0.1", 29419, 1_000_000)
            scout.seen("a", false)
            scout.seen("b", stranger.candidate)
            scout.seen("c", nobody)
            await until(lambda: one.seen(steps.Seen) and one.told)
            (seen,) = one.seen(steps.Seen)
            assert isinstance(seen, steps.Seen)
            assert seen.candidate == Candidate(f"{2:016x}", "node-2", "127.0.0.1", other.port, 2)
            one.channel.open(seen.candidate)
            await until(lambda: one.seen(steps.Opened))
            assert len(other.seen(steps.Accepted)) == 1, "the connection of the visit is used"
            assert [line for line in one.told if "node-3" in line] == one.told
            scout.unseen("a")
            scout.unseen("b")
            assert one.seen(steps.Unseen) == [steps.Unseen(f"{2:016x}")]
            scout.close()

    play(scene)


def test_without_a_key_the_first_records_are_taken_as_they_are_and_few_of_one_address() -> None:
    async def scene() -> None:
        async with peers(None) as (one,):
            scout = Scout(one.channel, lambda _: None)
            for number in range(300):
                port = PORTS[number % len(PORTS)]
                scout.seen(f"a-{number}", Candidate(f"{number + 100:016x}", "evil", "127.0.0.1", port))
            for number in range(1, 10):
                scout.seen(f"b-{number}", Candidate(f"{number:016x}", "node", f"10.0.0.{number}", 29400))
            ids = {event.candidate.id for event in one.seen(steps.Seen)}  # type: ignore[attr-defined]
            assert {f"{number:016x}" for number in range(1, 10)} <= ids
            assert len(ids) == 12
            (told,) = one.told
            assert "100 records" in told
            assert "avahi-gpu key new" in told
            assert "--peers" in told
            scout.unseen("b-1")
            assert one.seen(steps.Unseen) == [steps.Unseen(f"{1:016x}")]
            scout.close()

    play(scene)
