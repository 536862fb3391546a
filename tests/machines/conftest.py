"""Booted machines as a fixture, and the check that no test leaves anything behind."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.lab.conftest import children, describe, settled
from tests.machines.cache import NotMade
from tests.machines.lab import Lab, machines
from tests.machines.machine import groups_left


@pytest.fixture
def make_machines() -> Iterator[Callable[..., Lab]]:
    """Return ``machines`` as a function; what it booted is taken down after the test, and nothing is left.

    Where the root file system cannot be made, the test is skipped with the reason; under CI it fails.
    """
    before = children()

    def make(n: int, release: str = "bookworm", **options: object) -> Lab:
        try:
            return stack.enter_context(machines(n, release, **options))  # type: ignore[arg-type]
        except NotMade as problem:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"no machines can be made here: {problem}")

    with ExitStack() as stack:
        yield make
    left = settled(lambda: [describe(pid) for pid in children() - before])
    left += settled(lambda: groups_left(f"{os.getpid()}-m"))
    assert not left, "the test left behind:\n" + "\n".join(left)
