"""One job on this node from its start to its end: the rendezvous runs while torch is being imported."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Protocol

from avahi_gpu.errors import AvahiGpuError, ExitCode, LaunchFailed
from avahi_gpu.host.resolver import SLOW_NAMES, NameProbe
from avahi_gpu.launch.chronicle import Chronicle, Outcome, count
from avahi_gpu.launch.command import Request, leftovers, torchrun_arguments
from avahi_gpu.launch.neighbours import Neighbours
from avahi_gpu.launch.outcome import Stopped, describe, exit_code, first_failure
from avahi_gpu.rendezvous.dealings import JobEnded, Notice, Settings
from avahi_gpu.rendezvous.messages import Skills
from avahi_gpu.rendezvous.node import Node
from avahi_gpu.rendezvous.plugin import uncollected
from avahi_gpu.rendezvous.terms import Terms, warn_minority

LOOK_AROUND_AFTER_S = 1.0  # who gathers within that needs not be told whom it could wait for
SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Display(Protocol):
    """What shows a job's progress to people."""

    def event(self, text: str) -> None: ...
    def state(self, text: str, present: Sequence[str]) -> None: ...
    def see(self, names: Collection[str]) -> None: ...
    def exclude(self, name: str) -> None: ...
    def over(self) -> None: ...


@dataclass(frozen=True)
class Ending:
    """How the job ended on this node."""

    code: int
    error: AvahiGpuError | None = None


