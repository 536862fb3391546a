"""A chapter that has a bit of everything."""

from __future__ import annotations

from bench.measure import Chapter, Series, Wanted

MACHINE = {
    "avahi_gpu": "0.1.0",
    "torch": "2.13",
    "zeroconf": "0.154",
    "avahi": "avahi-daemon 0.8",
    "python": "3.11",
    "system": "Debian",
    "cores": 2,
    "load_at_start": "0.1 0.2 0.3",
}


def chapter() -> Chapter:
    ours = Series("ours", [1.0, 3.0, 2.0], wanted=Wanted(ratio=1.05))
    theirs = Series("theirs", [4.0, 4.0, 5.0])
    lost = Series("another", outcomes=["job lost", "job lost", "too late"])
    return Chapter("a-key", "A title", "from here to there", [ours, theirs, lost], baseline="theirs")
