"""The smallest job that proves a cluster: every process adds its part, every process checks the sum.

    avahi-gpu launch --nnodes 3 examples/allreduce.py

Runs on GPUs where every process has one of its own, else on CPUs.
"""

from __future__ import annotations

import os
import platform
import sys

import torch
import torch.distributed as dist


def choose_device() -> torch.device:
    """Return this process's own GPU where every process of the job has one, else the CPU.

    Asked over gloo, which runs everywhere: a job in which some use NCCL and others do not would hang.
    """
    local = int(os.environ["LOCAL_RANK"])
    has_gpu = torch.tensor(int(torch.cuda.is_available() and local < torch.cuda.device_count()))
    dist.all_reduce(has_gpu, dist.ReduceOp.MIN)
    if not has_gpu:
        return torch.device("cpu")
    torch.cuda.set_device(local)
    return torch.device("cuda", local)


def main() -> int:
    """Sum 1 + 2 + … + world size over all processes; return 0 where the sum is right."""
    dist.init_process_group("gloo")  # RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT come from the environment
    rank, size = dist.get_rank(), dist.get_world_size()
    device = choose_device()
    group = dist.new_group(backend="nccl") if device.type == "cuda" else dist.group.WORLD

    total = torch.tensor([float(rank + 1)], device=device)
    dist.all_reduce(total, group=group)
    right = total.item() == size * (size + 1) / 2

    # one write, so that lines of several processes do not mix
    sys.stdout.write(
        f"rank {rank} of {size} on {platform.node()} ({device}), MASTER_ADDR {os.environ['MASTER_ADDR']}: "
        f"sum {total.item():g} {'is right' if right else 'IS WRONG'}\n"
    )
    sys.stdout.flush()
    dist.barrier()  # nobody leaves while another one still needs the store on rank 0
    dist.destroy_process_group()
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
