"""examples/train.py with a first line before torch is imported: the moment at which a worker runs again.

    training.py TIMEOUT [ARGUMENT…]    TIMEOUT: seconds of the process group, 0 for torch's own default

CLOCK_MONOTONIC is one for all virtual hosts of a machine, so that the times of different hosts compare.
"""

import os
import sys
import time

print(f"worker {os.environ['RANK']} of {os.environ['WORLD_SIZE']} runs at {time.monotonic():.6f}", flush=True)

import functools  # noqa: E402
import runpy  # noqa: E402
from datetime import timedelta  # noqa: E402
from pathlib import Path  # noqa: E402

import torch.distributed as dist  # noqa: E402

timeout = float(sys.argv.pop(1))
if timeout:
    dist.init_process_group = functools.partial(dist.init_process_group, timeout=timedelta(seconds=timeout))
script = Path(__file__).resolve().parents[1] / "examples" / "train.py"
sys.argv[0] = str(script)
runpy.run_path(str(script), run_name="__main__")
