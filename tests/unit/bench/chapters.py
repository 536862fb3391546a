"""A chapter that has a bit of everything."""

from __future__ import annotations

from bench.measure import Chapter, Series, Wanted


def chapter() -> Chapter:
    ours = Series("ours", [1.0, 3.0, 2.0], wanted=Wanted(ratio=1.05))
    theirs = Series("theirs", [4.0, 4.0, 5.0])
    lost = Series("another", outcomes=["job lost", "job lost", "too late"])
    return Chapter("a-key", "A title", "from here to there", [ours, theirs, lost], baseline="theirs")
