"""Publishing on a real LAN: how soon others see it, and how soon they see it gone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from tests.lab.cluster import Cluster
from tests.lab.driver import BUSY_S, TYPE, Start, drive, look, watch

__all__ = ["drive"]  # a fixture


def test_others_see_it_at_once_and_see_it_leave(shared_cluster3: Cluster, drive: Start) -> None:
    one, two, three = shared_cluster3
    watchers = [watch(drive, two), watch(drive, three)]
    publisher = drive(one, "publish", TYPE, "quick-1")
    started = publisher.wait_for("start")

    for watcher in watchers:
        seen = watcher.wait_for("appeared")
        assert (seen["name"], seen["address"], seen["port"]) == ("quick-1", one.address, 4711)
        assert (seen["host"], seen["txt"], seen["own"]) == ("gpu-node-1.local", ["a=0"], False)
        assert seen["at"] - started["at"] < 0.5 + BUSY_S

    publisher.leave()
    gone = publisher.wait_for("leaving")
    for watcher in watchers:
        left = watcher.wait_for("left")
        assert left["name"] == "quick-1"
        assert left["at"] - gone["at"] < 1.2 + BUSY_S


def test_without_probing_it_is_there_sooner(shared_cluster3: Cluster, drive: Start) -> None:
    """Avahi's three probes take 0.8 s; a name with a random part needs none."""
    one, two, _ = shared_cluster3
    watcher = watch(drive, two)
    delays: dict[str, list[float]] = {"probed": [], "unprobed": []}
    for number in range(3):
        for how, flags in (("probed", ["--probe"]), ("unprobed", [])):
            publisher = drive(one, "publish", TYPE, f"{how}-{number}", *flags)
            started = publisher.wait_for("start")
            line = watcher.follower.wait_for(f'"{how}-{number}"', 10)
            delays[how].append(json.loads(watcher.follower.lines[line])["at"] - started["at"])
            publisher.leave()

    assert min(delays["unprobed"]) < 0.3
    assert min(delays["probed"]) > 0.7


def test_an_update_reaches_those_who_ask(shared_cluster3: Cluster, drive: Start) -> None:
    one, two, _ = shared_cluster3
    publisher = drive(one, "publish", TYPE, "update-1")
    publisher.wait_for("established")
    for text in ("a=1", "a=2", "a=3"):
        publisher.say(text)

    deadline = time.monotonic() + 5
    while True:
        # services of the test before may take a second to go
        found = [s["txt"] for s in look(two, "1", "2")["services"] if s["name"] == "update-1"]
        if found == [["a=3"]]:
            break
        assert time.monotonic() < deadline, found
    publisher.leave()


def test_a_killed_process_takes_its_service_with_it(shared_cluster3: Cluster, drive: Start) -> None:
    one, two, _ = shared_cluster3
    watcher = watch(drive, two)
    publisher = drive(one, "publish", TYPE, "killed-1")
    watcher.wait_for("appeared")

    killed = time.monotonic()
    publisher.follower.kill()

    assert watcher.wait_for("left")["at"] - killed < 1.2 + BUSY_S


def test_the_same_name_on_two_hosts_ends_in_two_names(shared_cluster3: Cluster, drive: Start) -> None:
    one, two, three = shared_cluster3
    first = drive(one, "publish", TYPE, "same", "--probe")
    assert first.wait_for("established")["name"] == "same"
    second = drive(two, "publish", TYPE, "same", "--probe")
    second.wait_for("established")

    found = {s["name"]: s["address"] for s in look(three, "2", "5")["services"]}
    assert found == {"same": one.address, "same #2": two.address}
    first.leave()
    second.leave()


@pytest.mark.slow
def test_after_a_power_cut_its_records_run_out(make_cluster: Callable[..., Cluster], drive: Start) -> None:
    """Nobody says goodbye: only the short life of the records tells."""
    lab = make_cluster(2)
    watcher = watch(drive, lab[1])
    drive(lab[0], "publish", TYPE, "cut-1")
    watcher.wait_for("appeared")

    cut = time.monotonic()
    lab[0].kill()

    assert watcher.wait_for("left", 30)["at"] - cut < 12 + BUSY_S


@pytest.mark.slow
def test_a_restart_of_the_daemon_is_survived(make_cluster: Callable[..., Cluster], drive: Start) -> None:
    lab = make_cluster(2)
    watcher = watch(drive, lab[1])
    publisher = drive(lab[0], "publish", TYPE, "restart-1")
    watcher.wait_for("appeared")

    lab[0].restart_avahi()

    left = watcher.wait_for("left")
    again = watcher.wait_for("appeared", after=left["line"])
    assert again["name"] == "restart-1"
    publisher.leave()
    watcher.wait_for("left", after=again["line"])


@pytest.mark.slow
def test_a_new_host_name_is_taken_over(make_cluster: Callable[..., Cluster], drive: Start) -> None:
    """Avahi leaves the records of its clients at the old name, which then leads nowhere."""
    lab = make_cluster(2)
    publisher = drive(lab[0], "publish", TYPE, "rename-1")
    publisher.wait_for("established")

    lab[0].run(["avahi-set-host-name", "renamed"], check=True)

    deadline = time.monotonic() + 10
    while True:
        looked = look(lab[1], "1", "3")
        if [(s["host"], s["address"]) for s in looked["services"]] == [("renamed.local", lab[0].address)]:
            break
        assert time.monotonic() < deadline, looked
    publisher.leave()
