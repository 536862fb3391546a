"""What the unit at boot waits for: a driver that is loaded late, and not one whose card is gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.fake_nvml import ONE, make_library

ASK = """
import dataclasses, json, sys, time
from pathlib import Path
from avahi_gpu.host.present import wait_for_cards
from avahi_gpu.host.system import System
started = time.monotonic()
cards = wait_for_cards(System(Path(sys.argv[1])), float(sys.argv[2]))
print(json.dumps([dataclasses.asdict(cards), time.monotonic() - started]))
"""
LONG_S = 60.0


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A driver that is not loaded yet: its state is missing."""
    made = make_library(tmp_path)
    if made is None:
        pytest.skip("there is no compiler to make a driver with")
    return made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The tree of a machine with one card of NVIDIA's on its bus."""
    folder = tmp_path / "root/sys/bus/pci/devices/0000:01:00.0"
    folder.mkdir(parents=True)
    (folder / "class").write_text("0x030000\n")
    (folder / "vendor").write_text("0x10de\n")
    return tmp_path / "root"


def ask(library: Path, root: Path, wait_s: float) -> tuple[dict[str, object], float]:
    folder = str(library.parent)
    more = {
        "LD_LIBRARY_PATH": folder,
        "FAKE_NVML": f"{folder}/state",
        "FAKE_NVML_ASKED": f"{folder}/asked",
    }
    done = subprocess.run(
        [sys.executable, "-c", ASK, root, str(wait_s)],
        capture_output=True,
        text=True,
        env={**os.environ, **more},
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    cards, took_s = json.loads(done.stdout)
    return cards, took_s


def test_a_driver_that_is_loaded_late_is_waited_for(library: Path, root: Path) -> None:
    def load() -> None:
        while not (library.parent / "asked").exists():
            time.sleep(0.01)
        whole = library.parent / "state.new"
        whole.write_text(ONE)
        whole.rename(library.parent / "state")

    loading = threading.Thread(target=load, daemon=True)
    loading.start()
    cards, took_s = ask(library, root, LONG_S)
    loading.join()

    assert cards["gpus"] == [{"name": "NVIDIA GeForce RTX 4090", "vram_mib": 24564, "cc": "8.9"}]
    assert (cards["driver"], cards["error"]) == ("550.90.07", "")
    assert took_s < LONG_S


def test_a_driver_that_never_comes_is_an_error(library: Path, root: Path) -> None:
    cards, _ = ask(library, root, 0.5)

    assert "Driver Not Loaded" in str(cards["error"])


def test_a_driver_whose_card_is_gone_is_not_waited_for(library: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()

    cards, took_s = ask(library, empty, LONG_S)

    assert (cards["gpus"], cards["error"]) == ([], "")
    assert took_s < LONG_S
