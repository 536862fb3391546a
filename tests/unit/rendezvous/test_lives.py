"""Whole lives of a job on the model LAN: thousands of random faults, and the invariants hold in all of them.

``AVAHI_GPU_LIVES=20000`` runs more of them, ``AVAHI_GPU_FIRST_LIFE=…`` starts elsewhere; one life is shown
event by event by ``python -m tests.unit.rendezvous.replay SEED``.
"""

from __future__ import annotations

import os
import statistics

import pytest

from avahi_gpu.rendezvous.core import BEAT_S, MOURN_S
from avahi_gpu.rendezvous.node import END_S
from avahi_gpu.rendezvous.roster import READY_LIMIT_S
from avahi_gpu.rendezvous.terms import LOST_AFTER_S
from tests.unit.rendezvous.network import Host
from tests.unit.rendezvous.scenario import Scenario, formation_s, play, together

FIRST = int(os.environ.get("AVAHI_GPU_FIRST_LIFE", "0"))
LIVES = int(os.environ.get("AVAHI_GPU_LIVES", "120"))
BATCH = max(1, LIVES // 8)


@pytest.mark.timeout(36_000 if LIVES > 1000 else 120)
@pytest.mark.parametrize("first", range(FIRST, FIRST + LIVES, BATCH))
def test_no_life_breaks_an_invariant_and_all_end_as_one_group(first: int) -> None:
    for seed in range(first, first + BATCH):
        print(f"life {seed}")  # shown where it breaks
        play(seed)


@pytest.mark.parametrize("seed", range(700, 706))
def test_clocks_that_differ_by_days_change_nothing(seed: int) -> None:
    def trace(days: int) -> list[str]:
        return play(seed, days=days, tracing=True).lan.trace

    assert len(trace(0)) > 100
    assert trace(0) == trace(3)


@pytest.mark.parametrize("hosts", [1, 2, 3, 5, 10])
def test_nodes_that_start_together_form_one_round_and_only_one(hosts: int) -> None:
    for seed in range(3 if hosts > 5 else 6):
        for smallest in {hosts, hosts // 2 + 1}:
            life = together(seed, hosts, smallest=smallest)
            formation_s(life, hosts, within_s=2.5)
            life.lan.run(life.lan.now + 20)
            assert len(life.watch.formed) == 1
            assert life.watch.overs == []


def test_half_of_all_multicast_lost_delays_a_round_by_little() -> None:
    times = [formation_s(together(seed, 3, loss=0.5), 3) for seed in range(40)]

    assert statistics.median(times) < 2.0
    assert max(times) < 8.0


@pytest.mark.parametrize("who", ["leader", "member"])
def test_survivors_of_a_kill_agree_at_once(who: str) -> None:
    """Not counting the time that workers take to end."""
    assert max(regroup_s(seed, who, "kill") for seed in range(10)) < 0.5


@pytest.mark.parametrize("who", ["leader", "member"])
def test_survivors_of_a_cut_agree_as_soon_as_silence_is_death(who: str) -> None:
    assert max(regroup_s(seed, who, "cut") for seed in range(10)) < LOST_AFTER_S + BEAT_S + MOURN_S + 1.0


@pytest.mark.parametrize("who", ["leader", "member"])
def test_no_round_begins_before_the_workers_of_a_lost_host_are_gone(who: str) -> None:
    """They heed no SIGTERM, and its agent hears of the loss at the same time as the others."""
    for seed in range(10):
        life = together(seed, 3, smallest=2)
        life.watch.stop_s = 30.0
        formation_s(life, 3)
        life.lan.run(life.lan.now + life.random.uniform(5, 9))
        host = pick(life, who)
        life.cut(host)
        formed = len(life.watch.formed)
        deadline = life.lan.now + LOST_AFTER_S + BEAT_S + END_S + 5
        while len(life.watch.formed) == formed and life.lan.now < deadline:
            life.lan.run(life.lan.now + 0.01)
        assert len(life.watch.formed) == formed + 1
        assert not host.workers


def pick(life: Scenario, who: str) -> Host:
    """Return the leader's host, or another one that has a member."""
    leader = life.leader()
    assert leader is not None
    return leader if who == "leader" else next(h for h in life.lan.hosts if h is not leader)


def regroup_s(seed: int, who: str, how: str) -> float:
    """Return how long two of three take from a fault to the next round, their workers ending at once."""
    life = together(seed, 3, smallest=2)
    life.watch.stop_s = 0.0
    formation_s(life, 3)
    life.lan.run(life.lan.now + life.random.uniform(5, 9))
    host = pick(life, who)
    (life.kill if how == "kill" else life.cut)(host)
    return formation_s(life, 2)


def test_a_cable_out_for_less_than_death_costs_nothing() -> None:
    for seed in range(10):
        life = together(seed, 3, smallest=2)
        formation_s(life, 3)
        life.lan.run(life.lan.now + 3)
        host = life.random.choice(life.lan.hosts)
        life.cut(host)
        life.lan.after(life.random.uniform(1.0, 4.0), life.heal, host)
        life.lan.run(life.lan.now + 20)
        assert life.watch.overs == []


def test_a_job_below_its_minimum_waits_for_the_lost_host_and_goes_on_with_it() -> None:
    for seed in range(5):
        life = together(seed, 3)
        formation_s(life, 3)
        host = life.lan.hosts[0]
        life.power_off(host)
        life.lan.run(life.lan.now + 30)
        assert life.watch.groups() == []
        life.start(host)
        assert formation_s(life, 3, within_s=10.0) < 5.0


def test_two_halves_can_both_run_without_a_majority_and_become_one_again() -> None:
    """What the warning of a small minimum is about; and the larger claim wins in the end."""
    life = together(1, 4, smallest=2)
    formation_s(life, 4)
    pairs = {(a, b) for a in (0, 1) for b in (2, 3)}
    life.block(pairs | {(b, a) for a, b in pairs})
    life.lan.run(life.lan.now + 20)
    assert sorted(len(group) for group in life.watch.groups()) == [2, 2]

    life.heal_all()
    life.settle(16.0)
    assert [len(group) for group in life.watch.groups()] == [4]


def test_a_network_that_was_split_until_every_record_was_gone_finds_together() -> None:
    """mDNS alone would ask again only after minutes."""
    for seed in range(5):
        life = together(seed, 2)
        formation_s(life, 2)
        life.block({(0, 1), (1, 0)})
        life.lan.run(life.lan.now + 70)  # the last question that the model asks falls into it
        life.heal_all()
        assert formation_s(life, 2, within_s=15.0) < 10.0


def test_a_newcomer_behind_a_firewall_does_not_keep_the_others_from_running() -> None:
    life = together(3, 3, smallest=2)
    life.block({(1, 2), (2, 1)})
    formation_s(life, 2)
    begin = len(life.watch.overs)
    life.lan.run(life.lan.now + 25)

    assert len(life.watch.groups()) == 1
    assert len(life.watch.overs) == begin
    assert any("cannot reach" in text for agent in life.watch.agents.values() for text in agent.told)


@pytest.mark.parametrize("who", ["leader", "member"])
def test_workers_that_do_not_end_hold_up_the_others_only_so_long(who: str) -> None:
    """A GPU that does not answer keeps its process in the kernel: the host is let go, be it the leader's."""
    for seed in range(3):
        life = together(seed, 3, smallest=2)
        life.watch.collective = 1.0
        formation_s(life, 3)
        host = pick(life, who)
        life.hang(host, 100.0)
        life.lan.run(life.lan.now + 1.0)

        assert formation_s(life, 2, within_s=READY_LIMIT_S + 15) > READY_LIMIT_S - 5
        assert formation_s(life, 3, within_s=100.0) > 0.0
