"""Health that is easily taken for a fault: neighbours that are slow, busy or of another kind."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.lab import network
from tests.lab.cluster import Cluster, cluster
from tests.lab.doctoring import Diagnosis, doctor, set_up, together_on
from tests.lab.host import Host

pytestmark = pytest.mark.lab

STUCK_S = 3.2  # from the doctor's start: its first two questions have left by then, the third has not


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    with cluster(3) as lab:
        set_up(lab, forget=True)
        yield lab


def own_address(host: Host) -> str:
    """Return what glibc says of the host's own name now."""
    return host.run(["getent", "hosts", f"{host.name}.local"]).stdout.partition(" ")[0]


def until(found: Callable[[], bool], within_s: float = 10.0) -> bool:
    deadline = time.monotonic() + within_s
    while not found():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


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


@pytest.mark.parametrize("bridge", [False, True], ids=["alone", "beside a bridge"])
def test_a_card_that_has_just_come_is_given_time_to_claim_the_name(nodes: Cluster, bridge: bool) -> None:
    host = nodes[0]
    network.remove_port(host.switch, host.number)
    try:
        if bridge:
            for words in ("add br9 type bridge", "set br9 up"):
                host.run(["ip", "link", *words.split()], check=True)
            host.run(["ip", "addr", "add", "172.30.0.1/16", "dev", "br9"], check=True)
            assert until(lambda: own_address(host) == "172.30.0.1")
        network.plug_in(host.switch, host.number, host.pid, host.address)
        assert own_address(host) != host.address

        found = doctor(host)

        expected = ["AG314"] if bridge else []  # a bridge that Avahi uses may well be told one day
        assert not_well(found) == expected and not found.errors, found.tell()
    finally:
        if bridge:
            host.run(["ip", "link", "del", "br9"])


def test_doctors_on_all_nodes_at_once_do_not_disturb_each_other(nodes: Cluster) -> None:
    found: dict[str, Diagnosis] = {}

    together_on(list(nodes), lambda host: found.update({host.name: doctor(host)}))

    assert {name: not_well(one) for name, one in found.items()} == {host.name: [] for host in nodes}


def test_the_same_list_of_names_may_be_given_to_every_node(nodes: Cluster) -> None:
    names = [host.name for host in nodes]

    found = doctor(nodes[1], *names)

    assert not_well(found) == [], found.tell()
