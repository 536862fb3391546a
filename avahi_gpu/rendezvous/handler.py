"""The torch elastic backend ``avahi``: ``torchrun --rdzv-backend=avahi`` finds its peers by itself.

The entry point ``torchrun.handlers`` leads here by way of ``plugin``. torch's own words for it are in the
documentation of ``torch.distributed.elastic.rendezvous``; docs/adr/0003-torch-api.md lists every name of
torch's that is used.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import socket
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import PrefixStore, TCPStore
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.rendezvous import (
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
)

from avahi_gpu.errors import AvahiGpuError, ExitCode, MalformedConfiguration, Misuse
from avahi_gpu.host import guard
from avahi_gpu.host.configuration import read_settings
from avahi_gpu.host.key_file import find_key
from avahi_gpu.host.resolver import SLOW_NAMES, NameProbe
from avahi_gpu.host.system import System
from avahi_gpu.rendezvous import conf
from avahi_gpu.rendezvous.dealings import JobEnded, Notice, Settings
from avahi_gpu.rendezvous.environment import interface_variables, missing_variables, name_choice
from avahi_gpu.rendezvous.farewell import promise_goodbye
from avahi_gpu.rendezvous.hangup import hang_up
from avahi_gpu.rendezvous.mesh import Formed
from avahi_gpu.rendezvous.messages import Seat, Skills
from avahi_gpu.rendezvous.node import Node, started
from avahi_gpu.rendezvous.store import GO, LAST_WORDS_S, POLL_MAX_S, POLL_MIN_S, STOP, RoundStore
from avahi_gpu.rendezvous.terms import (
    JOIN_TIMEOUT_S,
    LAST_CALL_S,
    LOST_AFTER_MIN_S,
    LOST_AFTER_S,
    Terms,
    warn_minority,
)
from avahi_gpu.rendezvous.voice import Voice, tell

WAIT_SLICE_S = 0.5  # torch's signal handlers run between two slices, so that Ctrl-C is prompt
STORE_CONNECT_S = 5.0  # the leader's store listens before the round begins; longer means that it has died
# what torch did otherwise before: its libuv store refused master_listen_fd (pytorch pull request 150215), and
# its agent called shutdown() whenever it had ended its workers, in order or not (152525)
MENDED = (2, 8)
STORE_TIMEOUT_S = 60.0  # of the agents' own exchanges; torch's default for c10d
GATHER_TOLD_S = 3.0  # who is missed after that is named: people see a round, and nothing of their script
HANG_UP_EVERY_S = 0.2  # once a round is over: torch connects anew until its own limit
# a node's death breaks the connections of the other workers before anybody has told their agents: how long a
# worker's failure may turn out to be another node's. The connections of agents break in the same instant, and
# the failing node itself waits as long before it gives up, so that everybody hears of it
WHOSE_FAILURE_S = 1.0


class AvahiRendezvous(RendezvousHandler):  # type: ignore[misc]  # torch is not read by the type checker
    """torch elastic's view of a Node."""

    def __init__(self, node: Node, run_id: str, probe: NameProbe | None = None) -> None:
        self.node = node
        self.run_id = run_id
        self.probe = probe
        self.closed = False
        self.wanted = True  # a Node that was started before has been told already
        self.reason = ""  # why we want another round, where the others cannot know
        self.ours: dict[str, str] = {}  # variables that we set for an earlier round
        self.stores: list[TCPStore] = []  # of the current round
        self.store: RoundStore | None = None  # of the last round that our workers were started in
        self.gone = False  # we have said goodbye
        self.left = threading.Event()  # nothing of ours uses the current round's store any more
        self.guard: guard.Guard | None = None
        self.ended = False  # there is no round for us any more, and people know why

    def get_backend(self) -> str:
        return "avahi"

    @property
    def use_agent_store(self) -> bool:
        # workers that share the agents' store join a stale mesh after a restart: they get a port of their own
        return False

    def get_run_id(self) -> str:
        return self.run_id

    def is_closed(self) -> bool:
        return self.closed

    def set_closed(self) -> None:
        self.closed = True

    def num_nodes_waiting(self) -> int:
        return 1 if self.node.over else 0

    def next_rendezvous(self) -> RendezvousInfo:
        """Return the round that this node is part of; blocks until there is one."""
        try:
            while True:
                self.want()
                formed = self.wait()
                store = self.gather(formed)
                if store is not None:
                    return self.enter(formed, store)
        except JobEnded as ended:
            self.ended = True
            tell(ended.message + (f" ({ended.hint})" if ended.hint else ""))
            # torch answers each of its own errors with a traceback below our sentence, the one for a job that
            # went well included; this ends its agent in order, with an exit code
            raise SystemExit(int(ExitCode.FINE if ended.finished else ExitCode.FAILED)) from None

    def want(self) -> None:
        """Say that we want a round: torch has ended the workers of the last one, and we their children."""
        self.left.set()
        if not self.wanted:
            guard.sweep(self.node.id)
            self.node.want(self.reason)
        self.wanted, self.reason = False, ""

    def wait(self) -> Formed:
        """Wait for the round in slices."""
        while True:
            formed = self.node.wait_for_round(WAIT_SLICE_S)
            if formed is not None:
                return formed

    def gather(self, formed: Formed) -> PrefixStore | None:
        """Meet the other agents at the leader's store; None where the round is over before that."""
        round = formed.round
        self.stores.clear()
        if formed.store is None:
            self.left = threading.Event()
            threading.Thread(
                target=self.watch, args=(round.leader, round.store_port, self.left), daemon=True
            ).start()
        try:
            self.stores.append(self.open_store(formed))
            store = RoundStore(self.node, f"avahi-gpu/{round.token}", self.stores[0])
            store.set(f"here/{round.rank}", "1")
            keys = [f"here/{rank}" for rank in range(len(round.seats))]
            pause_s = POLL_MIN_S
            tell_at = time.monotonic() + GATHER_TOLD_S
            while not (there := store.check(keys)) and not self.node.over:
                if time.monotonic() >= tell_at:
                    tell_at += STORE_TIMEOUT_S
                    late = [s.host for s, k in zip(round.seats, keys, strict=True) if not store.check([k])]
                    if late:
                        self.tell(f"the workers start once torch is loaded on {', '.join(late)}, too")
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, POLL_MAX_S)
            if store.settle(GO if there else STOP):
                self.stores[0].set_timeout(timedelta(seconds=STORE_TIMEOUT_S))
                self.store = store
                return store
        except (torch.distributed.DistError, RuntimeError, OSError) as error:
            self.tell(f"the store on {round.leader.host} failed: {first_line(error)}")
        self.stores.clear()
        return None

    def tell(self, text: str) -> None:
        """Say something to whoever reads this node's notices."""
        self.node.listener(Notice(text))

    def watch(self, leader: Seat, port: int, left: threading.Event) -> None:
        """Wait for the round's end; then let torch wait no longer for a store that may never answer again."""
        self.node.over_within(threading.TIMEOUT_MAX)
        if not left.wait(LAST_WORDS_S):
            hang_up(leader.address, port)
        while not left.wait(HANG_UP_EVERY_S):
            hang_up(leader.address, port)

    def open_store(self, formed: Formed) -> TCPStore:
        """Return the agents' store: the server on the leader, a client elsewhere."""
        round = formed.round
        options: dict[str, Any] = {"wait_for_workers": False, "timeout": timedelta(seconds=STORE_CONNECT_S)}
        if formed.store is None:
            return TCPStore(round.leader.address, round.store_port, is_master=False, **options)
        if not mended(str(torch.__version__)):
            options["use_libuv"] = False  # the older kind of store takes a socket in every version
        with formed.store as ours:  # torch has its own of the two descriptors
            options["master_listen_fd"] = os.dup(ours.fileno())
            try:
                return TCPStore(round.leader.address, round.store_port, is_master=True, **options)
            except Exception:
                # who has connected already would wait for an answer without end: torch has no limit for it
                ours.shutdown(socket.SHUT_RDWR)
                raise

    def enter(self, formed: Formed, store: PrefixStore) -> RendezvousInfo:
        """Set what binds the workers to us and to the interface, and return the round as torch wants it."""
        round = formed.round
        if self.probe is not None and self.probe.settle():
            tell(SLOW_NAMES)
        if self.guard is None:
            self.guard = guard.Guard(self.node.id)
            os.environ[guard.VARIABLE] = self.node.id
            # setproctitle writes over the environment that the guard looks at, unless it is told not to
            os.environ.setdefault("SPT_NOENV", "1")
        self.node.keep(self.guard)
        if formed.interface:
            wanted = interface_variables(formed.interface, round.own.address)
            self.ours = missing_variables(wanted, os.environ, self.ours)
            os.environ.update(self.ours)
        return RendezvousInfo(
            store,
            round.rank,
            len(round.seats),
            RendezvousStoreInfo(round.leader.address, round.worker_port),
        )

    def shutdown(self) -> bool:
        """Leave the job. torch calls this while it ends, with the error in flight if there is one."""
        if self.gone:
            return True
        self.gone = True
        self.left.set()
        error = sys.exc_info()[1]
        finished = error is None
        if not mended(
            str(torch.__version__)
        ):  # no error is in flight yet; workers that finish wait for the others
            finished = finished and self.store is not None and self.store.awaited
        if finished:
            self.node.close("finished")
        elif self.ended or isinstance(error, SignalException) or not isinstance(error, Exception | None):
            self.node.close("left")
        elif self.node.over_within(WHOSE_FAILURE_S):
            tell(f"no restart is left: {self.node.reason}")
            tell("torchrun counts the loss of a node as a restart: give --max-restarts")
            self.node.close("left", f"no restart was left: {self.node.reason}")
        else:
            self.node.close("failed", f"its script failed on {self.node.host}")
        self.release(keep=finished)
        self.stores.clear()
        return True

    def release(self, *, keep: bool) -> None:
        """Let the guard go; without ``keep`` it ends what is left of the workers."""
        if self.guard is not None:
            self.node.keep(None)
            self.guard.close(keep=keep)
            self.guard = None


