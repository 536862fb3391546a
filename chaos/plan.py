"""What chaos will do: from a seed to jobs, and for each a sequence of faults. Pure.

A job is a sequence of *bursts*. The faults of a burst are struck one after the other, with short pauses and
whatever the job is doing by then; lasting ones are mended at the burst's end, and then the job has to come
together again. Some bursts are *quiet*: nothing in them may cost the job a restart.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

SIZES = (3, 4, 5, 6)  # hosts
LOST_AFTER_S = (3.0, 5.0)  # of the jobs: a shorter one than the default, and the default
QUIET_CUT_S = 2.0  # a cable may be out for --lost-after without this, and nobody regroups
PAUSE_MAX_S = 2.5
HOLD_MAX_S = 8.0  # how long lasting faults last where nobody waits for the survivors
SURVIVED = 0.6  # the share of bursts after which the survivors must train before anything is mended

# kinds of faults: what they are, as people read it
LASTING = {
    "kill-launch": "SIGKILL of launch or torchrun alone; started again later",
    "kill-all": "SIGKILL of every process of the job on a host; started again later",
    "power-off": "the host loses its power; booted and started again later",
    "ctrl-c": "Ctrl-C on one node; started again later",
    "cut": "the cable is pulled; put back later",
    "mute-in": "nothing reaches the host; healed later",
    "mute-out": "nothing leaves the host; healed later",
    "freeze": "every process of the host is stopped; goes on later",
    "loss": "the host's cable loses a share of the frames; healed later",
    "partition": "the LAN breaks in two; healed later",
    "avahi-stop": "avahi-daemon is stopped; started later",
    "bus-stop": "dbus-daemon dies, and avahi-daemon with it; started later",
    "delay": "the host's cable delays every frame; healed later",
    "readdress": "DHCP gives the host another address; the old one comes back later",
}
BRIEF = {
    "kill-worker": "SIGKILL of one worker",
    "bug": "one worker raises an error of its own, once",
    "blip": "the cable is out for a moment",
    "nap": "every process of the host is stopped for a moment",
    "link-down": "the interface is taken down for a moment, and comes up again",
    "avahi-restart": "avahi-daemon is restarted",
    "bus-restart": "dbus-daemon is restarted, and avahi-daemon with it",
    "twice": "the same job is started a second time on the host",
}
LATE = "late"  # a host is started for the first time while the others train
KINDS = (*LASTING, *BRIEF)
QUIET = {
    "blip",
    "nap",
    "link-down",
    "avahi-restart",
    "bus-restart",
    "twice",
    "avahi-stop",
    "bus-stop",
    "delay",
}
SILENCES = {"blip", "nap", "link-down"}  # one of them in a quiet burst: two silences could add up
TAKE_OUT = {
    "kill-launch",
    "kill-all",
    "power-off",
    "ctrl-c",
    "cut",
    "mute-in",
    "mute-out",
    "freeze",
    "partition",
}
OWN_FAILURES = {"kill-worker", "bug"}  # what torch counts as a restart


@dataclass(frozen=True)
class Fault:
    """One fault. ``hosts`` are numbers from 1; of a partition they are the side without the first host."""

    kind: str
    hosts: tuple[int, ...]
    for_s: float = 0.0  # of a brief one: how long it takes
    amount: float = 0.0  # share of lost frames, or milliseconds of delay
    pause_s: float = 0.0  # until the next one

    def __str__(self) -> str:
        more = [f"{self.for_s:g} s"] if self.for_s else []
        more += [f"{self.amount:g}"] if self.amount else []
        return f"{self.kind} {'+'.join(map(str, self.hosts))}" + (f" ({', '.join(more)})" if more else "")


@dataclass(frozen=True)
class Burst:
    """Faults that belong together. ``survived``: those not hit must train before lasting ones are mended."""

    faults: tuple[Fault, ...]
    quiet: bool = False
    survived: bool = False
    hold_s: float = 0.0  # between the last fault and the mending

    def __str__(self) -> str:
        then = "survivors train" if self.survived else f"{self.hold_s:g} s"
        mark = "quiet: " if self.quiet else ""
        return mark + ", ".join(f"{f}, {f.pause_s:g} s" for f in self.faults) + f"; {then}"


@dataclass(frozen=True)
class Job:
    """One job on a LAN of its own."""

    number: int
    hosts: int
    min_nodes: int
    way: str  # launch or torchrun
    lost_after_s: float
    ending: str  # finish, or ctrl-c
    late: int = 0  # the host that is started later, 0: none
    bursts: tuple[Burst, ...] = ()

    @property
    def faults(self) -> list[Fault]:
        return [fault for burst in self.bursts for fault in burst.faults]

    def __str__(self) -> str:
        late = f", host {self.late} comes late" if self.late else ""
        return (
            f"job {self.number}: {self.min_nodes}:{self.hosts} hosts by {self.way}, lost after "
            f"{self.lost_after_s:g} s{late}; {len(self.faults)} faults; ends by {self.ending}"
        )


@dataclass
class Deck:
    """Kinds in a random order in which none is drawn again before all have been."""

    chance: random.Random
    cards: list[str] = field(default_factory=list)

    def draw(self, forbidden: set[str]) -> str:
        """Return the next kind that is not forbidden; the others stay where they are."""
        for again in (False, True):
            if again:
                fresh = list(KINDS)
                self.chance.shuffle(fresh)
                self.cards += fresh
            for index, kind in enumerate(self.cards):
                if kind not in forbidden:
                    return self.cards.pop(index)
        raise ValueError("every kind is forbidden")


def make(seed: int, jobs: int = 10, faults: int = 100, sizes: Sequence[int] = SIZES) -> tuple[Job, ...]:
    """Return what will be done: the same for the same arguments, on every machine.

    At least ``faults`` faults over ``jobs`` jobs; sizes are dealt evenly, and the smallest number of nodes is
    always a majority of the largest.
    """
    if jobs < 1 or faults < 1 or not all(2 <= n <= 60 for n in sizes):
        raise ValueError("chaos needs at least one job, one fault, and two hosts")
    chance = random.Random(f"avahi-gpu chaos {seed}")
    dealt = [sizes[i % len(sizes)] for i in range(jobs)]
    chance.shuffle(dealt)
    deck = Deck(chance)
    found = []
    for number, hosts in enumerate(dealt, start=1):
        share = faults // jobs + (number <= faults % jobs)
        found.append(make_job(number, hosts, share, deck, chance))
    return tuple(found)


def make_job(number: int, hosts: int, faults: int, deck: Deck, chance: random.Random) -> Job:
    """Return one job with this many faults."""
    min_nodes = chance.randint(hosts // 2 + 1, max(hosts // 2 + 1, hosts - 1))
    way = "torchrun" if number % 3 == 0 else "launch"
    lost_after_s = chance.choice(LOST_AFTER_S)
    late = chance.randint(1, hosts) if number % 3 == 2 and min_nodes < hosts else 0
    ending = "ctrl-c" if number % 4 == 0 else "finish"
    job = Job(number, hosts, min_nodes, way, lost_after_s, ending, late)
    bursts = []
    if late:
        bursts.append(Burst((Fault(LATE, (late,), pause_s=span(chance, 0, PAUSE_MAX_S)),)))
    while (left := faults - sum(len(burst.faults) for burst in bursts)) > 0:
        bursts.append(make_burst(job, min(left, chance.choice((1, 1, 2, 2, 3))), deck, chance))
    return Job(number, hosts, min_nodes, way, lost_after_s, ending, late, tuple(bursts))


def make_burst(job: Job, count: int, deck: Deck, chance: random.Random) -> Burst:
    """Return a burst of this many faults; a host that is hit by a lasting one is hit by no other."""
    faults: list[Fault] = []
    hit: set[int] = set()
    quiet = chance.random() < 0.3
    while len(faults) < count:
        drawn = {fault.kind for fault in faults}
        forbidden: set[str] = set()
        if quiet:
            forbidden |= set(KINDS) - QUIET
            forbidden |= SILENCES | {"delay"} if drawn & (SILENCES | {"delay"}) else set()
        free = [host for host in range(1, job.hosts + 1) if host not in hit]
        if not free:
            break
        # cables are pulled from one switch: a LAN in parts leaves them alone, and the other way round
        cables = {
            "cut",
            "mute-in",
            "mute-out",
            "loss",
            "delay",
            "power-off",
            "blip",
            "link-down",
            "readdress",
        }
        forbidden |= {"partition"} if hit or drawn & cables else set()
        forbidden |= cables | {"partition"} if "partition" in drawn else set()
        kind = deck.draw(forbidden)
        if kind == "partition":
            size = chance.randint(1, job.hosts - 1)
            hosts = tuple(sorted(chance.sample(range(2, job.hosts + 1), min(size, job.hosts - 1))))
        else:
            hosts = (chance.choice(free),)
        if kind in LASTING and kind != "partition":
            hit |= set(hosts)
        faults.append(make_fault(kind, hosts, job, chance))
    outs = taken_out(faults, job.hosts)
    able = job.hosts - len(outs) >= job.min_nodes and not any(
        f.kind in ("loss", *OWN_FAILURES) for f in faults
    )
    survived = bool(outs) and able and chance.random() < SURVIVED
    lasting = any(fault.kind in LASTING for fault in faults)
    hold_s = span(chance, 0, HOLD_MAX_S) if lasting and not survived else 0.0
    return Burst(tuple(faults), quiet, survived, hold_s)


def make_fault(kind: str, hosts: tuple[int, ...], job: Job, chance: random.Random) -> Fault:
    """Return a fault with its figures."""
    for_s = span(chance, 0.5, job.lost_after_s - QUIET_CUT_S) if kind in SILENCES else 0.0
    amount = {"loss": span(chance, 0.1, 0.3), "delay": span(chance, 20, 100)}.get(kind, 0.0)
    return Fault(kind, hosts, for_s, amount, span(chance, 0, PAUSE_MAX_S))


def span(chance: random.Random, low: float, high: float) -> float:
    """Return a number between two, to two digits, which is what the plan prints."""
    return round(chance.uniform(low, high), 2)


def taken_out(faults: Sequence[Fault], hosts: int) -> set[int]:
    """Return the hosts that cannot train with the others while these faults last."""
    found: set[int] = set()
    for fault in faults:
        if fault.kind == "partition":
            side = set(fault.hosts)
            other = set(range(1, hosts + 1)) - side
            found |= min(side, other, key=lambda group: (len(group), 1 in group))
        elif fault.kind in TAKE_OUT:
            found |= set(fault.hosts)
    return found
