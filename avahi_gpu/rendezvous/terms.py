"""What a node brings to a job, and whether two nodes can work together. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from avahi_gpu.rendezvous.messages import PROTOCOL, TEXT_MAX, Hello, Skills

LOST_AFTER_S = 5.0  # silence that is death: a cable out for less costs nothing, a restart costs a checkpoint
LOST_AFTER_MIN_S = 2.0  # nodes beat once a second: less would take one late beat for death
LAST_CALL_S = 3.0  # how long the first round waits for more once the smallest number is there
JOIN_TIMEOUT_S = 600.0  # torch's own default of join_timeout
CONTROL_PORTS = range(29400, 29420)  # the first free one; known, so that a firewall can open them


@dataclass(frozen=True)
class Terms:
    """The terms on which this node takes part."""

    job: str
    cluster: str = "default"
    min_nodes: int = 1
    max_nodes: int = 1
    lost_after_s: float = LOST_AFTER_S
    last_call_s: float = LAST_CALL_S
    join_timeout_s: float = JOIN_TIMEOUT_S
    allow_skew: bool = False
    skills: Skills = field(default_factory=Skills)

    @property
    def majority(self) -> bool:
        """Whether two halves of the job cannot both run."""
        return 2 * self.min_nodes > self.max_nodes


def warn_minority(terms: Terms) -> str:
    """Return what to say where two groups of the job could run side by side; '' where only one can."""
    if terms.majority:
        return ""
    enough = terms.max_nodes // 2 + 1
    return (
        f"warning: where the network breaks apart, two groups of {terms.min_nodes} could both go on; "
        f"with --nnodes {show_nodes(enough, terms.max_nodes)} only one can"
    )


def release(version: str) -> str:
    """Return ``major.minor`` of a version such as ``2.13.0+cu126``."""
    return ".".join(version.partition("+")[0].split(".")[:2])


def refuse_stranger(terms: Terms, hello: Hello) -> str | None:
    """Say why ``hello`` is not of this job at all, None where it is. No fault of anybody: a stale record."""
    if hello.job != terms.job:
        return f"this port is of job '{terms.job}', not of '{hello.job}'"
    if hello.cluster != terms.cluster:
        return f"this port is of cluster '{terms.cluster}', not of '{hello.cluster}'"
    return None


def refuse_mismatch(terms: Terms, hello: Hello, leader_host: str) -> str | None:
    """Say why the sender of ``hello`` cannot work with us although it is of this job; both values named."""
    host, theirs, ours = hello.me.host, hello.skills, terms.skills
    if hello.version != PROTOCOL:
        return (
            f"{host} speaks version {hello.version} of the rendezvous protocol, "
            f"{leader_host} version {PROTOCOL}: "
            "install the same avahi-gpu on both"
        )
    if theirs.max_nodes and (theirs.min_nodes, theirs.max_nodes) != (terms.min_nodes, terms.max_nodes):
        return (
            f"{host} was started with --nnodes {show_nodes(theirs.min_nodes, theirs.max_nodes)}, "
            f"{leader_host} with --nnodes {show_nodes(terms.min_nodes, terms.max_nodes)}: use the same on all"
        )
    if not terms.allow_skew:
        for name, one, other in (
            ("torch", theirs.torch, ours.torch),
            ("NCCL", theirs.nccl, ours.nccl),
            ("CUDA", theirs.cuda, ours.cuda),
            ("Python", theirs.python, ours.python),
        ):
            if one and other and release(one) != release(other):
                return (
                    f"{host} has {name} {one}, {leader_host} has {name} {other}: "
                    "install the same on both, or give --allow-skew on both"
                )
    return None


def warn_mismatch(terms: Terms, hello: Hello, leader_host: str) -> str:
    """Say what differs but does not forbid the job; '' where nothing does."""
    theirs, ours = hello.skills, terms.skills
    if not theirs.digest or not ours.digest or theirs.digest == ours.digest:
        return ""
    host, scripts = hello.me.host, {theirs.script, ours.script}
    what = f"the training script on {host} differs from the one on {leader_host}"
    if "" not in scripts and len(scripts) > 1:
        what = f"{host} runs {theirs.script}, {leader_host} {ours.script}"
    return f"warning: {what}: the job may hang"[:TEXT_MAX]


def show_nodes(smallest: int, largest: int) -> str:
    """Return ``3`` or ``2:3``, as ``--nnodes`` takes it."""
    return str(largest) if smallest == largest else f"{smallest}:{largest}"
