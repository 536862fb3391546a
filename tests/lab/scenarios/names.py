"""B: names and the name service switch."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.cluster import Cluster
from tests.lab.scenarios.scenario import Scenario

NSSWITCH = "/etc/nsswitch.conf"


def hosts_line(services: str) -> Callable[[Cluster], None]:
    """Return what gives the first host this hosts line."""

    def break_it(lab: Cluster) -> None:
        lines = lab[0].read(NSSWITCH).splitlines()
        changed = [f"hosts: {services}" if line.startswith("hosts:") else line for line in lines]
        lab[0].write(NSSWITCH, "\n".join(changed) + "\n")

    return break_it


SCENARIOS = (
    Scenario(
        "B-01",
        "no-mdns-on-the-hosts-line",
        "`hosts: files dns`",
        "AG104",
        hosts_line("files dns"),
        mends=True,
    ),
)
