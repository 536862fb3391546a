"""Replay one life of the model LAN and print it: ``python -m tests.unit.rendezvous.replay SEED``."""

from __future__ import annotations

import re
import sys

from tests.unit.rendezvous.scenario import play

SHORTER = (
    (r"(?:Candidate|Record)\(id='(...)[0-9a-f]*', host='([^']*)'[^)]*?(?:size=(\d+))?\)", r"<\1 \2 \3>"),
    (r"Token\(epoch=(\d+), leader='(...)[0-9a-f]*'\)", r"\1-\2"),
    (r"Seat\(id='(...)[0-9a-f]*'[^)]*\)", r"\1"),
    (r"skills=Skills\([^)]*\), ", ""),
    (r"([0-9a-f]{3})[0-9a-f]{13}", r"\1"),
)


def shorten(line: str) -> str:
    for pattern, short in SHORTER:
        line = re.sub(pattern, short, line)
    return line[:240]


def main(seed: int) -> None:
    try:
        life = play(seed, tracing=True)
    except Exception as error:
        life, broken = error.scenario, error  # type: ignore[attr-defined]
    else:
        broken = None
    for line in life.lan.trace:
        print(shorten(line))
    print(
        [(t.job, t.min_nodes, t.max_nodes) for t in life.jobs],
        f"{len(life.lan.hosts)} hosts, loss {life.lan.loss}",
    )
    print(f"broken: {broken}" if broken else f"settled after {life.settled_s:.2f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]))
