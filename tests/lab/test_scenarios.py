"""Every fault of docs/reference/field-reports.md, broken for real: the doctor names it and mends it."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from avahi_gpu.model import NODE_SERVICE, SERVICE_FILE
from tests.lab.cluster import Cluster, cluster
from tests.lab.doctoring import doctor, set_up, together_on
from tests.lab.host import Host
from tests.lab.scenarios import ALL
from tests.lab.scenarios.scenario import Scenario

# for so long others still take what a host had announced before for true (RFC 6762 section 10.2); then some
FORGOTTEN_S = 1.3
ANNOUNCED_S = 15.0  # two seconds, and time for a busy machine
EACH_AT_MOST = 1  # of one report in the short run: all of them take a quarter of an hour
MENDED_EACH = 3  # of the short run every third one is mended as well, which takes two thirds of the time
# what a daemon or the loader writes there by itself
NOT_OURS = ("/etc/ld.so.cache",)


@dataclass
class Ward:
    """A cluster, and whether it is known to be healthy since it was last touched."""

    lab: Cluster
    published: dict[str, str]  # name of a host -> its service file
    healthy: bool = False

    def prove_healthy(self, host: Host) -> None:
        found = doctor(host, "--fail-on", "warn")
        assert found.exit_code == 0, found.tell()
        self.healthy = True


@pytest.fixture(autouse=True)
def _nothing_left() -> None:
    """Not asked here: hosts that are booted anew are new processes of ours."""


@pytest.fixture(scope="module")
def ward() -> Iterator[Ward]:
    with cluster(3) as lab:
        set_up(lab, forget=True)
        yield Ward(lab, {host.name: host.read(SERVICE_FILE) for host in lab})


def state_of(host: Host) -> dict[str, tuple[str, int]]:
    """Return path -> (digest or link target, mode) of everything in /etc, and the firewall's rules."""
    top = host.path("/etc")
    state: dict[str, tuple[str, int]] = {}
    for folder, _, names in os.walk(top):
        for name in names:
            file = Path(folder) / name
            shown = "/etc/" + str(file.relative_to(top))
            status = file.lstat()
            link = stat.S_ISLNK(status.st_mode)
            if shown not in NOT_OURS and (link or stat.S_ISREG(status.st_mode)):
                content = str(file.readlink()).encode() if link else file.read_bytes()
                state[shown] = (hashlib.sha256(content).hexdigest(), status.st_mode)
    rules = host.run(["nft", "--stateless", "list", "ruleset"]).stdout
    return {**state, "nft": (rules, 0)}


def make_well_again(ward: Ward, scenario: Scenario) -> None:
    """Boot what was broken anew, and mend what is outside the hosts."""
    hosts = [ward.lab[n] for n in scenario.touches]
    scenario.heals(ward.lab)
    for host in hosts:
        host.kill()
    together_on(hosts, lambda host: boot_as_node(ward, host))
    if ward.lab[scenario.on] not in hosts:
        time.sleep(FORGOTTEN_S)


def boot_as_node(ward: Ward, host: Host) -> None:
    """Boot a host with what ``setup`` had made of it, which takes a second instead of many."""
    ward.lab.power_on(host, files={SERVICE_FILE: ward.published[host.name]})
    browser = host.follow(["avahi-browse", "--parsable", NODE_SERVICE])
    try:
        browser.wait_for(f"eth0;IPv4;{host.name};", ANNOUNCED_S)
    finally:
        browser.end()


def chosen() -> Iterator[Any]:
    """Yield every scenario, and whether it is mended, too.

    The short run takes one of each report and of each finding, and mends a third of those; the rest is for
    ``make faults``.
    """
    seen: Counter[str] = Counter()
    for one in ALL:
        seen[one.entry] += 1
        seen[one.finding] += 1
        short = max(seen[one.entry], seen[one.finding]) <= EACH_AT_MOST
        id = f"{one.entry}-{one.name}"
        mended = not one.mends or len(seen) % MENDED_EACH == 0
        if short and not mended:
            yield pytest.param(one, False, id=f"{id}-named")
        yield pytest.param(one, True, id=id, marks=[] if short and mended else [pytest.mark.faults])


@pytest.mark.parametrize(("scenario", "mending"), list(chosen()))
def test_the_doctor_names_the_cause(scenario: Scenario, mending: bool, ward: Ward) -> None:
    host = ward.lab[scenario.on]
    if not ward.healthy:
        ward.prove_healthy(host)
    ward.healthy = False
    try:
        scenario.breaks(ward.lab)
        found = doctor(host, *scenario.ask, env=scenario.env)

        assert (found.exit_code, found.errors) == (1, [scenario.finding, *scenario.also]), found.tell()
        if scenario.mends and mending:
            broken = state_of(host)
            mended = doctor(host, *scenario.ask, "--fix", "--yes", env=scenario.env)
            assert (mended.exit_code, mended.errors) == (0, []), mended.tell()
            host.run(["avahi-gpu", "undo", "--yes"], check=True, timeout=90)
            assert state_of(host) == broken
    finally:
        make_well_again(ward, scenario)
    ward.prove_healthy(host)


def test_every_scenario_has_a_name_of_its_own() -> None:
    assert len({s.name for s in ALL}) == len(ALL)
