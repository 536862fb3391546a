"""A worker that says when its first line ran and when its process group stood.

CLOCK_MONOTONIC is one for all virtual hosts of a machine, so that the times of different hosts compare.
"""

import time

first = time.monotonic()  # before torch is imported: what that costs is the same whoever started us

import os  # noqa: E402

print(f"first line of rank {os.environ['RANK']} at {first:.6f}", flush=True)

import torch.distributed as dist  # noqa: E402

dist.init_process_group("gloo")
ready = time.monotonic()
print(f"group ready on rank {dist.get_rank()} at {ready:.6f}", flush=True)
dist.barrier()  # nobody leaves while gloo on another node still connects
dist.destroy_process_group()
