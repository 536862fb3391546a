"""torch elastic's agent, in this process and with the backend ``avahi``. Imports torch: import this late.

docs/adr/0003-torch-api.md lists every name of torch's that is used here.
"""

from __future__ import annotations

import dataclasses
import inspect
import io
import os
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from pathlib import Path
from typing import Any, Protocol

import torch
from torch.distributed.elastic.agent.server import RunResult, WorkerGroup, WorkerSpec, WorkerState
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.rendezvous import RendezvousInfo
from torch.distributed.run import config_from_args, parse_args

from avahi_gpu.errors import LaunchFailed, Misuse
from avahi_gpu.launch import tether
from avahi_gpu.launch.outcome import Failure, Stopped, describe, first_failure
from avahi_gpu.rendezvous.handler import WHOSE_FAILURE_S, AvahiRendezvous
from avahi_gpu.rendezvous.node import Node

OWN_LOGS = str(Path(tempfile.gettempdir()) / "torchelastic_")  # where torch puts logs that nobody asked for
# a worker that sits in a collective operation with a dead peer does not see Ctrl-C; people at a terminal wait
# no longer than this
INTERRUPT_GRACE_S = 2.0
SIGNALS_TO_HANDLE = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"  # torch's own default, where it has no option for it

Arguments = tuple[Any, Any, list[str]]  # torch's configuration, the entry point, its arguments


class Witness(Protocol):
    """Who is told what becomes of the workers of this node."""

    def begin(self) -> None:
        """A round stands, and its workers are about to be started."""

    def run(self) -> None:
        """They have been started."""

    def fail(self, how: str, restarts_left: int) -> None:
        """Some have failed by themselves."""


class LaunchRendezvous(AvahiRendezvous):
    """The backend as torchrun uses it; that the job has ended reaches us as JobEnded itself."""

    def __init__(self, node: Node, run_id: str, witness: Witness) -> None:
        super().__init__(node, run_id)
        self.witness = witness

    def next_rendezvous(self) -> RendezvousInfo:
        """Return the round that this node is part of. Raises JobEnded."""
        while True:
            self.want()
            formed = self.wait()
            store = self.gather(formed)
            if store is not None:
                self.witness.begin()
                return self.enter(formed, store)

    def shutdown(self) -> bool:
        """Leave the goodbye to whoever runs us and knows how it ended: older torches call this at any end."""
        return True


class LaunchAgent(LocalElasticAgent):  # type: ignore[misc]  # torch is not looked into
    """torch's agent, which tells a failure of its own workers from the loss of another node.

    Each method that it extends is one that torch documents for that. Where a later torch has renamed one,
    ours is not called, and ``shortcomings`` says what torch does then.
    """

    def __init__(self, handler: LaunchRendezvous, spec: WorkerSpec, **options: Any) -> None:
        super().__init__(spec=spec, **options)
        self.handler = handler
        self.node = handler.node
        self.restarts_left = spec.max_restarts

    def _initialize_workers(self, worker_group: WorkerGroup, *more: Any, **named: Any) -> None:
        """Form a round and start the workers; again where the leader dies between the two."""
        while True:
            try:
                super()._initialize_workers(worker_group, *more, **named)
            except torch.distributed.DistError:
                if not self.node.over_within(self.node.terms.lost_after_s + WHOSE_FAILURE_S):
                    raise
                continue
            break
        self.handler.witness.run()

    def _monitor_workers(self, worker_group: WorkerGroup, *more: Any, **named: Any) -> RunResult:
        """Say that all is well where workers have failed because another node is lost: torch then regroups.

        It counts no restart for it, as ``num_nodes_waiting`` of the rendezvous is positive by now.
        """
        result = super()._monitor_workers(worker_group, *more, **named)
        if result.state == WorkerState.FAILED and self.node.over_within(WHOSE_FAILURE_S):
            return RunResult(state=WorkerState.HEALTHY)
        if result.state == WorkerState.FAILED:
            first = first_failure([describe_failure(rank, f) for rank, f in result.failures.items()])
            self.handler.reason = f"{self.node.settings.host}: {describe(first)}"
            self.handler.witness.fail(describe(first), self.restarts_left)
            self.restarts_left -= 1
        return result

    def _shutdown(self, death_sig: signal.Signals = signal.SIGTERM, *more: Any, **named: Any) -> None:
        """End the workers; those that do not heed Ctrl-C are killed."""
        if isinstance(sys.exc_info()[1], SignalException):
            # first of all, so that nobody takes the end of our workers for a failure of the job
            self.node.close("left", "interrupted")
        timer = None
        if death_sig == signal.SIGINT:
            timer = threading.Timer(INTERRUPT_GRACE_S, kill_groups, [self._worker_pids()])
            timer.daemon = True
            timer.start()
        try:
            super()._shutdown(death_sig, *more, **named)
        finally:
            if timer is not None:
                timer.cancel()

    def _worker_pids(self) -> list[int]:
        return [worker.id for worker in self.get_worker_group().workers if isinstance(worker.id, int)]


