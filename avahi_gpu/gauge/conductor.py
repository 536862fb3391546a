"""The node that leads a measurement: it says whose turn it is, and keeps what comes of it."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from avahi_gpu.errors import MalformedInput, MeasurementBroken
from avahi_gpu.gauge.figures import SIZE_MAX, SIZE_QUICK, sizes
from avahi_gpu.gauge.line import Line, answer, listen
from avahi_gpu.gauge.messages import (
    SECRET_BYTES,
    Begin,
    Begun,
    Done,
    Enlist,
    Message,
    Place,
    Reduce,
    Reduced,
    Step,
    Stop,
    Tried,
    Try,
)
from avahi_gpu.gauge.player import NOT_ASKED, Player
from avahi_gpu.gauge.schedule import make_schedule
from avahi_gpu.gauge.workers import ENDED_BY, same_release
from avahi_gpu.model.gauge import GaugedLink, GaugedNode, Measurement
from avahi_gpu.rendezvous.mesh import Formed
from avahi_gpu.rendezvous.messages import Seat
from avahi_gpu.rendezvous.proof import Pass

ANSWER_S = 30.0  # beyond the time that a measurement takes: its own limits are shorter
REDUCE_LIMIT_S, REDUCE_LIMIT_QUICK_S = 4.0, 1.0  # for one all-reduce: larger ones are left out
REDUCE_BUDGET_S, REDUCE_BUDGET_QUICK_S = 0.5, 0.05  # for the repetitions of one size
CAUSE_S = 0.5  # whose process was killed is known at once; others fail of its silence a moment later
REDUCE_S = 300.0  # for all sizes together

M = TypeVar("M", bound=Message)


class Conductor:
    """Leads one measurement. ``measured`` is what is known so far, also where it ends before its time."""

    def __init__(
        self, formed: Formed, us: Pass, player: Player, tell: Callable[[str], None], *, quick: bool
    ) -> None:
        assert formed.store is not None
        self.store = formed.store
        self.seats: Sequence[Seat] = formed.round.seats
        self.worker_port = formed.round.worker_port
        self.us, self.player, self.tell, self.quick = us, player, tell, quick
        self.lines: dict[int, Line] = {}
        self.enlisted: dict[int, Enlist] = {}
        self.measured = Measurement()
        self._came = asyncio.Condition()

    async def lead(self) -> Measurement:
        """Measure all, tell all, return it. Raises MeasurementBroken."""
        server = await listen(self.store, self._meet)
        try:
            await self._gather()
            await self._try_pairs()
            await self._reduce()
            self._say_all(Done(self.measured))
            return self.measured
        finally:
            server.close()
            await asyncio.gather(*(line.close() for line in self.lines.values()))

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        met = await answer(reader, writer, self.us)
        if met is None:
            return
        line, first = met
        async with self._came:
            rank = next(
                (r for r, seat in enumerate(self.seats) if isinstance(first, Enlist) and seat.id == first.id),
                0,
            )
            if not rank or rank in self.lines or not isinstance(first, Enlist):
                writer.close()
                return
            self.lines[rank], self.enlisted[rank] = line, first
            self._came.notify_all()

    async def _gather(self) -> None:
        self.tell("getting ready")
        self.enlisted[0] = await self.player.enlist()
        async with self._came:
            await self._came.wait_for(lambda: len(self.enlisted) == len(self.seats))
        ordered = [self.enlisted[rank] for rank in range(len(self.seats))]
        nodes = [
            GaugedNode(seat.host, seat.address, node.interface, node.link, node.mbit or None, node.duplex)
            for seat, node in zip(self.seats, ordered, strict=True)
        ]
        self.measured = Measurement(tuple(nodes))
        places = [
            Place(seat.host, seat.address, node.port) for seat, node in zip(self.seats, ordered, strict=True)
        ]
        begin = Begin(secrets.token_hex(SECRET_BYTES), tuple(places))
        self.player.begin(begin)
        # all of them before the first one is measured: who does not know the secret yet turns others away
        await asyncio.gather(*(self._ask(rank, begin, Begun, ANSWER_S) for rank in self.lines))

    async def _try_pairs(self) -> None:
        schedule = make_schedule(len(self.seats), quick=self.quick)
        self.measured = replace(self.measured, sampled=schedule.sampled)
        for number, (source, target) in enumerate(schedule.pairs, 1):
            way = f"{self.seats[source].host} to {self.seats[target].host}"
            self._show(f"measuring TCP, {number} of {len(schedule.pairs)}: {way}")
            wish = Try(target, schedule.send_s, schedule.echo_s)
            if source == 0:
                tried = await self.player.attempt(wish)
            else:
                tried = await self._ask(source, wish, Tried, schedule.send_s + schedule.echo_s + ANSWER_S)
            link = GaugedLink(
                source,
                target,
                tried.bits_per_s,
                tried.round_trip_best_s,
                tried.round_trip_s,
                tried.round_trip_p99_s,
                tried.resent,
                tried.error,
            )
            self.measured = replace(self.measured, links=(*self.measured.links, link))

    async def _reduce(self) -> None:
        ordered = [self.enlisted[rank] for rank in range(len(self.seats))]
        omitted = why_no_reduction(ordered, [seat.host for seat in self.seats])
        if omitted:
            self.measured = replace(self.measured, omitted=omitted)
            return
        ranks, backend = sum(node.processes for node in ordered), ordered[0].backend
        self._show(f"measuring the all-reduce of {ranks} processes over {backend}")
        firsts = [sum(node.processes for node in ordered[:rank]) for rank in range(len(ordered))]
        wishes = [
            Reduce(
                first,
                ranks,
                self.seats[0].address,
                self.worker_port,
                sizes(SIZE_QUICK if self.quick else SIZE_MAX),
                REDUCE_LIMIT_QUICK_S if self.quick else REDUCE_LIMIT_S,
                REDUCE_BUDGET_QUICK_S if self.quick else REDUCE_BUDGET_S,
            )
            for first in firsts
        ]
        reducing = [asyncio.ensure_future(self.player.reduce(wishes[0]))]
        reducing += [
            asyncio.ensure_future(self._ask(rank, wishes[rank], Reduced, REDUCE_S))
            for rank in range(1, len(wishes))
        ]
        try:
            failed = await self._wait_for_all(reducing)
            results = (await reducing[0]).results
        finally:
            for each in reducing:
                each.cancel()
        self.measured = replace(
            self.measured,
            reductions=results,
            backend=backend,
            ranks=ranks,
            torch=ordered[0].torch,
            omitted=failed,
            failed=bool(failed),
        )

    async def _wait_for_all(self, reducing: Sequence[asyncio.Future[Reduced]]) -> str:
        """Wait until all have ended, by themselves or because one has failed; return why, '' for no failure.

        Raises MeasurementBroken.
        """
        pending = set(reducing)
        failed: list[str] = []
        while pending and not failed:
            _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            failed = self._failures(reducing)
        if failed and pending:
            await asyncio.wait(pending, timeout=CAUSE_S)
            failed = self._failures(reducing)
            self._say_all(Stop())
            await self.player.stop_reducing()
            await asyncio.wait(pending)
        # who was killed is the cause, and what the others say of their connections follows from it
        return min(failed, key=lambda text: ENDED_BY not in text, default="")

    def _failures(self, reducing: Sequence[asyncio.Future[Reduced]]) -> list[str]:
        return [
            f"the all-reduce failed on {seat.host}: {each.result().error}"
            for seat, each in zip(self.seats, reducing, strict=True)
            if each.done() and each.result().error
        ]

    async def _ask(self, rank: int, wish: Message, kind: type[M], within_s: float) -> M:
        """Return a node's answer. Raises MeasurementBroken."""
        line, host = self.lines[rank], self.seats[rank].host
        line.say(wish)
        try:
            said = await asyncio.wait_for(line.hear(), within_s)
        except (OSError, MalformedInput, asyncio.TimeoutError) as error:
            raise MeasurementBroken(
                f"{host} no longer takes part: {str(error) or 'it does not answer'}"
            ) from None
        if not isinstance(said, kind):
            raise MeasurementBroken(f"{host} has left the measurement")
        return said

    def _show(self, text: str) -> None:
        self.tell(text)
        self._say_all(Step(text))

    def _say_all(self, message: Message) -> None:
        for line in self.lines.values():
            with contextlib.suppress(OSError):
                line.say(message)


def why_no_reduction(nodes: Sequence[Enlist], hosts: Sequence[str]) -> str:
    """Return why these nodes cannot reduce together, '' where they can."""
    for node, host in zip(nodes, hosts, strict=True):
        if not node.processes:
            return "--tcp leaves it out" if node.lacks == NOT_ASKED else f"{host}: {node.lacks}"
    if len({node.backend for node in nodes}) > 1:
        which = ", ".join(f"{host} {node.backend}" for node, host in zip(nodes, hosts, strict=True))
        return (
            f"the nodes would use different backends: {which}; --nproc-per-node cpu makes it gloo everywhere"
        )
    if not same_release([node.torch for node in nodes]):
        which = ", ".join(f"{host} {node.torch}" for node, host in zip(nodes, hosts, strict=True))
        return f"the nodes have different versions of torch: {which}"
    return ""
