"""One node of a running job: the agreement driven by sockets, Avahi and the clock, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import threading
import time
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from avahi_gpu.avahi.bus import connect
from avahi_gpu.errors import DeadlineExceeded, LaunchFailed
from avahi_gpu.rendezvous import log, steps
from avahi_gpu.rendezvous.agreement import Agreement
from avahi_gpu.rendezvous.around import ask_around
from avahi_gpu.rendezvous.channel import Channel
from avahi_gpu.rendezvous.core import BEAT_S, END_LOST_S
from avahi_gpu.rendezvous.dealings import JobEnded, Keeper, Listener, Notice, Settings, describe_round
from avahi_gpu.rendezvous.election import Candidate
from avahi_gpu.rendezvous.environment import read_demand
from avahi_gpu.rendezvous.mesh import Formed, claim_job
from avahi_gpu.rendezvous.presence import Presence
from avahi_gpu.rendezvous.proof import NotProven, Pass
from avahi_gpu.rendezvous.roster import READY_LIMIT_S
from avahi_gpu.rendezvous.seating import Seating
from avahi_gpu.rendezvous.seek import ask_port, excused, seek
from avahi_gpu.rendezvous.surroundings import Surroundings
from avahi_gpu.rendezvous.terms import CONTROL_PORTS
from avahi_gpu.rendezvous.trace import Trace

# reading the interfaces and reaching the bus take milliseconds; three calls to a daemon that is overwhelmed
# take 3 s each before we go on without their answers; longer is a machine that hangs
START_S = 20.0
CLOSE_S = 3.0  # saying goodbye and withdrawing the record; on the way out nobody waits longer
FAREWELL_S = 2.0  # a leader that has finished waits that long for its members to say so too
HOLD_S = BEAT_S / 2  # how often the workers are held; the others hear from us as often as that or more seldom
END_S = READY_LIMIT_S - 5.0  # workers that do not end by then are killed, before the others go on without us
LATE_S = 0.001  # a timer that fires a hair too early has to be set again
STOOD_STILL_S = 0.5  # a tick that is late by that much: this process, or the whole machine, stood still
CATCH_UP_S = 0.1  # for reading what waits in the sockets


started: dict[str, Node] = {}  # by job: the nodes that wait for their torch handler


class Node:
    """One node of a job, from ``start`` to ``close``. Its methods may be called from any thread."""

    def __init__(self, settings: Settings, listener: Listener) -> None:
        self.settings = settings
        self.terms = settings.terms
        self.listener = listener
        self.id = secrets.token_hex(8)
        self.host = settings.host  # then Avahi's, which is unique on this LAN
        self.over = False  # the running round is over: the agent's workers have to go
        self.reason = ""  # … because of this
        self.loop = asyncio.new_event_loop()
        self.keeper: Keeper | None = None
        self._hold_at = 0.0
        self._changed = threading.Condition()
        self._formed: Formed | None = None
        self._ended: JobEnded | None = None
        self._ready = threading.Event()  # started, or failed to
        self._failure: BaseException | None = None
        self._closing = asyncio.Event()
        self._goodbye: tuple[str, str] = ("left", "")
        self._members_gone = threading.Event()
        priority = settings.priority_of(settings.host)
        self._pass = Pass(self.id, settings.host, self.terms.job, self.terms.cluster, settings.key, priority)
        self._channel = Channel(self._feed, self._pass, self.say)
        self._seating = Seating(self.id, self.terms.lost_after_s)
        self._around = Surroundings(
            read_demand(settings.interface, os.environ, settings.interfaces, settings.interface_words),
            alone=settings.terms.max_nodes == 1,
        )
        self._seat_watch: asyncio.Future[None] | None = None
        self._agreement: Agreement | None = None
        self._presence: Presence | None = None  # None: no avahi-daemon, --peers alone
        self._trace: Trace | None = None  # of AVAHI_GPU_LOG
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Future[None]] = set()
        self._thread = threading.Thread(target=self._run, name="avahi-gpu", daemon=True)

    # --- for the agent -------------------------------------------------------------------------------------

    @classmethod
    def start(cls, settings: Settings, listener: Listener) -> Node:
        """Start the node in the background. Raises AvahiGpuError where it cannot run on this host."""
        wrong = log.configure()
        if wrong:
            listener(Notice(wrong))
        lock = claim_job(settings.terms.job, settings.terms.cluster)
        if lock is None:
            raise LaunchFailed(
                f"job '{settings.terms.job}' is running on this host already",
                "end it first, or give this one another name (--job, or torchrun's --rdzv-id)",
            )
        node = cls(settings, listener)
        node._lock = lock
        node._thread.start()
        if not node._ready.wait(START_S):
            late = f"the start took longer than {START_S:g} s"
            node._failure = LaunchFailed(late, "look at `avahi-gpu doctor`")
            with contextlib.suppress(RuntimeError):  # it has ended meanwhile
                node.loop.call_soon_threadsafe(node._closing.set)  # who is too late takes no part
        if node._failure is not None:
            lock.close()
            raise node._failure
        return node

    _lock: socket.socket | None = None

    def want(self, reason: str = "") -> None:
        """Say that no workers run here and that a round is wanted."""
        self.loop.call_soon_threadsafe(self._want, reason)

    def wait_for_round(self, within_s: float) -> Formed | None:
        """Return the round once it stands, None where it does not in time. Raises JobEnded."""
        with self._changed:
            self._changed.wait_for(lambda: self._formed is not None or self._ended is not None, within_s)
            if self._formed is not None:
                formed, self._formed = self._formed, None
                return formed
            if self._ended is not None:
                raise self._ended
            return None

    def over_within(self, seconds: float) -> bool:
        """Return whether the running round is over, or is told to be within ``seconds``."""
        with self._changed:
            return self._changed.wait_for(lambda: self.over, seconds)

    def keep(self, keeper: Keeper | None) -> None:
        """Have the workers of the round ended by ``keeper`` where we do not live on ourselves."""
        self.keeper = keeper
        if keeper is not None:
            keeper.hold(self.terms.lost_after_s + HOLD_S)

    @property
    def address(self) -> str:
        """The address that this node offers before a round has chosen one."""
        return self._around.address

    def close(self, outcome: str, detail: str = "") -> None:
        """Say goodbye (``finished``, ``failed`` or ``left``), withdraw the record, end the thread; bounded.

        A leader that has finished first waits a moment for its members, whose last words need its store.
        """
        if not self._thread.is_alive():
            return
        if self.keeper is not None:
            self.keeper.hold(END_S)  # from here on the agent ends them, or lets them be, as is its way
        if outcome == "finished":
            self._members_gone.clear()  # it was set when we had no members yet
            with contextlib.suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self._check_members)
                self._members_gone.wait(FAREWELL_S)
        self._goodbye = (outcome, detail)
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            self.loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(CLOSE_S)

    # --- the thread ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(self._live())
        except BaseException as error:
            self._failure = error
            self._end(JobEnded(f"the rendezvous ended: {error}"))
        finally:
            self._ready.set()
            if self._lock is not None:
                self._lock.close()
            self.loop.close()

    async def _live(self) -> None:
        await self._around.read()
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self._shut)
            avahi = None
            with excused(self.settings.peers, self.say):
                avahi = await stack.enter_async_context(connect())
                with contextlib.suppress(DeadlineExceeded):  # of one that is overwhelmed
                    self._rename(await avahi.host_name() or self.host)
            port = await self._channel.listen(CONTROL_PORTS)
            own = Candidate(self.id, self.host, self.address, port, self.settings.priority_of(self.host))
            self._agreement = Agreement(own, self.terms)
            known = self._agreement.core.candidates.known
            self._channel.reserve(lambda: {candidate.address for candidate in known.values()})
            self._trace = log.start_trace(own, time.monotonic())
            self._feed(self._around.moved)
            self._spawn(self._around.watch(self._feed))
            await self._seating.open()
            around = self._around
            if self.settings.peers:
                self._spawn(seek(self._pass, self.settings.peers, lambda: around.addresses, avahi, self))
            if avahi is not None:
                self._spawn(ask_around(self._pass, lambda: around.interfaces, avahi, self))
                with excused(self.settings.peers, self.say):
                    self._presence = Presence(avahi, self.terms, own, self._channel)
                    stack.push_async_callback(self._presence.leave)
                    await self._presence.enter(self._around.best_first)
            self._feed(steps.Tick())
            self._ready.set()
            await self._closing.wait()
            self._feed(steps.Closed(*self._goodbye))

    def _rename(self, host: str) -> None:
        self.host = host
        self._pass = replace(self._pass, host=host, priority=self.settings.priority_of(host))
        self._channel = Channel(self._feed, self._pass, self.say)  # none was opened by the old one

    async def _shut(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for task in list(self._tasks):
            task.cancel()
        await self._channel.close()
        await self._seating.close()

    @property
    def bound(self) -> bool:
        """Whether this node looks for nobody now."""
        return self._agreement is None or self._agreement.bound

    @property
    def waiting(self) -> bool:
        """Whether this node waits for others, and no round runs."""
        return self._agreement is not None and not self._agreement.bound and self._agreement.round is None

    @property
    def crowded(self) -> bool:
        """Whether there are so many records of jobs that those of our own nodes may not be among them."""
        return self._presence is not None and self._presence.crowded

    def found(self, candidate: Candidate) -> None:
        """Somebody runs our job at an address that the user has named, or where a node of the LAN is."""
        if candidate.id != self.id:
            self._feed(steps.Seen(candidate))

    def tell_unproven(self, failure: NotProven, address: str) -> None:
        """Somebody of our job, where the user has named a peer, does not prove the key."""
        self._channel.tell_unproven(failure, address)

    def say(self, text: str) -> None:
        """Tell people something."""
        self._say(Notice(text))

    # --- the agreement -------------------------------------------------------------------------------------

    def _feed(self, event: steps.Event) -> None:
        """Give the agreement an event and do what it wants done."""
        assert self._agreement is not None
        now = time.monotonic()
        actions = self._agreement.handle(event, now)
        if self._trace is not None:
            log.follow(self._trace, event, actions, self._agreement.core.candidates, now)
        for action in actions:
            self._perform(action)
        if self.keeper is not None and self._agreement.round is not None and now >= self._hold_at:
            self._hold_at = now + HOLD_S
            self.keeper.hold(self.terms.lost_after_s + HOLD_S)
        if isinstance(event, steps.OpenFailed) and self._presence is not None:
            self._presence.failed(event.id)
        if self._timer is not None:
            self._timer.cancel()
        wait_s = max(0.0, self._agreement.deadline() - time.monotonic()) + LATE_S
        self._timer = self.loop.call_later(wait_s, self._tick, time.monotonic() + wait_s)
        self._check_members()

    def _tick(self, due: float) -> None:
        if time.monotonic() > due + STOOD_STILL_S:
            # what has come in meanwhile is read before anybody is lost
            self._timer = self.loop.call_later(CATCH_UP_S, self._feed, steps.Tick())
        else:
            self._feed(steps.Tick())

    def _perform(self, action: steps.Action) -> None:
        match action:
            case steps.Open(candidate):
                self._channel.open(candidate)
            case steps.Send(conn, message):
                self._channel.send(conn, message)
            case steps.Drop(conn):
                self._channel.drop(conn)
            case steps.Ask():
                self._spawn(self._ask(action))
            case steps.Reserve():
                self.loop.call_soon(self._reserve, action)
            case steps.TestMesh():
                self._spawn(self._test_mesh(action))
            case steps.Deliver(formed):
                self._deliver(formed)
            case steps.Over(reason, lost):
                self._watch_seat(None)
                if self.keeper is not None:
                    self.keeper.end(END_LOST_S if lost else END_S)
                with self._changed:
                    self.over, self.reason = True, reason
                    self._changed.notify_all()
                if self._agreement is not None and self._agreement.core.ended is None:
                    self._say(Notice(f"regrouping: {reason}", over=reason))
                self._show_part(None)
            case steps.End(reason, hint, finished):
                self._end(JobEnded(reason, hint, finished=finished))
                self._say(Notice(reason, ended=True))
            case steps.Tell(text, present, waiting, excluded):
                self._say(Notice(text, present, waiting, excluded=excluded))

    def _want(self, reason: str) -> None:
        self._watch_seat(None)
        self._seating.release()
        with self._changed:
            self._formed = None
        self._feed(steps.Wanted(self._seating.mesh.port, reason))

    def _reserve(self, action: steps.Reserve) -> None:
        self._feed(self._seating.reserve(action, self.host))

    async def _ask(self, question: steps.Ask) -> None:
        answer = await ask_port(question.address, question.port, self._pass, self.id)
        if isinstance(answer, tuple) and answer[0].me.id == question.id:
            self._feed(steps.Answered(question.conn, answer[0].apart))

    async def _test_mesh(self, action: steps.TestMesh) -> None:
        self._feed(await self._seating.test(action))

    def _deliver(self, formed: steps.Round) -> None:
        store = self._seating.take(formed)
        where = self._around.explain(formed)
        if where:
            self.say(where)
        self._watch_seat(formed)
        self._channel.expect(self._seating.mesh.members)
        self._say(Notice(describe_round(formed), formed=formed))
        with self._changed:
            self.over, self.reason = False, ""
            self._formed = Formed(formed, self._around.interface_at(formed.own.address), store)
            self._changed.notify_all()
        self._show_part(formed)

    def _watch_seat(self, formed: steps.Round | None) -> None:
        """Watch the network of a round from now on, or (None) no more."""
        if self._seat_watch is not None:
            self._seat_watch.cancel()
            self._seat_watch = None
        if formed is not None and formed.rank > 0:
            self._seat_watch = self._spawn(self._wait_for_cut(formed))

    async def _wait_for_cut(self, formed: steps.Round) -> None:
        cut = await self._seating.wait_for_cut(formed)
        if cut is not None:
            self._feed(cut)

    def _end(self, ended: JobEnded) -> None:
        with self._changed:
            self._ended = self._ended or ended
            self.over, self.reason = True, self.reason or ended.message
            self._changed.notify_all()

    def _show_part(self, formed: steps.Round | None) -> None:
        """What people see of us in the LAN's records: the round that runs, or (None) that we wait."""
        if self._presence is not None and self._agreement is not None:
            self._presence.show(formed, self._agreement.core.epoch, self._agreement.leader_host)

    def _say(self, notice: Notice) -> None:
        with contextlib.suppress(Exception):  # a listener that cannot print must not end the job
            self.listener(notice)

    def _check_members(self) -> None:
        """Let a leader that has finished go once no member of its round is left; spares need no store."""
        assert self._agreement is not None
        if not self._agreement.core.seated & set(self._agreement.leading.roster.members):
            self._members_gone.set()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Future[None]:
        task: asyncio.Future[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
