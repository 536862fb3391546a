"""The processes of the all-reduce on this node: torch is imported in them alone, and they end with us."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from avahi_gpu.gauge.messages import RANKS_MAX, Reduce, Reduced
from avahi_gpu.launch import tether
from avahi_gpu.model.gauge import Reduction
from avahi_gpu.rendezvous.terms import release

IMPORT_S = 120.0  # torch with CUDA from a cold disk takes a minute
LINE_MAX = 1 << 16  # bytes of one result
WORDS_KEPT = 4096  # bytes of what a process complains of
END_S = 2.0  # SIGKILL takes milliseconds, unless a driver's call hangs
ENDED_BY = "a process was ended by"
WAIT_S = 600.0  # for one line; the round's end is told of by others
# the current folder is left out of the path: a torch.py there is not torch
START = (
    "import sys; sys.path[:] = [p for p in sys.path if p]; from avahi_gpu.gauge import collective; "
    "collective.main()"
)


@dataclass(frozen=True)
class Means:
    """What this node can run: ``processes`` 0 where it cannot, and ``lacks`` says why."""

    processes: int = 0
    backend: str = ""
    torch: str = ""
    lacks: str = ""


class Worker:
    """One process. Everything that it complains of is read, and its end is kept."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.words = b""
        self._reader = asyncio.ensure_future(self._read_words())

    @classmethod
    async def start(cls, variables: Mapping[str, str]) -> Worker:
        """Start one. Raises OSError."""
        argv = [sys.executable, "-I", "-S", str(Path(tether.__file__)), str(os.getpid())]
        argv += [sys.executable, "-c", START]
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **variables},
            start_new_session=True,  # Ctrl-C is for us: we end it
            limit=LINE_MAX,
        )
        return cls(process)

    async def hear(self, within_s: float) -> dict[str, Any] | None:
        """Return what it says next; None where it has ended, or says nothing of use in time."""
        assert self.process.stdout is not None
        try:
            line = await asyncio.wait_for(self.process.stdout.readline(), within_s)
            said = json.loads(line) if line else None
        except (ValueError, OSError, asyncio.TimeoutError):
            return None
        return said if isinstance(said, dict) else None

    def order(self, what: Mapping[str, Any]) -> None:
        """Tell it what to do."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):  # it has ended, which its silence tells
            self.process.stdin.write(json.dumps(what).encode() + b"\n")

    async def complaint(self) -> str:
        """Return how it was ended, or the last line that it has complained of."""
        if (self.process.returncode or 0) < 0:
            return f"{ENDED_BY} {signal.Signals(-(self.process.returncode or 0)).name}"
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._reader), END_S)
        lines = [line.strip() for line in self.words.decode("utf-8", "replace").splitlines() if line.strip()]
        return shorten_complaint(lines[-1]) if lines else f"it ended with exit code {self.process.returncode}"

    async def close(self) -> None:
        """End it."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()  # it leads no group yet
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.process.wait(), END_S)
        self._reader.cancel()

    async def _read_words(self) -> None:
        assert self.process.stderr is not None
        with contextlib.suppress(OSError):
            while more := await self.process.stderr.read(WORDS_KEPT):
                self.words = (self.words + more)[-WORDS_KEPT:]


def shorten_complaint(line: str) -> str:
    """Return what torch and gloo say without the place in their source, and their advice."""
    said = re.sub(r"^\[rank\d+\]: *|\[/[^\]]*\] *", "", line)
    return said.partition(". This is typically caused")[0]


class Workers:
    """All processes of this node. ``word``: how many, as ``--nproc-per-node`` takes it."""

    def __init__(self, word: str, variables: Mapping[str, str]) -> None:
        self.word = word
        self.variables = {"TORCH_CPP_LOG_LEVEL": "ERROR", **variables}
        self.backend = ""
        self._all: list[Worker] = []

    async def prepare(self) -> Means:
        """Import torch in all of them, and return what they can do."""
        try:
            said, lacks = await self._start()
            if lacks:
                return Means(lacks=lacks)
            gpus = said.get("gpus")
            count = count_processes(self.word, gpus if isinstance(gpus, int) else 0, os.cpu_count() or 1)
            if not count:
                return Means(lacks="torch sees no GPU there")
            if count > 1:
                self.variables.setdefault("OMP_NUM_THREADS", "1")
            self.backend = choose_backend(self.word, count, gpus if isinstance(gpus, int) else 0)
            others = await asyncio.gather(*(self._start() for _ in range(count - 1)))
        except OSError as error:
            return Means(lacks=f"no process can be started ({error.strerror})")
        failed = next((why for _, why in others if why), "")
        if failed:
            return Means(lacks=failed)
        versions = [str(said.get("torch", ""))[:64], *([str(said.get("nccl"))[:64]] if gpus else [])]
        return Means(count, self.backend, " ".join(versions))

    async def run(self, wish: Reduce) -> Reduced:
        """Measure, and return what rank 0 has written where it is ours."""
        for local, worker in enumerate(self._all):
            worker.order(
                {
                    "backend": self.backend,
                    "rank": wish.first + local,
                    "ranks": wish.ranks,
                    "local": local,
                    "address": wish.address,
                    "port": wish.port,
                    "sizes": wish.sizes,
                    "limit_s": wish.limit_s,
                    "budget_s": wish.budget_s,
                }
            )
        found = await asyncio.gather(
            *(self._follow(worker, wish.first + i) for i, worker in enumerate(self._all))
        )
        results = next((results for results, _ in found if results), ())
        return Reduced(results, next((error[:400] for _, error in found if error), ""))

    async def close(self) -> None:
        """End them all."""
        workers, self._all = self._all, []
        await asyncio.gather(*(worker.close() for worker in workers))

    async def _start(self) -> tuple[dict[str, Any], str]:
        worker = await Worker.start(self.variables)
        self._all.append(worker)
        said = await worker.hear(IMPORT_S)
        if said is not None:
            return said, ""
        why = await worker.complaint()
        return {}, "torch is not installed there" if "No module named 'torch'" in why else why[:200]

    async def _follow(self, worker: Worker, rank: int) -> tuple[tuple[Reduction, ...], str]:
        """Return the results of one process, and what went wrong."""
        results: list[Reduction] = []
        while True:
            said = await worker.hear(WAIT_S)
            if said is None:
                await worker.process.wait()
                failed = rank == 0 or bool(worker.process.returncode)
                return tuple(results), await worker.complaint() if failed else ""
            if said.get("ended"):
                return tuple(results), ""
            results.append(Reduction(int(said["size"]), float(said["seconds"]), int(said["count"])))


def count_processes(word: str, gpus: int, processors: int) -> int:
    """Return how many processes this node runs, as launch counts them; 0 where there is no GPU for them."""
    if word == "auto":
        return min(gpus or 1, RANKS_MAX)
    if word == "gpu":
        return min(gpus, RANKS_MAX)
    return min(processors if word == "cpu" else int(word), RANKS_MAX)


def choose_backend(word: str, processes: int, gpus: int) -> str:
    """Return ``nccl`` where each process has a GPU of its own, else ``gloo``."""
    return "nccl" if word != "cpu" and 0 < processes <= gpus else "gloo"


def same_release(versions: Sequence[str]) -> bool:
    """Whether nodes with these versions of torch, and of NCCL, can reduce together: major and minor count."""
    releases = {tuple(release(word) for word in version.split()) for version in versions}
    return len(releases) < 2
