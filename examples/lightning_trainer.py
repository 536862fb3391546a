"""Train with Lightning on all nodes together, through the loss of any of them.

    avahi-gpu launch --nnodes 1:2 examples/lightning_trainer.py --steps 200

Lightning wants to be told how many machines there are and how many processes on each. Both stand in the
environment, anew whenever the job forms anew. What this script adds is that every node saves checkpoints, and
that all begin with the furthest one of any node.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path
from typing import Any

import lightning
import torch
import torch.distributed as dist
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.strategies import DDPStrategy
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Spirals(lightning.LightningModule):
    """A small network that tells apart the arms of a spiral; put your own in its place."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(
            nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 3)
        )

    def training_step(self, batch: list[torch.Tensor], _index: int) -> torch.Tensor:
        points, arm = batch
        loss = nn.functional.cross_entropy(self.network(points), arm)
        if self.global_step % 10 == 0 and self.trainer.is_global_zero:
            print(f"step {self.global_step} loss {loss.item():.4f}", flush=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.01)


class OnEveryNode(DDPStrategy):
    """DDP in which the first process of each node saves, since any node may be the one that is lost."""

    def save_checkpoint(self, checkpoint: dict[str, Any], filepath: Any, storage_options: Any = None) -> None:
        if self.local_rank == 0:
            self.checkpoint_io.save_checkpoint(checkpoint, filepath, storage_options=storage_options)

    def remove_checkpoint(self, filepath: Any) -> None:
        if self.local_rank == 0:
            self.checkpoint_io.remove_checkpoint(filepath)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, default=200, help="steps of training in all")
    parser.add_argument("--save-every", type=int, default=20, metavar="STEPS")
    parser.add_argument("--output", type=Path, default=Path("trained"), help="this node's own folder")
    return parser.parse_args()


def make_data() -> TensorDataset:
    """Return points on three spiral arms, and the arm of each: the same on every node."""
    random = torch.Generator().manual_seed(0)
    arm = torch.randint(3, (6000,), generator=random)
    radius = torch.rand(6000, generator=random)
    angle = 4 * radius + arm * (2 * torch.pi / 3) + 0.1 * torch.randn(6000, generator=random)
    return TensorDataset(torch.stack((radius * angle.sin(), radius * angle.cos()), dim=1), arm)


def share_checkpoint(folder: Path) -> Path | None:
    """Bring the furthest checkpoint of any node to all; return where it is here, None where there is none."""
    step = max((int(file.stem.split("=")[1]) for file in folder.glob("step=*.ckpt")), default=0)
    steps: list[int] = [0] * dist.get_world_size()
    dist.all_gather_object(steps, step)
    furthest = max(steps)
    if furthest == 0:
        return None
    target = folder / f"step={furthest}.ckpt"
    source = steps.index(furthest)
    if min(steps) < furthest:
        content = [target.read_bytes() if dist.get_rank() == source else b""]
        dist.broadcast_object_list(content, src=source)
        if step < furthest and os.environ["LOCAL_RANK"] == "0":
            folder.mkdir(parents=True, exist_ok=True)
            draft = target.with_suffix(f".{os.getpid()}")
            draft.write_bytes(content[0])
            draft.replace(target)
        dist.barrier()  # the other processes of this node read what the first one writes
    return target


def main() -> int:
    """Train to the last step; return 0."""
    options = parse_arguments()
    here, nodes = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["GROUP_WORLD_SIZE"])
    if here * nodes != int(os.environ["WORLD_SIZE"]):
        sys.exit(
            f"Lightning needs {here} processes on every node, as here: give all the same --nproc-per-node"
        )
    gpu = torch.cuda.is_available()
    if gpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl" if gpu else "gloo")  # Lightning takes it as it is
    checkpoint = share_checkpoint(options.output)
    if dist.get_rank() == 0:
        begin = f"resumes from {checkpoint}" if checkpoint else "starts"
        print(f"training {begin} with {dist.get_world_size()} processes on {platform.node()}", flush=True)

    saves = ModelCheckpoint(
        options.output, filename="{step}", every_n_train_steps=options.save_every, save_top_k=1
    )
    trainer = lightning.Trainer(
        accelerator="gpu" if gpu else "cpu",
        devices=here,
        num_nodes=nodes,
        strategy=OnEveryNode(),
        max_steps=options.steps,
        callbacks=[saves],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    torch.manual_seed(1)
    batches = DataLoader(make_data(), batch_size=100, shuffle=True)
    trainer.fit(Spirals(), batches, ckpt_path=checkpoint)
    trainer.save_checkpoint(options.output / f"step={trainer.global_step}.ckpt")
    dist.barrier()  # nobody leaves while another one still needs the store on rank 0
    if dist.get_rank() == 0:
        print(f"training ends after step {trainer.global_step}", flush=True)
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
