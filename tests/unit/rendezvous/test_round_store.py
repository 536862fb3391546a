"""The agents' store of a round: waiting at it ends with the round."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

pytestmark = pytest.mark.torch

SHORT = timedelta(seconds=0.2)


@dataclass
class Node:
    over: bool = False


def open_stores() -> tuple[Any, Any]:
    """Return a server's and a client's end of one store."""
    from torch.distributed import TCPStore

    server = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    return server, TCPStore("127.0.0.1", server.port, is_master=False, wait_for_workers=False)


def test_waiting_ends_when_all_have_come_or_the_round_is_over_or_the_time() -> None:
    from torch.distributed import DistStoreError, PrefixStore

    from avahi_gpu.rendezvous.handler import RoundStore

    server, client = open_stores()
    node = Node()
    store = RoundStore(node, "round", client)
    with pytest.raises(DistStoreError, match="here"):
        store.wait(["here"], SHORT)

    threading.Timer(0.2, PrefixStore("round", server).set, ["here", "1"]).start()
    store.wait(["here"], timedelta(seconds=10))

    threading.Timer(0.2, setattr, [node, "over", True]).start()
    began = time.monotonic()
    store.wait(["never"], timedelta(seconds=10))
    assert time.monotonic() - began < 5


def test_it_is_torchs_own_barrier_that_agents_of_both_commands_meet_at() -> None:
    from torch.distributed.elastic.utils.store import barrier

    from avahi_gpu.rendezvous.handler import RoundStore

    server, client = open_stores()
    passed = []

    def meet(store: Any) -> None:
        barrier(RoundStore(Node(), "round", store), 2, "end", barrier_timeout=10)
        passed.append(store)

    first = threading.Thread(target=meet, args=(server,))
    first.start()
    time.sleep(0.2)
    assert not passed
    meet(client)
    first.join(10)
    assert len(passed) == 2
