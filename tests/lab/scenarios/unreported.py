"""F: faults that nobody has reported, which a machine may have all the same."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.cluster import Cluster
from tests.lab.scenarios.scenario import Scenario


def shell(line: str, *, restart: bool = False) -> Callable[[Cluster], None]:
    """Return what runs this line on the first host."""

    def break_it(lab: Cluster) -> None:
        lab[0].run(["sh", "-c", line], check=True)
        if restart:
            lab[0].restart_avahi()

    return break_it


SCENARIOS = (
    Scenario(
        "F-01",
        "files-for-root-alone",
        "nsswitch.conf has mode 0600: it works for root only",
        "AG117",
        shell("chmod 600 /etc/nsswitch.conf"),
        mends=True,
    ),
    Scenario(
        "F-02",
        "loopback-down",
        "`ip link set lo down`",
        "AG200",
        shell("ip link set lo down"),
        mends=True,
    ),
    Scenario(
        "F-03",
        "no-name-of-its-own",
        "the machine is called localhost.localdomain",
        "AG321",
        shell("hostname localhost.localdomain", restart=True),
    ),
)