class Progress:
    """Hands what the rendezvous tells on to the display, and looks around where the waiting takes long."""

    def __init__(
        self, request: Request, display: Display, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.request = request
        self.display = display
        self.clock = clock
        self.chronicle = Chronicle(request.job, request.min_nodes, clock())
        self.begun = False  # workers have run
        self.loaded = False  # torch is there: the end of the job is heard of at once
        self._timer: threading.Timer | None = None
        self._neighbours: Neighbours | None = None
        self._lock = threading.Lock()

    def hear(self, notice: Notice) -> None:
        """Take in a notice of the rendezvous; called from its thread."""
        if notice.waiting:
            self.display.state(notice.text, notice.present)
            self._look_around_later()
            return
        if notice.ended:
            self.display.over()
            self.close()
            if self.loaded:  # whoever waits for the round learns of it, and says it as the last word
                return
        if notice.excluded:
            self.display.exclude(notice.excluded)
        if notice.formed is not None:
            self.display.over()
            self.close()
            self.chronicle.form(self.clock(), [(seat.id, seat.host) for seat in notice.formed.seats])
        elif notice.over:
            self.chronicle.regroup(self.clock(), notice.over)
        self.display.event(notice.text)

    def begin(self) -> None:
        """A round stands for the workers of this node."""
        self.begun = True

    def run(self) -> None:
        """The workers of this node have been started."""
        self.chronicle.run(self.clock())

    def fail(self, how: str, restarts_left: int) -> None:
        """Workers of this node have failed by themselves."""
        self.chronicle.fail(self.clock(), how)
        if restarts_left > 0:
            left = count(restarts_left - 1, "restart")
            self.display.event(f"{own_host()}: {how}; its workers start again, {left} left after this one")

    def conclude(self, outcome: Outcome) -> None:
        """Tell what became of it all."""
        told = self.chronicle.tell(self.clock(), outcome)
        if told:
            self.display.event(told)

    def close(self) -> None:
        """Stop looking around."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            if self._neighbours is not None:
                self._neighbours.close()
            self._timer = self._neighbours = None

    def _look_around_later(self) -> None:
        with self._lock:
            if self._timer is None:
                self._timer = threading.Timer(LOOK_AROUND_AFTER_S, self._look_around)
                self._timer.daemon = True
                self._timer.start()

    def _look_around(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._neighbours = Neighbours(self.request.cluster, self.display.see)
                self._neighbours.start()


def run_job(request: Request, skills: Skills, display: Display) -> Ending:
    """Take part in the job until it ends for this node.

    Raises AvahiGpuError where it cannot even be started here, KeyboardInterrupt and Stopped.
    """
    progress = Progress(request, display)
    settings = settings_of(request, skills)
    warning = warn_minority(settings.terms)
    if warning:
        display.event(warning)
    with signals_raised():
        node = Node.start(settings, progress.hear)
        goodbye = ("left", "")
        outcome: Outcome = "ended"
        last_word = ""  # behind the summary: what happened, as the other nodes say it too
        try:
            if request.certain:
                node.want()
            failures = train_here(request, node, progress)
            if failures:
                first = describe(first_failure(failures))
                goodbye, outcome = ("failed", first), "failed"
                last_word = f"{node.host}: {first}"
            else:
                goodbye, outcome = ("finished", ""), "finished"
            return Ending(exit_code(failures))
        except JobEnded as ended:
            if ended.finished:
                last_word = ended.message
                return Ending(ExitCode.FINE)
            return Ending(ExitCode.FAILED if progress.begun else ExitCode.LAUNCH_FAILED, ended)
        except (KeyboardInterrupt, Stopped):
            goodbye, outcome = ("left", "interrupted"), "left"
            raise
        except AvahiGpuError as error:
            goodbye = ("left", error.message)
            raise
        finally:
            progress.close()
            display.over()
            node.close(*goodbye)
            progress.conclude(outcome)
            if last_word:
                display.event(last_word)


def train_here(request: Request, node: Node, progress: Progress) -> Any:
    """Import torch, which takes a second, and run the workers. Raises AvahiGpuError, Stopped.

    The round may stand by then; where torch may still refuse the job here, it waits for that.
    """
    probe = NameProbe(node.address)
    for name in leftovers(os.environ):
        del os.environ[name]
    try:
        with uncollected(), quiet_import():
            from avahi_gpu.launch.agent import count_processes, read_arguments, shortcomings, train
    except (ImportError, OSError) as error:  # OSError: a library that torch loads is not there
        raise LaunchFailed(
            f"torch {node.terms.skills.torch} cannot be used: {str(error).partition(chr(10))[0]}",
            f"`{sys.executable} -c 'import torch.distributed.run'` shows it, too; install torch anew",
        ) from None
    progress.loaded = True
    for shortcoming in shortcomings():
        progress.display.event(f"warning: {shortcoming}")
    if probe.settle():
        progress.display.event(SLOW_NAMES)
    processes = count_processes(request.processes)
    if processes not in (1, "1"):
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # torchrun does so too, with a banner
    arguments = read_arguments(torchrun_arguments(request, processes))
    if not request.certain:
        node.want()
    return train(arguments, node, request.job, progress)


def settings_of(request: Request, skills: Skills) -> Settings:
    """Return the rendezvous's settings for this node."""
    host = own_host()
    terms = Terms(
        job=request.job,
        cluster=request.cluster,
        min_nodes=request.min_nodes,
        max_nodes=request.max_nodes,
        lost_after_s=request.lost_after_s,
        last_call_s=request.last_call_s,
        join_timeout_s=request.join_timeout_s,
        allow_skew=request.allow_skew,
        skills=skills,
    )
    key = request.key.key if request.key is not None else None
    return Settings(
        terms,
        host,
        request.priority,
        request.interface,
        request.peers,
        key,
        request.master,
        request.interfaces,
        request.interface_words,
    )


def own_host() -> str:
    """Return this host's name without a domain."""
    return socket.gethostname().partition(".")[0]


@contextmanager
def quiet_import() -> Iterator[None]:
    """Import torch in the block so that the words are left to us: torch elastic's own go with tracebacks.

    The workers' torch is not touched. LOGLEVEL, TORCH_LOGS and TORCH_CPP_LOG_LEVEL bring the words back.
    """
    # torch's C++ part reads it once, while it is loaded: no name for an address is worth no warning
    ours = "TORCH_CPP_LOG_LEVEL" not in os.environ
    if ours:
        os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"
    try:
        yield
    finally:
        if ours:
            del os.environ["TORCH_CPP_LOG_LEVEL"]
    if not (os.environ.get("LOGLEVEL") or os.environ.get("TORCH_LOGS")):
        for name in list(logging.root.manager.loggerDict):
            if name.startswith("torch.distributed"):
                logging.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def signals_raised() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block as Ctrl-C would, also before and after torch looks after them."""

    def stop(number: int, _frame: FrameType | None) -> None:
        raise Stopped(number)

    handlers: dict[int, Callable[..., Any] | int | None] = {s: signal.signal(s, stop) for s in SIGNALS}
    handlers[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
