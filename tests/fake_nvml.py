"""Makes a library that speaks for NVIDIA's driver, for machines without a card."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
LIBRARY = "libnvidia-ml.so.1"
STATE = "/etc/fake-nvml"  # what it reads where FAKE_NVML says nothing else
ONE = "550.90.07;12040;NVIDIA GeForce RTX 4090;24564;8;9\n"


def make_library(folder: Path) -> Path | None:
    """Return the library, made in ``folder``; None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    target = folder / LIBRARY
    line = [compiler, "-shared", "-fPIC", "-w", "-o", str(target), str(SOURCE)]
    subprocess.run(line, check=True, timeout=60)
    return target
