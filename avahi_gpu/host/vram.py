"""What is free on this machine's GPUs, read again and again beside the program."""

from __future__ import annotations

import threading
import time

from avahi_gpu.host.gpu import read_free_memory

AGAIN_S = 2.0  # people cannot follow faster changes
STALE_S = 10.0  # a driver that has not answered for so long tells nothing any more


class FreeMemory:
    """A context manager; ``free_mib`` is what was read last, None where nothing tells."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._read: tuple[float, tuple[int, ...]] | None = None

    def __enter__(self) -> FreeMemory:
        # a daemon thread: where NVML hangs nobody can end it, and the program must end all the same
        threading.Thread(target=self._run, name="vram", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    @property
    def free_mib(self) -> tuple[int, ...] | None:
        """MiB of each GPU in NVML's order."""
        read = self._read
        return read[1] if read is not None and time.monotonic() - read[0] <= STALE_S else None

    def _run(self) -> None:
        for free in read_free_memory():
            self._read = (time.monotonic(), free)
            if self._ended.wait(AGAIN_S):
                return
