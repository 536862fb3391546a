"""The running jobs of the LAN as the records of their nodes tell: for people, they decide nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

from avahi_gpu.model.words import DEFAULT_CLUSTER


@dataclass(frozen=True)
class JobPart:
    """What a node tells of its part in a job. ``running``: in a round; else it waits for one.

    ``epoch`` is the number of the round, of the last one where it waits; ``leader`` a host name, and
    ``leader_id`` the id of that start of it. ``since``: when it began to run, or to wait, and ``began``: when
    its first round did, both in seconds of Unix time by the node's own clock. ``restarts``: how many rounds
    it has been in after the first.
    """

    running: bool = False
    epoch: int = 0
    leader: str = ""
    leader_id: str = ""
    rank: int | None = None
    size: int | None = None  # members of the round
    since: int | None = None
    began: int | None = None
    restarts: int = 0


@dataclass(frozen=True)
class JobNode:
    """One node of a job, from its record. What it does not tell, or not sensibly, is None, 0 or ''.

    ``alive``: a probe said yes, said no, or nobody has asked or could tell (None).
    """

    name: str  # instance name
    id: str  # 16 hex digits, of this start of it
    host: str  # gpu-node-2
    address: str
    interface: str | None
    port: int
    job: str
    cluster: str = DEFAULT_CLUSTER
    self: bool = False
    min_nodes: int = 0
    max_nodes: int = 0
    processes: int = 0
    priority: int = 0
    part: JobPart = field(default_factory=JobPart)
    alive: bool | None = None


@dataclass(frozen=True)
class Job:
    """One job of one cluster. ``members``: of the round that runs, by rank; empty where none runs.

    ``waiting``: nodes that are there and in no round. ``leader`` is the leader's own record, None where it is
    not seen or no round runs: ``leader_host`` names it all the same. ``size``: members that the round has,
    which may be more than are seen. ``notes``: contradictions, each a sentence.
    """

    name: str
    cluster: str
    members: tuple[JobNode, ...] = ()
    waiting: tuple[JobNode, ...] = ()
    leader: JobNode | None = None
    leader_host: str = ""
    round: int | None = None
    size: int = 0
    since: int | None = None  # when the round began, or the wait
    began: int | None = None  # when the first round did that a node of now was in
    restarts: int = 0
    min_nodes: int = 0
    max_nodes: int = 0
    notes: tuple[str, ...] = ()

    @property
    def running(self) -> bool:
        return bool(self.members)

    @property
    def wants(self) -> int:
        """How many nodes more it needs to run; 0 where it runs."""
        return 0 if self.running else max(0, self.min_nodes - len(self.waiting))

    @property
    def nodes(self) -> tuple[JobNode, ...]:
        return (*self.members, *self.waiting)
