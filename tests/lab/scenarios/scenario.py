"""A fault as data: what is broken, how, and what the doctor must name first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.lab.cluster import Cluster


@dataclass(frozen=True)
class Scenario:
    """One fault of docs/reference/field-reports.md on a cluster of three nodes that are set up.

    ``breaks`` is called with the cluster. Then ``doctor`` with ``ask`` on host number ``on`` (from 0) must
    end with exit code 1 and name ``finding`` as its first error, ``also`` as the others (causes of their
    own), and nothing that merely follows. With ``mends`` its ``--fix --yes`` must lead to no error, and
    ``undo`` back to every byte of /etc and every rule of the firewall. ``touches``: the hosts that are booted
    anew afterwards; ``heals`` mends what is outside them.
    """

    entry: str  # of docs/reference/field-reports.md: A-03
    name: str  # a slug, unique
    broken: str  # what is broken, in words for that page
    finding: str
    breaks: Callable[[Cluster], None]
    ask: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    on: int = 0
    also: tuple[str, ...] = ()
    mends: bool = False
    touches: tuple[int, ...] = (0,)
    heals: Callable[[Cluster], None] = lambda _: None
