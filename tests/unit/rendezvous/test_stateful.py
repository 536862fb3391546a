"""Hypothesis chooses what happens to a job next, and shrinks whatever breaks an invariant."""

from __future__ import annotations

import os
import random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from avahi_gpu.rendezvous.terms import Terms
from tests.unit.rendezvous.network import Host, Lan
from tests.unit.rendezvous.scenario import SETTLE_S, Scenario
from tests.unit.rendezvous.watch import STOP_S, Watch

MORE = int(os.environ.get("AVAHI_GPU_EXAMPLES", "1"))  # times as many examples, for a long run
some_host = st.integers(0, 3)


class LifeOfAJob(RuleBasedStateMachine):
    """Every invariant is checked by the watch at every event; the end checks that one group forms."""

    life: Scenario

    @initialize(
        seed=st.integers(0, 3), numbers=st.sampled_from([(2, 3), (3, 3), (3, 4), (4, 4), (1, 4), (2, 2)])
    )
    def begin(self, seed: int, numbers: tuple[int, int]) -> None:
        lan = Lan(seed, 4)
        terms = Terms("job", min_nodes=numbers[0], max_nodes=numbers[1])
        self.life = Scenario(lan, Watch(lan), (terms,), random.Random(seed))

    def host(self, index: int) -> Host:
        return self.life.lan.hosts[index]

    @rule(index=some_host)
    def start(self, index: int) -> None:
        self.life.start(self.host(index))

    @rule()
    def start_everywhere(self) -> None:
        for host in self.life.lan.hosts:
            self.life.start(host)

    @rule(index=some_host)
    def kill(self, index: int) -> None:
        self.life.kill(self.host(index))

    @rule(index=some_host)
    def power_off(self, index: int) -> None:
        self.life.power_off(self.host(index))

    @rule(index=some_host)
    def cut(self, index: int) -> None:
        self.life.cut(self.host(index))

    @rule(index=some_host)
    def heal(self, index: int) -> None:
        self.life.heal(self.host(index))

    @rule(one=some_host, other=some_host, both=st.booleans())
    def block(self, one: int, other: int, both: bool) -> None:
        if one != other:
            self.life.block({(one, other), (other, one)} if both else {(one, other)})

    @rule(side=st.sets(some_host, min_size=1, max_size=3))
    def split(self, side: set[int]) -> None:
        pairs = {(a, b) for a in side for b in range(4) if b not in side}
        self.life.block(pairs | {(b, a) for a, b in pairs})

    @rule()
    def unblock(self) -> None:
        self.life.unblock(set(self.life.lan.blocked))

    @rule(index=some_host)
    def fail_workers(self, index: int) -> None:
        self.life.fail_workers(self.host(index))

    @rule(index=some_host)
    def leave(self, index: int) -> None:
        self.life.leave(self.host(index))

    @rule(index=some_host, for_s=st.sampled_from([0.5, 4.0, 7.0]))
    def freeze(self, index: int, for_s: float) -> None:
        self.life.freeze(self.host(index), for_s)

    @rule(for_s=st.sampled_from([0.01, 0.1, 0.4, 1.0, 3.0, 6.0, 15.0]))
    def wait(self, for_s: float) -> None:
        self.life.lan.run(self.life.lan.now + for_s)

    @precondition(lambda self: self.life.leader() is not None)
    @rule(cable=st.booleans())
    def strike_the_leader(self, cable: bool) -> None:
        host = self.life.leader()
        assert host is not None
        (self.life.cut if cable else self.life.kill)(host)

    def teardown(self) -> None:
        if not hasattr(self, "life"):
            return
        self.life.heal_all()
        self.life.lan.run(self.life.lan.now + 9.0)  # whoever is frozen goes on
        self.life.settle(SETTLE_S + 2 * STOP_S)


TestLifeOfAJob = LifeOfAJob.TestCase
TestLifeOfAJob.settings = settings(max_examples=40 * MORE, stateful_step_count=25, deadline=None)
