"""The smallest training that each launcher's page can start, on CPUs: a line is fitted, and the loss falls.

It prints ``rank 0 of 2 on gpu-node-1: loss 5.762 -> 0.002``. DeepSpeed, accelerate and torch each have their
own way to the same few steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_STEPS = """
def fit(rank, size, loss_of_step):
    losses = [loss_of_step(*batch) for batch in batches(rank)]
    print(f"rank {rank} of {size} on {platform.node()}: loss {losses[0]:.3f} -> {losses[-1]:.3f}", flush=True)


def batches(rank):
    dice = torch.Generator().manual_seed(rank)
    for _ in range(20):
        x = torch.randn(16, 4, generator=dice)
        yield x, x.sum(1, keepdim=True)


torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
mse = torch.nn.functional.mse_loss
"""

# by hand: the first use of torch.optim or DistributedDataParallel loads torch's compiler, which takes 1.5 s
_BY_HAND = """
def step(x, y):
    loss = mse(model(x), y)
    loss.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.1 * mean_of_all(parameter.grad)
            parameter.grad = None
    return loss.item()

"""

TORCH = f"""import platform
import torch, torch.distributed as dist
{_STEPS}{_BY_HAND}
def mean_of_all(gradient):
    dist.all_reduce(gradient)
    return gradient / dist.get_world_size()


dist.init_process_group("gloo")
fit(dist.get_rank(), dist.get_world_size(), step)
dist.barrier()
dist.destroy_process_group()
"""

ACCELERATE = f"""import platform
import torch
from accelerate import Accelerator
{_STEPS}{_BY_HAND}
def mean_of_all(gradient):
    return accelerator.reduce(gradient, "mean")


accelerator = Accelerator()
fit(accelerator.process_index, accelerator.num_processes, step)
accelerator.end_training()
"""

# on CPUs DeepSpeed would compile a module of its own for the ranks of one machine, for a minute
DEEPSPEED = f"""import argparse, platform
import torch, deepspeed
{_STEPS}

def step(x, y):
    loss = mse(engine(x), y)
    engine.backward(loss)
    engine.step()
    return loss.item()


parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int)
options = deepspeed.add_config_arguments(parser).parse_args()
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
deepspeed.init_distributed("gloo")
engine, *_ = deepspeed.initialize(options, model, torch.optim.SGD(model.parameters(), lr=0.1))
fit(engine.global_rank, engine.world_size, step)
"""

_LINE = re.compile(r"rank (\d+) of (\d+) on (\S+): loss ([\d.]+) -> ([\d.]+)")


def trained(outputs: Iterable[str]) -> list[tuple[int, int, str]]:
    """Return (rank, world size, host) of each process, by rank; fail where a loss has not fallen by half."""
    found = [match for output in outputs for match in _LINE.finditer(output)]
    assert all(float(m[5]) < float(m[4]) / 2 for m in found), [m[0] for m in found]
    return sorted((int(m[1]), int(m[2]), m[3]) for m in found)
