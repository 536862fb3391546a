"""The right losses: they fall, they depend on the whole past, and torch finds the same."""

from __future__ import annotations

import subprocess
import sys
from itertools import islice, pairwise

import pytest

from chaos.lesson import BATCH, FEATURES, TOLERANCE, examples, right_losses
from tests.lab.host import REPOSITORY

BY_TORCH = """
import torch
from chaos.lesson import *
w = torch.zeros(FEATURES, dtype=torch.float64, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=RATE, momentum=MOMENTUM)
for step in range(1, 31):
    x = torch.tensor([a for a, _ in examples(step)], dtype=torch.float64)
    y = torch.tensor([b for _, b in examples(step)], dtype=torch.float64)
    optimizer.zero_grad()
    loss = ((x @ w - y) ** 2).mean() / 2
    loss.backward()
    optimizer.step()
    print(loss.item())
"""


def test_the_batches_are_as_large_as_they_should_be_and_differ() -> None:
    batches = [examples(step) for step in range(1, 100)]

    assert all(len(batch) == BATCH and len(batch[0][0]) == FEATURES for batch in batches)
    assert len({tuple(batch) for batch in batches}) == len(batches)


def test_the_losses_fall_and_no_two_steps_have_the_same() -> None:
    losses = list(islice(right_losses(), 300))

    assert sum(losses[50:60]) < sum(losses[:10]) / 5
    for one, other in pairwise(losses):
        assert abs(one - other) > 1000 * TOLERANCE * one


@pytest.mark.timeout(300)  # torch loads for minutes where much else runs
def test_torch_finds_the_same_losses() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BY_TORCH], capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    found = [float(line) for line in done.stdout.split()]

    assert len(found) == 30
    for ours, right in zip(found, right_losses(), strict=False):
        assert abs(ours - right) <= TOLERANCE * right