def mended(version: str) -> bool:
    """Say whether this torch does what older ones did otherwise."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return numbers is None or (int(numbers[1]), int(numbers[2])) >= MENDED


def first_line(error: BaseException) -> str:
    """Return the first line of torch's error texts, which go on with C++ stack traces."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def installed_skills(min_nodes: int, max_nodes: int) -> Skills:
    """Return what this node brings: the versions that decide whether nodes can work together."""
    try:
        nccl = next(
            (
                d.version
                for d in importlib.metadata.distributions()
                if (d.name or "").startswith("nvidia-nccl")
            ),
            "",
        )
    except Exception:  # a broken package elsewhere in the environment is not our business
        nccl = ""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Skills(
        min_nodes=min_nodes,
        max_nodes=max_nodes,
        torch=str(torch.__version__),
        nccl=nccl,
        cuda=str(torch.version.cuda or ""),
        python=python,
    )


def create(parameters: RendezvousParameters) -> RendezvousHandler:
    """Return the handler of a job: of the Node that ``launch`` started, or of a new one."""
    run_id = parameters.run_id
    node = started.pop(run_id, None)
    if node is not None:
        return AvahiRendezvous(node, run_id)
    for complaint in conf.complain(parameters.config):
        tell(complaint)
    try:
        settings = settings_of(parameters)
        node = Node.start(settings, Voice(settings.terms))
    except AvahiGpuError as error:
        tell(error.message)
        if error.hint:
            tell(error.hint)
        # one of torch's own errors would end in a traceback below our sentences
        usage = isinstance(error, Misuse | MalformedConfiguration)
        raise SystemExit(int(ExitCode.USAGE if usage else ExitCode.FAILED)) from None
    warning = warn_minority(node.terms)
    if warning:
        tell(warning)
    node.want()
    promise_goodbye(node)
    return AvahiRendezvous(node, run_id, NameProbe(node.address))


