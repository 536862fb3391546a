"""What the workers of chaos learn: a regression so small that its right answer is known for every step. Pure.

The gradient is a sum over the examples of a step, so that it is the same however many processes share them;
momentum makes the losses depend on all of the state that a checkpoint must hold.
"""

from __future__ import annotations

from collections.abc import Iterator

FEATURES = 4
BATCH = 60  # a multiple of every group size up to six
RATE = 0.05
MOMENTUM = 0.9
TRUTH = (1.5, -2.0, 0.5, 3.0)
TOLERANCE = 1e-9  # relative; the order of a sum of sixty doubles matters less

_MODULUS = 2**31 - 1  # the generator of Park and Miller: the same numbers everywhere
_MULTIPLIER = 48271

Example = tuple[tuple[float, ...], float]


def examples(step: int) -> list[Example]:
    """Return the batch of a step, as (features, target) with all numbers between -8 and 8."""
    state = (step * 7919 + 1) % _MODULUS
    found = []
    for _ in range(BATCH):
        numbers = []
        for _ in range(FEATURES + 1):
            state = state * _MULTIPLIER % _MODULUS
            numbers.append(2 * state / _MODULUS - 1)
        features = tuple(numbers[:FEATURES])
        found.append((features, sum(w * x for w, x in zip(TRUTH, features, strict=True)) + numbers[-1]))
    return found


def right_losses() -> Iterator[float]:
    """Yield the loss of step 1, 2, 3, … of an undisturbed run."""
    weights, speed, step = [0.0] * FEATURES, [0.0] * FEATURES, 0
    while True:
        step += 1
        gradient, loss = [0.0] * FEATURES, 0.0
        for features, target in examples(step):
            error = sum(w * x for w, x in zip(weights, features, strict=True)) - target
            loss += error * error / 2 / BATCH
            gradient = [g + error * x / BATCH for g, x in zip(gradient, features, strict=True)]
        yield loss
        speed = [MOMENTUM * s + g for s, g in zip(speed, gradient, strict=True)]
        weights = [w - RATE * s for w, s in zip(weights, speed, strict=True)]
