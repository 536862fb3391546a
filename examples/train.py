"""Train a small network with DistributedDataParallel, through the loss of any node.

    avahi-gpu launch --nnodes 2:3 examples/train.py --steps 200 --checkpoint /var/tmp/train.pt

Every node keeps a checkpoint of its own, since any of them may be the one that is lost. Whenever the job
forms anew, the nodes look who has come furthest, and all go on from there. Runs on GPUs where every process
has one of its own, else on CPUs.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

INPUTS, HIDDEN, CLASSES = 2, 64, 3
BATCH = 384  # over all processes together: the same training whatever the number of nodes


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, default=200, help="steps of training in all")
    parser.add_argument("--checkpoint", type=Path, default=Path("checkpoint.pt"), help="this node's own file")
    parser.add_argument("--save-every", type=int, default=10, metavar="STEPS")
    parser.add_argument("--slow", type=float, default=0.0, metavar="SECONDS", help="pause in every step")
    return parser.parse_args()


def say(text: str) -> None:
    """Print one line in one write, so that lines of several processes do not mix."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def choose_device() -> torch.device:
    """Return this process's own GPU where every process of the job has one, else the CPU."""
    local = int(os.environ["LOCAL_RANK"])
    has_gpu = torch.tensor(int(torch.cuda.is_available() and local < torch.cuda.device_count()))
    dist.all_reduce(has_gpu, dist.ReduceOp.MIN)
    if not has_gpu:
        return torch.device("cpu")
    torch.cuda.set_device(local)
    return torch.device("cuda", local)


def make_batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return this process's share of a step's batch: points on three spiral arms, and the arm of each.

    Made anew from the step's number: nothing is to be downloaded, and a resumed run sees the same data.
    """
    random = torch.Generator().manual_seed(step)
    arm = torch.randint(CLASSES, (BATCH,), generator=random)
    radius = torch.rand(BATCH, generator=random)
    angle = 4 * radius + arm * (2 * torch.pi / CLASSES) + 0.1 * torch.randn(BATCH, generator=random)
    points = torch.stack((radius * angle.sin(), radius * angle.cos()), dim=1)
    mine = slice(dist.get_rank(), None, dist.get_world_size())
    return points[mine], arm[mine]


def save(path: Path, state: dict[str, Any]) -> None:
    """Write a checkpoint, all or nothing: a node that dies while it writes keeps the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{platform.node()}.{os.getpid()}")
    with draft.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def load(path: Path) -> dict[str, Any]:
    """Return this node's checkpoint; step 0 where there is none, or none that can be read."""
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
        return state if isinstance(state.get("step"), int) else {"step": 0}
    except FileNotFoundError:
        return {"step": 0}
    except Exception as error:  # half a file of a full disk is no reason to lose the other nodes' work
        say(f"{platform.node()}: {path} is left aside: {error}")
        return {"step": 0}


def agree_on_checkpoint(own: dict[str, Any]) -> dict[str, Any]:
    """Return the furthest checkpoint of all nodes, the same on every process."""
    steps: list[int] = [0] * dist.get_world_size()
    dist.all_gather_object(steps, own["step"])
    furthest = max(steps)
    chosen = [own]
    if furthest > 0:
        dist.broadcast_object_list(chosen, src=steps.index(furthest))
    return chosen[0]


def main() -> int:
    """Train to the last step; return 0."""
    options = parse_arguments()
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    device = choose_device()
    group = dist.new_group(backend="nccl") if device.type == "cuda" else None

    torch.manual_seed(1)
    network = nn.Sequential(
        nn.Linear(INPUTS, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, CLASSES)
    ).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    state = agree_on_checkpoint(load(options.checkpoint))
    if state["step"]:
        network.load_state_dict(state["network"])
        optimizer.load_state_dict(state["optimizer"])
    first = state["step"]
    if rank == 0:
        begin = f"resumes after step {first}" if first else "starts"
        say(f"training {begin} with {size} processes, rank 0 on {platform.node()} ({device})")

    model = DistributedDataParallel(network, process_group=group)
    for step in range(first + 1, options.steps + 1):
        points, arm = (part.to(device) for part in make_batch(step))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(points), arm)
        loss.backward()
        optimizer.step()
        time.sleep(options.slow)
        mean = loss.detach() / size
        dist.all_reduce(mean, group=group)
        if rank == 0:
            say(f"step {step} loss {mean.item():.4f}")
        # every node keeps a copy, one process of each writes it
        if os.environ["LOCAL_RANK"] == "0" and (step % options.save_every == 0 or step == options.steps):
            optimum = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
            save(options.checkpoint, {"step": step, **optimum})

    dist.barrier()  # nobody leaves while another one still needs the store on rank 0
    if rank == 0:
        say(f"training ends after step {max(first, options.steps)}")
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
