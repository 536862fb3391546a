"""Health that is easily taken for a fault: neighbours that are slow, busy or of another kind."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from tests.lab.cluster import Cluster, cluster
from tests.lab.doctoring import Diagnosis, doctor, set_up, together_on

pytestmark = pytest.mark.lab

STUCK_S = 3.2  # from the doctor's start: its first two questions have left by then, the third has not


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    with cluster(3) as lab:
        set_up(lab, forget=True)
        yield lab


def not_well(found: Diagnosis) -> list[str]:
    return [*found.errors, *found.of("warn"), *found.of("unknown")]


def test_neighbours_that_answer_late_are_asked_once_more_before_anybody_is_blamed(nodes: Cluster) -> None:
    late = nodes.hosts[1:]
    for host in late:
        host.send_signal("avahi-daemon", signal.SIGSTOP)

    def go_on() -> None:
        for host in late:
            host.send_signal("avahi-daemon", signal.SIGCONT)

    timer = threading.Timer(STUCK_S, go_on)
    timer.start()
    try:
        found = doctor(nodes[0])
    finally:
        timer.join()

    assert not_well(found) == [], found.tell()


def test_doctors_on_all_nodes_at_once_do_not_disturb_each_other(nodes: Cluster) -> None:
    found: dict[str, Diagnosis] = {}

    together_on(list(nodes), lambda host: found.update({host.name: doctor(host)}))

    assert {name: not_well(one) for name, one in found.items()} == {host.name: [] for host in nodes}
