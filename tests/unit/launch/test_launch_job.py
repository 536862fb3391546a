"""What surrounds a job on this node."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from avahi_gpu.launch.job import uncollected


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


def test_garbage_collection_rests_during_an_import_and_then_goes_on() -> None:
    with uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_garbage_collection_goes_on_after_an_import_that_failed() -> None:
    with pytest.raises(ImportError), uncollected():
        raise ImportError
    assert gc.isenabled()


def test_garbage_collection_that_was_off_stays_off() -> None:
    gc.disable()
    with uncollected():
        pass
    assert not gc.isenabled()
