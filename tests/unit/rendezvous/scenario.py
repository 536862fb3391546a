"""Random lives of a job: starts, faults of every kind, a network that heals, and what must hold after it."""

from __future__ import annotations

import random
from dataclasses import dataclass

from avahi_gpu.rendezvous.core import LEFT_OUT_S
from avahi_gpu.rendezvous.terms import Terms
from tests.unit.rendezvous.agent import Agent
from tests.unit.rendezvous.network import Host, Lan
from tests.unit.rendezvous.watch import STOP_S, Broken, Watch

SETTLE_S = 10.0  # from the last fault to one group, the stopping of workers not counted
LAST_S = 200.0  # nodes that mDNS has not introduced to each other by then are given up
STEADY_S = 12.0  # for so long the group then stays as it is


@dataclass
class Scenario:
    """One life: a LAN, the jobs on it, and the faults to come."""

    lan: Lan
    watch: Watch
    jobs: tuple[Terms, ...]
    random: random.Random
    quiet_at: float = 0.0  # true time of the last fault
    settled_s: float = 0.0
    lossy: bool = False

    # --- faults, each usable at any time --------------------------------------------------------------------

    def agents_on(self, host: Host) -> list[Agent]:
        return [a for terms in self.jobs for a in self.watch.living(terms.job) if a.host is host]

    def agent_on(self, host: Host) -> Agent | None:
        """One of the agents on a host, if there is one."""
        found = self.agents_on(host)
        return self.random.choice(found) if found else None

    def start(self, host: Host, priority: int = 0) -> None:
        """Start the jobs' commands, unless they run there already: the driver refuses that."""
        if not host.powered:
            host.powered = True
            self.lan.topology_changed()
        for terms in self.jobs:
            if not any(
                a.alive and a.host is host and a.terms.job == terms.job for a in self.watch.agents.values()
            ):
                Agent(self.watch, host, terms, priority)

    def kill(self, host: Host) -> None:
        agent = self.agent_on(host)
        if agent is not None:
            agent.kill()

    def power_off(self, host: Host) -> None:
        for program in host.programs:
            if program.alive:
                program.lose_power()
        host.powered = False
        self.lan.topology_changed()

    def cut(self, host: Host) -> None:
        host.cable = False
        self.lan.topology_changed()

    def heal(self, host: Host) -> None:
        host.cable = True
        self.lan.topology_changed()

    def block(self, pairs: set[tuple[int, int]]) -> None:
        self.lan.blocked |= pairs
        self.lan.topology_changed()

    def unblock(self, pairs: set[tuple[int, int]]) -> None:
        self.lan.blocked -= pairs
        self.lan.topology_changed()

    def block_fast(self, pairs: set[tuple[int, int]]) -> None:
        """The fast network falls apart; the LAN beside it does not notice."""
        self.lan.fast_blocked |= pairs
        self.lan.topology_changed()

    def unblock_fast(self, pairs: set[tuple[int, int]]) -> None:
        self.lan.fast_blocked -= pairs
        self.lan.topology_changed()

    def fail_workers(self, host: Host) -> None:
        agent = self.agent_on(host)
        if agent is not None and agent.round is not None:
            agent.fail_workers(agent.round.token, f"the script failed on {host.name}")

    def leave(self, host: Host) -> None:
        agent = self.agent_on(host)
        if agent is not None:
            agent.leave("left")

    def freeze(self, host: Host, for_s: float) -> None:
        agent = self.agent_on(host)
        if agent is not None:
            agent.freeze(for_s)

    def hang(self, host: Host, for_s: float) -> None:
        """The workers of a host fail, and then do not end for so long: a GPU that does not answer."""
        agent = self.agent_on(host)
        if agent is not None and agent.round is not None and agent.state == "running":
            agent.hang_s = for_s
            agent.fail_workers(agent.round.token, f"a GPU of {host.name} hangs")

    def strike_leader(self, lasts: float) -> None:
        """The leader of a running group is killed, or loses its cable."""
        host = self.leader()
        if host is None:
            return
        if self.random.random() < 0.5:
            self.kill(host)
            self.lan.after(lasts, self.start, host)
        else:
            self.cut(host)
            self.lan.after(lasts, self.heal, host)

    def leader(self) -> Host | None:
        """The host of the leader of a group that runs."""
        for agent in self.watch.agents.values():
            if agent.alive and agent.state == "running" and agent.round and agent.round.rank == 0:
                return agent.host
        return None

    # --- how it ends ---------------------------------------------------------------------------------------

    def heal_all(self) -> None:
        self.lan.blocked.clear()
        self.lan.fast_blocked.clear()
        for host in self.lan.hosts:
            host.cable = True
        self.lan.topology_changed()

    def left_out(self) -> bool:
        """Whether some node waits because others could not reach it, or it them."""
        rosters = [a.agreement.leading.roster for a in self.watch.agents.values() if a.alive]
        return any(m.left_out for roster in rosters for m in roster.members.values())

    def unsettled(self) -> str:
        return "; ".join(why for terms in self.jobs if (why := self.watch.unsettled(terms.job)))

    def settle(self, within_s: float) -> float:
        """Run until one group of each job stands and stays; return how long it took, Broken if too long."""
        begin = stands_since = self.lan.now
        waits_s = 0.0
        while self.lan.now < min(stands_since + STEADY_S, LAST_S):
            self.lan.run(self.lan.now + 0.25)
            waits_s = max(waits_s, LEFT_OUT_S * self.left_out())
            if self.unsettled():
                stands_since = self.lan.now
                if not all(self.watch.introduced(terms.job) for terms in self.jobs):
                    begin = self.lan.now
            if stands_since > begin + within_s + waits_s:
                raise Broken(f"no single group within {within_s:.0f} s: {self.unsettled()}")
        return stands_since - begin

    def finish(self) -> None:
        """The scripts end well, everywhere at about the same time; so do all agents, and nobody regroups."""
        self.watch.may_end = True
        before = len(self.watch.overs)
        for agent in self.watch.agents.values():
            if agent.alive and agent.state == "running":
                self.lan.after(self.random.uniform(0, 2.0), agent.leave, "finished")
        self.lan.run(self.lan.now + 15.0)
        rest = [a.name for a in self.watch.agents.values() if a.alive]
        bad = [a.ended.reason for a in self.watch.agents.values() if a.ended and not a.ended.finished]
        if rest or bad or len(self.watch.overs) != before:
            raise Broken(f"the end was none: {rest} live, {bad}, {self.watch.overs[before:]}")


