"""One process of the all-reduce: orders on stdin, results on stdout. Imports torch.

Torch's own transports print where they like: stdout is kept for results, and all else goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import timedelta
from typing import Any

WARM = 2  # operations of each size that are not counted: connections are made, buffers are mapped
COUNT_MAX = 200  # operations of one size: more make the mean no better
TIMEOUT_S = 60.0  # for one operation; a node that is lost is told of long before that


def main() -> None:
    """Say what is here, wait for the order, carry it out."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    import torch

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    nccl = ".".join(map(str, torch.cuda.nccl.version())) if gpus else ""
    out.write(json.dumps({"torch": str(torch.__version__), "gpus": gpus, "nccl": nccl}) + "\n")
    order = sys.stdin.readline()
    if order:
        run(json.loads(order), out)
    out.flush()
    os._exit(0)  # all is said; the teardown of the transports may wait for others


def run(order: dict[str, Any], out: Any) -> None:
    """Measure the sizes of the order as one of its ranks; rank 0 writes a line for each."""
    import torch
    import torch.distributed as dist

    backend, rank, ranks = order["backend"], order["rank"], order["ranks"]
    timeout = timedelta(seconds=TIMEOUT_S)
    device = torch.device("cuda", order["local"]) if backend == "nccl" else torch.device("cpu")
    if backend == "nccl":
        torch.cuda.set_device(device)
    store = dist.TCPStore(
        order["address"], order["port"], ranks, is_master=rank == 0, timeout=timeout, wait_for_workers=False
    )
    dist.init_process_group(backend, store=store, rank=rank, world_size=ranks, timeout=timeout)
    numbers = torch.zeros(2, dtype=torch.float64, device=device)

    def settle() -> None:
        if backend == "nccl":
            torch.cuda.synchronize()

    def agree(value: float) -> float:
        """Return the mean of what all ranks say."""
        numbers[0] = value
        dist.all_reduce(numbers)
        return float(numbers[0]) / float(ranks)

    def repeat(tensor: Any, count: int) -> float:
        """Return the seconds that one operation takes."""
        dist.barrier()
        settle()
        began = time.perf_counter()
        for _ in range(count):
            dist.all_reduce(tensor)
        settle()
        return float(time.perf_counter() - began) / count

    for place, size in enumerate(order["sizes"]):
        tensor = torch.ones(size // 4, dtype=torch.float32, device=device)
        dist.all_reduce(tensor)
        if float(tensor[-1]) != ranks:
            raise RuntimeError(f"the sum of {ranks} ones is {float(tensor[-1])}")
        tensor.zero_()
        first = agree(repeat(tensor, 1))
        count = int(max(1, min(COUNT_MAX, order["budget_s"] / max(first, 1e-9))))
        seconds = first
        if count > 1:
            repeat(tensor, min(WARM, count))
            seconds = agree(repeat(tensor, count))
        if rank == 0:
            out.write(json.dumps({"size": size, "seconds": seconds, "count": count}) + "\n")
        following = order["sizes"][place + 1 : place + 2]
        if following and seconds * following[0] / size > order["limit_s"]:
            break
    dist.barrier()
    if rank == 0:
        out.write(json.dumps({"ended": True}) + "\n")


if __name__ == "__main__":
    main()
