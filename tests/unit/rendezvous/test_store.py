"""The agents' store: one decision for all, and nobody waits for a round that is over. With real torch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.torch

AT_ONCE_S = 10.0  # instead of the store's timeout of a minute


@pytest.fixture
def node() -> SimpleNamespace:
    return SimpleNamespace(over=False)


@pytest.fixture
def make_store(node: SimpleNamespace) -> Iterator[Callable[[], Any]]:
    """Return a function that connects one more agent to the store of a round."""
    from torch.distributed import TCPStore

    from avahi_gpu.rendezvous.store import RoundStore

    options = {"wait_for_workers": False, "timeout": timedelta(seconds=60)}
    server = TCPStore("127.0.0.1", 0, is_master=True, **options)
    yield lambda: RoundStore(
        node, "avahi-gpu/1", TCPStore("127.0.0.1", server.port, is_master=False, **options)
    )


def test_the_first_word_holds_for_all_agents(make_store: Callable[[], Any]) -> None:
    from avahi_gpu.rendezvous.store import GO, STOP

    one, other = make_store(), make_store()
    assert one.settle(STOP) is False
    assert other.settle(GO) is False
    assert one.settle(GO) is False


def test_an_agent_that_has_lost_the_round_goes_along_with_one_that_has_begun(
    make_store: Callable[[], Any],
) -> None:
    from avahi_gpu.rendezvous.store import GO, STOP

    one, other = make_store(), make_store()
    assert one.settle(GO) is True
    assert other.settle(STOP) is True


def test_what_another_agent_sets_in_time_is_read(make_store: Callable[[], Any]) -> None:
    one, other = make_store(), make_store()
    setting = threading.Timer(0.3, lambda: [other.set("a", "1"), other.set("b", "2")])
    setting.start()

    assert one.multi_get(["a", "b"]) == [b"1", b"2"]
    assert one.get("b") == b"2"
    setting.join()


def test_nobody_waits_for_a_key_in_a_round_that_is_over(
    make_store: Callable[[], Any], node: SimpleNamespace
) -> None:
    from torch.distributed import DistStoreError

    store = make_store()
    ending = threading.Timer(0.2, lambda: setattr(node, "over", True))
    ending.start()
    began = time.monotonic()

    with pytest.raises(DistStoreError, match="nobody has set a in time"):
        store.get("a")
    store.wait(["a"])
    with pytest.raises(DistStoreError):
        store.multi_get(["a", "b"])

    assert time.monotonic() - began < AT_ONCE_S
    ending.join()


def test_the_leader_gets_an_answer_for_an_agent_that_is_gone(
    make_store: Callable[[], Any], node: SimpleNamespace
) -> None:
    store = make_store()
    store.set("torchelastic/role_info/0", "ours")
    node.over = True

    keys = ["torchelastic/role_info/0", "torchelastic/role_info/1"]
    assert store.multi_get(keys) == [b"ours", b"ours"]


def test_a_key_that_does_not_come_in_a_round_that_runs_is_missed(make_store: Callable[[], Any]) -> None:
    from torch.distributed import DistStoreError

    store = make_store()
    store.set_timeout(timedelta(seconds=0.3))
    store.set("a", "1")
    for ask in (lambda: store.get("b"), lambda: store.multi_get(["a", "b"]), lambda: store.wait(["b"])):
        with pytest.raises(DistStoreError, match="in time"):
            ask()
