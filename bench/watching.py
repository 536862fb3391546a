"""How soon ``avahi-gpu peers --watch`` tells that a node dies, lives again, or is new."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

from bench.measure import Chapter, Series, Wanted
from tests.lab.cluster import Cluster, cluster
from tests.lab.host import Host
from tests.lab.process import Follower
from tests.lab.runs import BIN

HOSTS = 3
WITHIN_S = 60.0
SETUP_S = 120.0
PAUSE_S = (0.9, 1.2, 0.4, 0.7, 1.0)  # so that cuts do not keep step with the watch, which asks once a second

ABOUT = (
    "by the line of `peers --watch --json` on another node; a new node is a bare host, whose setup has to "
    "start avahi-daemon first"
)


def measure(runs: int, tell: Callable[[str], None]) -> Iterator[Chapter]:
    """Cut and heal one node's cable, and let another one become a node, each time anew."""
    dead = Series("cable out, until the node is dead", wanted=Wanted(3.0))
    alive = Series("cable back, until it is alive", wanted=Wanted(3.0))
    new = Series("a new node, from the end of its setup", wanted=Wanted(2.0))
    whole = Series("a new node, from the start of its setup")
    chapter = Chapter("watch", "Watching the LAN", ABOUT, [dead, alive, new, whole])
    with cluster(HOSTS) as lab:
        for host in lab.hosts[:2]:
            host.run([BIN / "avahi-gpu", "setup", "--yes"], check=True, timeout=SETUP_S)
        watching = lab[0].follow([BIN / "avahi-gpu", "peers", "--watch", "--json"])
        wait_for(watching, "joined", lab[1], 0)
        for run in range(runs):
            tell(f"watch, run {run + 1} of {runs}")
            time.sleep(PAUSE_S[run % len(PAUSE_S)])
            for act, kind, series in ((lab[1].cut, "dead", dead), (lab[1].heal, "alive", alive)):
                line, began = len(watching.lines), time.monotonic()
                act()
                series.add(wait_for(watching, kind, lab[1], line) - began)
                time.sleep(PAUSE_S[-1 - run % len(PAUSE_S)])
            line = len(watching.lines)
            began = be_born(lab, lab[2])
            ended = time.monotonic()
            seen = wait_for(watching, "joined", lab[2], line)
            new.add(seen - ended)
            whole.add(seen - began)
            line = len(watching.lines)
            lab[2].stop_avahi()  # it says goodbye, so that the next one is new
            wait_for(watching, "left", lab[2], line)
            yield chapter
        watching.end()


def be_born(lab: Cluster, host: Host) -> float:
    """Replace a host by a bare one and run setup there; return when that began."""
    host.kill()
    lab.power_on_bare(host)
    began = time.monotonic()
    host.run([BIN / "avahi-gpu", "setup", "--yes"], check=True, timeout=SETUP_S)
    return began


def wait_for(watching: Follower, kind: str, host: Host, after: int) -> float:
    """Return when such an event of a host was told."""
    end = time.monotonic() + WITHIN_S
    while True:
        after = watching.wait_for(f'"event": "{kind}"', max(0.01, end - time.monotonic()), after=after)
        if json.loads(watching.lines[after])["node"]["name"] == host.name:
            return watching.times[after]
        after += 1