def compose(seed: int, *, days: int = 0, tracing: bool = False) -> Scenario:
    """Return a random life, its faults already in the queue."""
    r = random.Random(seed * 7919 + 1)
    count = r.randint(2, 7)
    loss, slow, stale = r.choice([0, 0, 0.1, 0.5, 0.7]), r.random() < 0.25, r.choice([0, 0.5, 1])
    lan = Lan(seed, count, loss=loss, slow=slow, stale=stale, days=days)
    lan.tracing = tracing
    watch = Watch(lan, lying=r.random() < 0.1, collective=r.choice([0.0, 0.6, 1.0]))
    jobs = ("job", "other") if r.random() < 0.15 else ("job",)
    scenario = Scenario(
        lan, watch, tuple(terms(name, count, r) for name in jobs), r, lossy=loss >= 0.5 or slow
    )
    if r.random() < 0.3:
        for a in range(count):
            for b in range(a):
                if r.random() < 0.5:
                    lan.deaf.add(r.choice([(a, b), (b, a)]))
    cards = random.Random(seed * 31 + 5)  # of its own: the lives of earlier seeds stay what they were
    if cards.random() < 0.4:
        for host in lan.hosts:
            host.fast = cards.random() < 0.8
        if cards.random() < 0.3:  # one that never worked: wrong VLAN, a cable into the wrong switch
            lan.fast_blocked.add((cards.randrange(count), cards.randrange(count)))
    spread = r.choice([0.0, 0.3, 2.0, 8.0])
    for host in lan.hosts:
        moment = (15.0 if r.random() < 0.1 else 0.0) + r.uniform(0, spread)
        scenario.quiet_at = max(scenario.quiet_at, moment)
        lan.after(moment, scenario.start, host, r.choice([0, 0, 0, 0, 5]))
    add_faults(scenario, r.choice([0, 1, 1, 2, 2, 3, 5, 8]))
    return scenario


