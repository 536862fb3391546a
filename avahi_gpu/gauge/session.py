"""One measurement on this node from start to end: the nodes meet as those of a job do, without torch."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from avahi_gpu.errors import AvahiGpuError, MalformedInput, MeasurementBroken, TooFewPeers
from avahi_gpu.gauge.conductor import Conductor
from avahi_gpu.gauge.line import Line, call
from avahi_gpu.gauge.messages import Begin, Begun, Done, Reduce, Reduced, Step, Stop, Try
from avahi_gpu.gauge.player import Player
from avahi_gpu.launch.command import Request
from avahi_gpu.launch.job import Display, Progress, settings_of, signals_raised
from avahi_gpu.launch.outcome import Stopped
from avahi_gpu.model.gauge import Measurement
from avahi_gpu.rendezvous.dealings import JobEnded, Notice
from avahi_gpu.rendezvous.mesh import Formed
from avahi_gpu.rendezvous.messages import Skills
from avahi_gpu.rendezvous.node import Node
from avahi_gpu.rendezvous.proof import NotProven, Pass
from avahi_gpu.rendezvous.wire import describe

SLICE_S = 0.5  # signals are handled between two slices of waiting
LOOK_S = 0.1  # how soon the end of the round is seen
WHY_S = 2.0  # beyond the silence that is death: a broken connection is told of with its cause
AGAIN = "run it again on all nodes once that is mended"


class Board(Display, Protocol):
    """What shows the progress to people."""

    def step(self, text: str) -> None: ...


@dataclass
class Ending:
    """How it ended here. ``measured``: what is known, also where ``error`` says why that is not all."""

    measured: Measurement
    leader: str = ""  # host
    leads: bool = False
    error: AvahiGpuError | None = None


def measure_network(request: Request, board: Board, *, quick: bool, reduce: bool) -> Ending:
    """Meet the other nodes, measure, and part.

    Raises AvahiGpuError where nothing could be measured, KeyboardInterrupt and Stopped.
    """
    progress = Progress(request, board)
    progress.loaded = True  # why there is no round is said by whoever waits for it

    def hear(notice: Notice) -> None:
        if not notice.over:  # nobody regroups: the end of the measurement says why
            progress.hear(notice)

    skills = Skills(min_nodes=request.min_nodes, max_nodes=request.max_nodes)
    goodbye = ("left", "")
    with signals_raised():
        node = Node.start(settings_of(request, skills), hear)
        try:
            formed = wait_for_round(node, request)
            ending = Measuring(node, formed, request, board, quick=quick, reduce=reduce).run()
            goodbye = ("left", ending.error.message) if ending.error else ("finished", "")
        except (KeyboardInterrupt, Stopped):
            goodbye = ("left", "interrupted")
            raise
        finally:
            progress.close()
            board.over()
            node.close(*goodbye)
    return ending


def wait_for_round(node: Node, request: Request) -> Formed:
    """Return the round once it stands. Raises TooFewPeers where they do not come in time, else JobEnded."""
    began = time.monotonic()
    node.want()
    try:
        while True:
            formed = node.wait_for_round(SLICE_S)
            if formed is not None:
                return formed
    except JobEnded as ended:
        if time.monotonic() - began >= request.join_timeout_s - SLICE_S:
            raise TooFewPeers(ended.message, ended.hint) from None
        raise


class Measuring:
    """The time between the start of a round and its end."""

    def __init__(
        self, node: Node, formed: Formed, request: Request, board: Board, *, quick: bool, reduce: bool
    ) -> None:
        self.node, self.formed, self.request, self.board = node, formed, request, board
        self.quick, self.reduce = quick, reduce
        round = formed.round
        key = request.key.key if request.key is not None else None
        # a proof for this round alone: one for the job, or for another round, opens nothing here
        self.us = Pass(round.own.id, round.own.host, f"bench {round.token}", request.cluster, key)
        self.ending = Ending(Measurement(), round.leader.host, round.rank == 0)
        self._signal = 0

    def run(self) -> Ending:
        """Measure until all is known or the round is over. Raises Stopped, KeyboardInterrupt."""
        try:
            asyncio.run(self._run())
        except AvahiGpuError as error:
            self.ending.error = error
        except asyncio.CancelledError:
            if self._signal == signal.SIGINT:
                raise KeyboardInterrupt from None
            raise Stopped(self._signal) from None
        return self.ending

    async def _run(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def stop(number: int) -> None:
            self._signal = number
            if task is not None:
                task.cancel()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, stop, number)
        round = self.formed.round
        try:
            player = Player(round.own, self.formed.interface, self.request.processes if self.reduce else "")
        except OSError as error:
            raise MeasurementBroken(f"{round.own.address} cannot be listened on: {describe(error)}") from None
        try:
            await self._until_over(self._lead(player) if round.rank == 0 else self._follow(player))
        finally:
            await player.close()

    async def _until_over(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work, unless the round ends before it. Raises MeasurementBroken with the cause."""
        working = asyncio.ensure_future(work)
        try:
            while not working.done():
                if self.node.over:
                    raise MeasurementBroken(f"the measurement is broken off: {self.node.reason}", AGAIN)
                await asyncio.wait({working}, timeout=LOOK_S)
            error = working.exception()
            if isinstance(error, MeasurementBroken):
                await self._wait_for_cause()
                raise MeasurementBroken(
                    f"the measurement is broken off: {self.node.reason or error.message}", AGAIN
                )
            if error is not None:
                raise error
        finally:
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await working

    async def _wait_for_cause(self) -> None:
        """Give the rendezvous the time that it takes to say who is lost."""
        until = time.monotonic() + self.request.lost_after_s + WHY_S
        while not self.node.over and time.monotonic() < until:  # noqa: ASYNC110  a thread sets it
            await asyncio.sleep(LOOK_S)

    async def _lead(self, player: Player) -> None:
        conductor = Conductor(self.formed, self.us, player, self.board.step, quick=self.quick)
        try:
            await conductor.lead()
        finally:
            self.ending.measured = conductor.measured

    async def _follow(self, player: Player) -> None:
        """Do what the leader says, until it says that this was all."""
        round = self.formed.round
        self.board.step("getting ready")
        ready = await player.enlist()
        try:
            line = await call(round.leader.address, round.store_port, self.us)
        except (OSError, NotProven, asyncio.TimeoutError) as error:
            raise MeasurementBroken(f"{round.leader.host} is not reached: {describe(error)}") from None
        try:
            line.say(ready)
            while True:
                match await line.hear():
                    case Begin() as begin:
                        player.begin(begin)
                        line.say(Begun())
                    case Step(text):
                        self.board.step(text)
                    case Try() as wish:
                        line.say(await player.attempt(wish))
                    case Reduce() as wish:
                        line.say(await reduce_until_stopped(player, wish, line))
                    case Stop():  # of what has ended here already
                        continue
                    case Done(measured):
                        self.ending.measured = measured
                        return
                    case _:
                        raise MeasurementBroken(f"{round.leader.host}, which leads, has left the measurement")
        except (OSError, MalformedInput) as error:
            raise MeasurementBroken(f"{round.leader.host}, which leads, is lost: {describe(error)}") from None
        finally:
            await line.close()


async def reduce_until_stopped(player: Player, wish: Reduce, line: Line) -> Reduced:
    """Take part in the all-reduce, unless the leader says that it has failed elsewhere.

    Raises OSError, MalformedInput, and MeasurementBroken where the leader has gone.
    """
    reducing, hearing = asyncio.ensure_future(player.reduce(wish)), asyncio.ensure_future(line.hear())
    try:
        await asyncio.wait({reducing, hearing}, return_when=asyncio.FIRST_COMPLETED)
        if hearing.done():
            if not isinstance(hearing.result(), Stop):
                raise MeasurementBroken("the node that leads has left the measurement")
            await player.stop_reducing()
        return await reducing
    finally:
        reducing.cancel()
        hearing.cancel()
        # one at a time may listen: the next one only once this one has let go
        await asyncio.wait({reducing, hearing})
