"""What ``bench`` has measured of the network between the nodes of a job."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GaugedNode:
    """A node that took part. ``speed_mbit``: of its card, None where the driver does not say.

    ``link`` is a word of ``Link``, '' where it is not known; ``duplex`` the kernel's: full, half or ''.
    """

    host: str
    address: str
    interface: str = ""
    link: str = ""
    speed_mbit: int | None = None
    duplex: str = ""


@dataclass(frozen=True)
class GaugedLink:
    """One way between two nodes, which stand for themselves by their place in the list of nodes.

    ``bits_per_s``: payload of one TCP stream as its receiver counts it, None where it failed; ``error``: why.
    Round trips are of 64 bytes on an idle connection, in seconds: the quickest, the median, and the one that
    99 of 100 do not exceed. ``resent``: the share of segments that TCP had to send again.
    """

    source: int
    target: int
    bits_per_s: float | None = None
    round_trip_best_s: float | None = None
    round_trip_s: float | None = None
    round_trip_p99_s: float | None = None
    resent: float = 0.0
    error: str = ""


@dataclass(frozen=True)
class Reduction:
    """All-reduce of so many bytes: ``seconds`` for one, the mean of ``count`` and of all ranks."""

    size: int
    seconds: float
    count: int = 1


@dataclass(frozen=True)
class Measurement:
    """All of it. ``ranks``: processes of the all-reduce, 0 where there was none, and ``omitted`` says why.

    ``failed``: it was begun, and ``omitted`` says why it has not come to its end.
    """

    nodes: tuple[GaugedNode, ...] = ()
    links: tuple[GaugedLink, ...] = ()
    reductions: tuple[Reduction, ...] = ()
    backend: str = ""
    ranks: int = 0
    torch: str = ""
    omitted: str = ""
    failed: bool = False
    sampled: bool = False  # too many nodes for every pair: neighbours by rank alone


@dataclass(frozen=True)
class Estimate:
    """What exchanging the gradients of a model takes, once in each step. ``seconds`` None: not known."""

    parameters: int
    dtype: str
    size: int  # bytes
    seconds: float | None
    measured: bool  # by the all-reduce; else from the slowest link


@dataclass(frozen=True)
class Judgement:
    """What follows from a measurement. ``troubles``: sentences on links or nodes that give too little."""

    slowest: GaugedLink | None = None
    slow: tuple[GaugedLink, ...] = ()
    summary: str = ""
    troubles: tuple[str, ...] = ()