# what LaunchAgent extends, and what torch does in its place where it is not called
EXTENDED = {
    "_initialize_workers": "a job may end where its leader dies in the moment of the start",
    "_monitor_workers": "the loss of a node may use up one of --max-restarts",
    "_shutdown": "workers that do not heed Ctrl-C may run on for half a minute",
}


def shortcomings(agent: type = LocalElasticAgent) -> Iterator[str]:
    """Yield what the installed torch's agent does not let us do, and what follows; nothing as a rule."""
    for name, consequence in EXTENDED.items():
        if not callable(getattr(agent, name, None)):
            yield f"torch {torch.__version__} has no {agent.__name__}.{name}: {consequence}"


def kill_groups(pids: Sequence[int]) -> None:
    """Kill the process groups that workers lead."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def count_processes(wanted: str) -> int | str:
    """Return ``--nproc-per-node`` as torchrun takes it: ``auto`` is one process a GPU, else one.

    torchrun's own ``auto`` starts one for every core of a machine without GPUs. Raises LaunchFailed.
    """
    if wanted not in ("auto", "gpu"):
        return wanted
    count = int(torch.cuda.device_count())
    if count:
        return count
    if wanted == "gpu":
        raise LaunchFailed(
            "torch sees no GPU on this node", "look at `avahi-gpu doctor`, or give --nproc-per-node 1"
        )
    return int(torch.xpu.device_count()) if torch.xpu.is_available() else 1


def train(arguments: Arguments, node: Node, job: str, witness: Witness) -> tuple[Failure, ...]:
    """Run the workers of this node to their end, as torchrun with these arguments would; return who failed.

    Raises JobEnded, Stopped.
    """
    config, entrypoint, words = arguments
    if isinstance(entrypoint, str):  # with --run-path it is a function
        entrypoint, words = tied(entrypoint, words)
    handler = LaunchRendezvous(node, job, witness)
    given = {
        **{f.name: getattr(config, f.name) for f in dataclasses.fields(config)},
        "local_world_size": config.nproc_per_node,
        "entrypoint": entrypoint,
        "args": tuple(words),
        "rdzv_handler": handler,
    }
    # what torch's versions have added over time is taken where both sides know it
    spec = WorkerSpec(**{f.name: given[f.name] for f in dataclasses.fields(WorkerSpec) if f.name in given})
    known = inspect.signature(LocalElasticAgent.__init__).parameters
    options = ("logs_specs", "start_method", "log_line_prefix_template", "shutdown_timeout")
    agent = LaunchAgent(handler, spec, **{o: given[o] for o in options if o in known and o in given})
    os.environ["TORCHELASTIC_SIGNALS_TO_HANDLE"] = given.get("signals_to_handle", SIGNALS_TO_HANDLE)
    keep = False
    try:
        with handlers_restored():
            result = agent.run()
        keep = not result.failures
        return tuple(describe_failure(rank, failure) for rank, failure in result.failures.items())
    except SignalException as stopped:
        raise Stopped(int(stopped.sigval)) from None
    finally:
        handler.release(keep=keep)
        if config.logs_specs.root_log_dir.startswith(OWN_LOGS):
            sweep(Path(config.logs_specs.root_log_dir))


@contextmanager
def handlers_restored() -> Iterator[None]:
    """Put the signal handlers back at the end of the block: torch leaves its own behind."""
    before = {number: signal.getsignal(number) for number in signal.valid_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)


def read_arguments(arguments: Sequence[str]) -> Arguments:
    """Return ``(config, entry point, its arguments)`` by torchrun's own rules. Raises Misuse."""
    said = io.StringIO()  # the parser prints its usage, and then ends the process
    try:
        with redirect_stderr(said):
            return config_from_args(parse_args(list(arguments)))  # type: ignore[no-any-return]
    except (ValueError, AssertionError) as error:
        # older torches assert without a word: what they assert says it
        reason = str(error) or f"`{traceback.extract_tb(error.__traceback__)[-1].line}` does not hold"
    except SystemExit as end:
        if not end.code:  # --help
            raise
        reason = said.getvalue().strip().rpartition("error: ")[2] or "it does not say why"
    raise Misuse(f"torchrun refuses its options: {reason}", "`torchrun --help` explains them")


def tied(program: str, words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the command that runs ``program`` so that it dies with this process."""
    return sys.executable, ["-I", "-S", str(Path(tether.__file__)), str(os.getpid()), program, *words]


def sweep(folder: Path) -> None:
    """Remove the folder that torch makes for every run and never removes, unless there are logs in it."""
    with suppress(OSError):
        for path in sorted(folder.rglob("*"), reverse=True):  # what is in a folder comes before it
            if path.name == "error.json":
                path.unlink()
            elif path.is_dir():
                path.rmdir()
        folder.rmdir()


def describe_failure(rank: int, failure: Any) -> Failure:
    """Return what torch knows of a worker that failed. ``message``: its last words, where it left any."""
    data = failure.error_file_data.get("message", "")
    text = data.get("message", "") if isinstance(data, dict) else str(data)
    if text == "<NONE>":  # torch's word for a worker that left no error file
        text = ""
    lines = [line.strip() for line in str(text).splitlines() if line.strip()]
    return Failure(rank, failure.pid, failure.exitcode, lines[-1] if lines else "", failure.timestamp)
