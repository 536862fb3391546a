"""Which pairs are measured, in which order, and for how long each. Pure."""

from __future__ import annotations

from dataclasses import dataclass

EVERY_PAIR_UP_TO = 20  # nodes; 380 pairs take three minutes
PAIR_S = 1.0  # of sending: what TCP needs to find its speed is a small part of it
PAIR_MIN_S = 0.3
BUDGET_S = 60.0  # for all pairs together, as long as that leaves each its smallest time
QUICK_S, QUICK_MIN_S, QUICK_BUDGET_S = 0.5, 0.25, 10.0
ECHO_S = 0.2  # of round trips before it: a hundred on a LAN that is slow
ECHO_QUICK_S = 0.05
WARM_SHARE = 0.25  # of the sending is not counted: slow start, and queues that fill up


@dataclass(frozen=True)
class Schedule:
    """Ordered pairs of node numbers, one after the other. ``sampled``: neighbours alone, not every pair."""

    pairs: tuple[tuple[int, int], ...]
    send_s: float
    echo_s: float
    sampled: bool = False


def make_schedule(nodes: int, *, quick: bool = False) -> Schedule:
    """Return when who sends to whom.

    One pair at a time: two at once would share a cable, a switch or the air, and disturb each other. A node
    sends and receives in turns with all others, so that a disturbance that lasts hits no node alone.
    """
    sampled = nodes > EVERY_PAIR_UP_TO
    steps = sorted({1, nodes - 1}) if sampled else range(1, nodes)
    pairs = tuple((node, (node + step) % nodes) for step in steps for node in range(nodes))
    if quick:
        send_s = min(QUICK_S, max(QUICK_MIN_S, QUICK_BUDGET_S / max(len(pairs), 1) - ECHO_QUICK_S))
        return Schedule(pairs, send_s, ECHO_QUICK_S, sampled)
    send_s = min(PAIR_S, max(PAIR_MIN_S, BUDGET_S / max(len(pairs), 1) - ECHO_S))
    return Schedule(pairs, send_s, ECHO_S, sampled)
