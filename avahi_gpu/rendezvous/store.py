"""The store over which torch's agents of one round talk: nobody waits there for a round that is over."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import timedelta

import torch
from torch.distributed import PrefixStore, TCPStore

from avahi_gpu.rendezvous.node import Node

POLL_MIN_S = 0.002  # the agents are there within milliseconds of each other …
POLL_MAX_S = 0.05  # … or within the time that torch's import takes on the slowest
LAST_WORDS_S = 1.0  # after the end of a round: who has begun with it and lives needs milliseconds to go on
GO, STOP = "go", "stop"


class RoundStore(PrefixStore):  # type: ignore[misc]  # torch is not read by the type checker
    """The agents' store of one round.

    torch's agents ask each other for their numbers of workers before they start them, and wait at an exit
    barrier when those have finished: for minutes, deaf to signals, also for a node that is gone.
    """

    def __init__(self, node: Node, prefix: str, store: TCPStore) -> None:
        super().__init__(prefix, store)
        self.node = node
        self.awaited = False  # our workers have finished, and we were told to wait for the others

    def settle(self, verdict: str) -> bool:
        """Say whether the agents go on with the round; the first one's word holds for all. True: they do.

        Without it one agent could leave a round that another one waits for it in.
        """
        return bool(self.compare_set("together", "", verdict) == GO.encode())

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Wait until the keys are there or the round is over. Raises DistStoreError after the timeout."""
        self.awaited = True
        with suppress(torch.distributed.DistNetworkError):  # its host is gone: nothing to wait for
            if not self._come(keys, timeout or self.timeout, 0.0) and not self.node.over:
                raise torch.distributed.DistStoreError(f"nobody has set {', '.join(keys)} in time")

    def get(self, key: str) -> bytes:
        """Return a value. Raises DistStoreError where it does not come, DistNetworkError without a leader."""
        if not self._come([key], self.timeout, LAST_WORDS_S):
            raise torch.distributed.DistStoreError(f"nobody has set {key} in time")
        return bytes(super().get(key))

    def multi_get(self, keys: list[str]) -> list[bytes]:
        """Return the values; raises as ``get`` does. In a round that is over, another key's value stands for
        one that is missing: torch needs an answer to go on, and ends at once what it starts with it.
        """
        if self._come(keys, self.timeout, LAST_WORDS_S):
            return [bytes(value) for value in super().multi_get(keys)]
        there = [key for key in keys if self.check([key])]
        if not (there and self.node.over):
            raise torch.distributed.DistStoreError(f"nobody has set {', '.join(keys)} in time")
        return [bytes(super(RoundStore, self).get(key if key in there else there[0])) for key in keys]

    def _come(self, keys: list[str], within: timedelta, more_s: float) -> bool:
        """Wait for the keys, no longer than ``more_s`` in a round that is over; say whether they came."""
        now = time.monotonic()
        deadline, over_since, pause_s = now + within.total_seconds(), None, POLL_MIN_S
        while not self.check(keys):
            now = time.monotonic()
            if over_since is None and self.node.over:
                over_since = now
            if now >= deadline or (over_since is not None and now >= over_since + more_s):
                return False
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, POLL_MAX_S)
        return True