def settings_of(parameters: RendezvousParameters) -> Settings:
    """Return the settings that torchrun's flags and ``--rdzv-conf`` ask for. Raises Misuse."""
    job = (
        parameters.run_id
        if parameters.run_id not in ("", "none")
        else os.environ.get("AVAHI_GPU_JOB") or "none"
    )
    conf.check_names(parameters.config)
    host = socket.gethostname().split(".")[0]
    master = str(parameters.get("master", os.environ.get("AVAHI_GPU_MASTER", "")))
    system = System()
    peers = parameters.get("peers")
    flags = {
        "cluster": ("--rdzv-conf cluster", parameters.get("cluster")),
        "interface": ("--rdzv-conf interface", parameters.get("interface")),
        # torchrun ends a value at a comma
        "peers": ("--rdzv-conf peers", None if peers is None else tuple(p for p in peers.split("+") if p)),
        "key_file": ("--rdzv-conf key_file", parameters.get("key_file")),
    }
    chosen = read_settings(system, os.environ, flags)
    key = find_key(system, os.environ, chosen.config.key_file)
    terms = Terms(
        job=conf.check_published("the job's name", job),
        cluster=conf.check_published("the cluster's name", chosen.config.cluster),
        min_nodes=parameters.min_nodes,
        max_nodes=parameters.max_nodes,
        lost_after_s=seconds(parameters, "lost_after", LOST_AFTER_S, LOST_AFTER_MIN_S),
        last_call_s=seconds(parameters, "last_call_timeout", LAST_CALL_S),
        join_timeout_s=seconds(parameters, "join_timeout", JOIN_TIMEOUT_S),
        allow_skew=conf.read_flag(parameters.config, "allow_skew"),
        skills=installed_skills(parameters.min_nodes, parameters.max_nodes),
    )
    return Settings(
        terms=terms,
        host=host,
        master=master.partition(".")[0],
        priority=chosen.config.priority,
        interface=chosen.config.interface,
        interfaces=chosen.config.interfaces,
        interface_words=name_choice(chosen),
        peers=chosen.config.peers,
        key=key.key if key is not None else None,
    )


def seconds(parameters: RendezvousParameters, key: str, default: float, smallest: float = 0.0) -> float:
    """Return a number of seconds from ``--rdzv-conf``. Raises Misuse."""
    return conf.check_seconds(key, parameters.get(key, default), default, smallest)


def registration() -> Callable[[RendezvousParameters], RendezvousHandler]:
    """The entry point's former place, for an environment that was installed before it moved to ``plugin``."""
    return create
