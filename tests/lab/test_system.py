"""How files are written, as a real avahi-daemon sees it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from tests.lab.cluster import Cluster

WRITE_THRICE = """
from avahi_gpu.host.system import System
for number in range(3):
    System().write("/etc/avahi/services/x.service",
        b'<service-group><name>x</name><service><type>_turns._tcp</type><port>1</port>'
        b'<txt-record>turn=%d</txt-record></service></service-group>' % number)
"""


def test_avahi_loads_the_last_of_three_replacements_within_one_second(
    make_cluster: Callable[..., Cluster],
) -> None:
    host = make_cluster(1).hosts[0]

    host.run([sys.executable, "-c", WRITE_THRICE], check=True)

    deadline = time.monotonic() + 10
    listed = ""
    while "turn=2" not in listed and time.monotonic() < deadline:
        listed = host.run(["avahi-browse", "-rpt", "_turns._tcp"], check=True).stdout
    assert "turn=2" in listed
    assert "turn=1" not in listed
    assert host.path("/etc/avahi/services").joinpath("x.service").stat().st_mode & 0o777 == 0o644
