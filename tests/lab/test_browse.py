"""Browsing on a real LAN: all are found at addresses that lead to them; restarts take nobody away."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.lab.cluster import Cluster, cluster
from tests.lab.driver import BUSY_S, Start, drive, look, watch
from tests.lab.host import Host

__all__ = ["drive"]  # a fixture

NODE = "_torch._tcp"
SERVICE = """<service-group><name replace-wildcards="yes">%h</name>
<service><type>_torch._tcp</type><port>29500</port><txt-record>id={id}</txt-record></service></service-group>
"""
SETTLE_S = 5.0  # avahi_gpu.avahi.browse.SETTLE_S


def become_node(host: Host) -> None:
    """Do what ``setup`` does for the service."""
    host.write("/etc/avahi/services/torch.service", SERVICE.format(id=f"{host.number:012x}"))


@pytest.fixture(scope="module")
def nodes() -> object:
    """Three nodes that published themselves before anybody looked."""
    with cluster(3, avahi=False) as lab:
        for host in lab:
            become_node(host)
        for host in lab:
            host.start_avahi(settle=False)
        for host in lab:
            host.wait_for_avahi()
        time.sleep(1)  # the services follow the host name
        yield lab


def addresses(looked: dict[str, object]) -> dict[str, str]:
    services = looked["services"]
    assert isinstance(services, list)
    return {s["name"]: s["address"] for s in services}


def test_a_look_that_knows_how_many_ends_with_the_last(nodes: Cluster) -> None:
    looked = look(nodes[0], "3", "10", kind=NODE)

    assert addresses(looked) == {host.name: host.address for host in nodes}
    assert looked["elapsed_s"] < 0.5 + BUSY_S


def test_a_look_without_a_number_takes_two_queries(nodes: Cluster) -> None:
    looked = look(nodes[1], kind=NODE)

    assert addresses(looked) == {host.name: host.address for host in nodes}
    assert 1.3 < looked["elapsed_s"] < 2.5 + BUSY_S


def test_our_own_service_has_a_lan_address_and_is_known_as_ours(nodes: Cluster) -> None:
    """Avahi lists it on loopback too, and would resolve it to 127.0.0.1 there."""
    own = [s for s in look(nodes[2], "3", "10", kind=NODE)["services"] if s["own"]]

    assert [(s["name"], s["address"], s["protocol"]) for s in own] == [("gpu-node-3", nodes[2].address, 4)]


@pytest.mark.slow
def test_a_restart_of_our_daemon_takes_nobody_away(
    make_cluster: Callable[..., Cluster], drive: Start
) -> None:
    lab = make_cluster(3)
    for host in lab:
        become_node(host)
    watcher = watch(drive, lab[0], NODE)
    for host in lab:
        watcher.follower.wait_for(f'"{host.name}"')
    seen = len(watcher.follower.lines)

    lab[0].stop_avahi()
    lab[2].stop_avahi()  # this one says goodbye while nobody listens
    lab[0].start_avahi()

    left = watcher.wait_for("left", SETTLE_S + 5 + BUSY_S, after=seen)
    assert left["name"] == "gpu-node-3"
    assert [e["name"] for e in watcher.events("left")] == ["gpu-node-3"]
    lab[2].start_avahi()
    watcher.follower.wait_for('"gpu-node-3"', after=left["line"] + 1)


@pytest.mark.slow
@pytest.mark.parametrize("carrier", [True, False], ids=["switch fails", "cable out"])
def test_a_cable_that_was_out_is_survived(
    make_cluster: Callable[..., Cluster], drive: Start, carrier: bool
) -> None:
    lab = make_cluster(2)
    watcher = watch(drive, lab[0], NODE)
    lab[0].cut(carrier=carrier)
    become_node(lab[1])
    time.sleep(2)
    assert watcher.events("appeared") == []

    lab[0].heal()

    # the browser's queries come 1, 2, 4, 8 s apart
    assert watcher.wait_for("appeared", 20 + BUSY_S)["address"] == lab[1].address


@pytest.mark.slow
def test_a_peer_with_a_new_address_is_found_there(make_cluster: Callable[..., Cluster]) -> None:
    lab = make_cluster(2)
    become_node(lab[1])
    assert addresses(look(lab[0], "1", "10", kind=NODE)) == {"gpu-node-2": lab[1].address}
    new = f"{lab.subnet}.77"

    lab[1].run(["ip", "addr", "flush", "dev", "eth0"], check=True)
    lab[1].run(["ip", "addr", "add", f"{new}/24", "dev", "eth0"], check=True)

    deadline = time.monotonic() + 10
    while addresses(look(lab[0], "1", "3", kind=NODE)) != {"gpu-node-2": new}:
        assert time.monotonic() < deadline