def terms(job: str, hosts: int, r: random.Random) -> Terms:
    """Return what a command on so many hosts may ask for: all of them, a majority, spares, any range."""
    largest = hosts if r.random() < 0.75 else max(1, hosts - r.randint(1, 2))
    smallest = largest if r.random() < 0.35 else r.randint(largest // 2 + 1, largest)
    if r.random() < 0.15:
        smallest = r.randint(1, largest)
    return Terms(job, min_nodes=smallest, max_nodes=largest)


def add_faults(scenario: Scenario, count: int) -> None:
    """Put random faults into the queue, spread out or all at once; most of them end some time later."""
    r, lan, hosts = scenario.random, scenario.lan, scenario.lan.hosts
    gone, burst = 0, r.choice([None, r.uniform(0.0, 25.0)])
    need = max(terms.min_nodes for terms in scenario.jobs)
    kinds = ["kill", "power", "cut", "cut", "split", "oneway", "pair", "script", "freeze", "leave"]
    kinds += ["leader", "leader", *(["hang"] if r.random() < 0.2 else [])]
    kinds += ["fast", "fast"] * any(h.fast for h in hosts)
    for _ in range(count):
        at = r.uniform(0.2, 35.0) if burst is None else burst + r.uniform(0.0, 4.0)
        host, kind = r.choice(hosts), r.choice(kinds)
        lasts = r.choice([r.uniform(0.1, 1.0), r.uniform(1.0, 6.0), r.uniform(6.0, 20.0)])
        scenario.quiet_at = max(scenario.quiet_at, at + lasts)
        if kind in ("kill", "power", "leave"):
            act = {"kill": scenario.kill, "power": scenario.power_off, "leave": scenario.leave}[kind]
            lan.after(at, act, host)
            if r.random() < 0.3 and len(hosts) - gone > need:
                gone += 1
            else:
                lan.after(at + lasts, scenario.start, host)
        elif kind == "cut":
            lan.after(at, scenario.cut, host)
            lan.after(at + lasts, scenario.heal, host)
        elif kind in ("split", "oneway", "pair"):
            side = set(r.sample(range(len(hosts)), r.randint(1, len(hosts) - 1)))
            pairs = {(a, b) for a in side for b in range(len(hosts)) if b not in side}
            if kind == "pair":
                pairs = {r.choice(sorted(pairs))}
            if kind != "oneway":
                pairs |= {(b, a) for a, b in pairs}
            lan.after(at, scenario.block, pairs)
            lan.after(at + lasts, scenario.unblock, pairs)
        elif kind == "fast":
            pairs = {(a, b) for a in range(len(hosts)) for b in range(a) if r.random() < 0.5}
            lan.after(at, scenario.block_fast, pairs)
            lan.after(at + lasts, scenario.unblock_fast, pairs)
        elif kind == "script":
            lan.after(at, scenario.fail_workers, host)
        elif kind == "hang":
            lasts = r.uniform(40.0, 70.0)
            scenario.quiet_at = max(scenario.quiet_at, at + lasts)
            lan.after(at, scenario.hang, host, lasts - STOP_S)
        elif kind == "freeze":
            lan.after(at, scenario.freeze, host, min(lasts, 9.0))
        else:
            lan.after(at, scenario.strike_leader, lasts)


def play(seed: int, *, days: int = 0, tracing: bool = False) -> Scenario:
    """Live one life to its end; Broken where an invariant does not hold. Its settling time is noted."""
    scenario = compose(seed, days=days, tracing=tracing)
    watch = scenario.watch
    try:
        scenario.lan.run(scenario.quiet_at)
        scenario.heal_all()
        scenario.settled_s = scenario.settle((SETTLE_S + 2 * STOP_S) * (2 if scenario.lossy else 1))
        scenario.lan.note("", f"settled after {scenario.settled_s:.2f} s")
        whole = all(watch.groups(terms.job) and watch.introduced(terms.job) for terms in scenario.jobs)
        if seed % 4 == 0 and whole:
            scenario.finish()
    except Exception as error:
        error.scenario = scenario  # type: ignore[attr-defined]
        raise
    return scenario


# --- calm lives, to be measured -----------------------------------------------------------------------------


def together(
    seed: int, hosts: int, *, smallest: int | None = None, spread_s: float = 0.3, **lan: float
) -> Scenario:
    """Return a LAN on which every host starts the job within ``spread_s``; no fault is planned."""
    network = Lan(seed, hosts, **lan)  # type: ignore[arg-type]
    terms = Terms("job", min_nodes=smallest or hosts, max_nodes=hosts)
    scenario = Scenario(network, Watch(network), (terms,), random.Random(seed))
    for host in network.hosts:
        network.after(scenario.random.uniform(0, spread_s), scenario.start, host)
    return scenario


def formation_s(scenario: Scenario, size: int, within_s: float = 60.0) -> float:
    """Run until a group of ``size`` stands; return how long that took from now. Broken where it does not."""
    begin = scenario.lan.now
    while scenario.lan.now < begin + within_s:
        scenario.lan.run(scenario.lan.now + 0.02)
        if any(len(group) == size for group in scenario.watch.groups()):
            return scenario.lan.now - begin
    raise Broken(f"no group of {size} within {within_s:.0f} s: {scenario.unsettled()}")
