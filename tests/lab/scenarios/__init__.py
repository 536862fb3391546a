"""Faults that real people met, each broken for real on the lab; see ``scenario.py``."""

from __future__ import annotations

from tests.lab.scenarios import (
    daemon,
    hosts,
    names,
    network,
    peers,
    services,
    start,
    together,
    torch,
    unreported,
)
from tests.lab.scenarios.scenario import Scenario

ALL: tuple[Scenario, ...] = (
    *names.SCENARIOS,
    *network.SCENARIOS,
    *hosts.SCENARIOS,
    *torch.SCENARIOS,
    *daemon.SCENARIOS,
    *services.SCENARIOS,
    *start.SCENARIOS,
    *peers.SCENARIOS,
    *together.SCENARIOS,
    *unreported.SCENARIOS,
)
