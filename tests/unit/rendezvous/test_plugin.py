"""What torch loads of us."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from avahi_gpu.rendezvous.plugin import create, registration, uncollected


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


def test_what_torch_loads_in_every_process_brings_nothing_else_with_it() -> None:
    code = (
        "import sys; import avahi_gpu.rendezvous.plugin; "
        "print([m for m in sys.modules if m.split('.')[0] in ('asyncio', 'dbus_next', 'msgspec', 'torch')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_entry_point_of_the_project_leads_to_the_plugin() -> None:
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    assert 'avahi = "avahi_gpu.rendezvous.plugin:registration"' in text
    assert registration() is create
