"""The agents' meeting at the leader's store: whoever keeps the workers waiting is named."""

from __future__ import annotations

import threading
from datetime import timedelta
from types import SimpleNamespace

import pytest

from avahi_gpu.rendezvous import steps
from avahi_gpu.rendezvous.dealings import Notice
from avahi_gpu.rendezvous.mesh import Formed, listen_on, port_of
from avahi_gpu.rendezvous.messages import Seat, Token

pytestmark = pytest.mark.torch


def test_a_node_whose_torch_takes_long_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.distributed import PrefixStore, TCPStore

    from avahi_gpu.rendezvous import handler

    monkeypatch.setattr(handler, "GATHER_TOLD_S", 0.2)
    told: list[Notice] = []
    node = SimpleNamespace(over=False, listener=told.append)
    sock = listen_on("127.0.0.1")
    port = port_of(sock)
    seats = tuple(Seat(f"{n:016x}", f"node-{n}", "127.0.0.1", 4000) for n in (1, 2, 3))
    formed = Formed(steps.Round(Token(1, seats[0].id), seats, 0, port, 29500), "lo", sock)
    agent = handler.AvahiRendezvous(node, "job")  # type: ignore[arg-type]
    found: list[object] = []
    meeting = threading.Thread(target=lambda: found.append(agent.gather(formed)))
    meeting.start()
    client = TCPStore(
        "127.0.0.1", port, is_master=False, wait_for_workers=False, timeout=timedelta(seconds=20)
    )
    others = PrefixStore(f"avahi-gpu/{formed.round.token}", client)
    others.set("here/1", "1")
    meeting.join(1.0)
    assert meeting.is_alive()
    others.set("here/2", "1")
    meeting.join(20.0)

    assert found and found[0] is not None
    (notice,) = told
    assert notice.text.startswith("the workers start once torch is loaded on ")
    assert notice.text.endswith("node-3, too")
