"""Train on any number of hosts and write down every step. Run by torch's agents as ``-m chaos.train``.

    --folder DIR       DIR/disk/<host> is a host's disk, DIR/journal has one file for each start of a worker,
                       DIR/finish ends the training, DIR/bug-<host> lets that host's next step fail

Each host keeps its own checkpoint, as examples/train.py does. To say what a lost step is, the rules
are stricter here. A host remembers the highest *generation* that it was part of, and each checkpoint carries
the generation that wrote it. A new group takes a generation above all that its members remember, adopts the
checkpoint of the highest (generation, step) among them, and every member writes it again under its own
generation before the first step. A step is *committed* once every member of the group has written a
checkpoint of it or of a later one: only then a collective operation tells them so. As any two groups share a
member (the smallest number of nodes is a majority), a later group always finds what an earlier one committed.

Journal lines, JSON, ``at``, ``begin`` and ``end`` in seconds of CLOCK_MONOTONIC, which virtual hosts share:
``start`` (rank, size, restarts, master), ``group`` (generation, members by rank, source: (generation, step)
of what it goes on from, held: our own), ``step`` (step, loss, begin, end), ``saved``, ``committed``,
``finished``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

SAVE_EVERY = 3  # steps; what lies between two checkpoints is done again after a loss
PAUSE_S = 0.1  # of each step


class Journal:
    """This worker's own file; a line is there as soon as ``write`` returns, whatever happens next."""

    def __init__(self, folder: Path, host: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{host}.{time.monotonic_ns()}.{os.getpid()}.jsonl"
        self.file = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)

    def write(self, kind: str, **fields: Any) -> None:
        line = json.dumps({"kind": kind, "at": time.monotonic(), **fields})
        os.write(self.file, line.encode() + b"\n")


def replace(path: Path, content: bytes) -> None:
    """Write a file, all or nothing."""
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_bytes(content)
    draft.replace(path)


def main(words: list[str]) -> int:
    """Train until DIR/finish is there; return 0."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    folder: Path = parser.parse_args(words).folder
    host = platform.node()
    journal = Journal(folder / "journal", host)
    journal.write(
        "start",
        rank=int(os.environ["RANK"]),
        size=int(os.environ["WORLD_SIZE"]),
        restarts=int(os.environ["TORCHELASTIC_RESTART_COUNT"]),
        master=f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}",
    )
    disk = folder / "disk" / host
    disk.mkdir(parents=True, exist_ok=True)
    train(journal, host, folder, disk)
    return 0


def train(journal: Journal, host: str, folder: Path, disk: Path) -> None:
    """Join the group, settle from where it goes on, and train."""
    import torch
    import torch.distributed as dist

    from chaos.lesson import BATCH, FEATURES, MOMENTUM, RATE, examples

    def load() -> dict[str, Any]:
        try:
            return torch.load(disk / "checkpoint.pt", weights_only=True)  # type: ignore[no-any-return]
        except FileNotFoundError:
            zeros = torch.zeros(FEATURES, dtype=torch.float64)
            return {"generation": 0, "step": 0, "weights": zeros, "speed": zeros.clone()}

    def save() -> None:
        draft = disk / f"checkpoint.{os.getpid()}"
        torch.save(
            {"generation": generation, "step": step, "weights": weights.detach(), "speed": speed}, draft
        )
        draft.replace(disk / "checkpoint.pt")
        journal.write("saved", step=step)
        dist.barrier()
        journal.write("committed", step=step)

    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    state = load()
    memory = disk / "generation"
    remembered = int(memory.read_text()) if memory.exists() else 0
    told: list[Any] = [None] * size
    dist.all_gather_object(told, (host, remembered, (state["generation"], state["step"])))
    generation = 1 + max(r for _, r, _ in told)
    replace(memory, str(generation).encode())
    held = told[rank][2]
    source = max(have for _, _, have in told)
    chosen = [state]
    dist.broadcast_object_list(chosen, src=[have for _, _, have in told].index(source))
    state = chosen[0]
    weights, speed, step = state["weights"].requires_grad_(), state["speed"], state["step"]
    journal.write("group", generation=generation, members=[h for h, _, _ in told], source=source, held=held)
    save()

    while True:
        begin = time.monotonic()
        bug = folder / f"bug-{host}"
        if bug.exists():
            bug.unlink()
            raise RuntimeError("a bug of the script")
        step += 1
        mine = examples(step)[rank::size]
        features = torch.tensor([x for x, _ in mine], dtype=torch.float64)
        targets = torch.tensor([y for _, y in mine], dtype=torch.float64)
        loss = ((features @ weights - targets) ** 2).sum() / 2 / BATCH
        (gradient,) = torch.autograd.grad(loss, weights)
        finish = float(rank == 0 and (folder / "finish").exists())
        total = torch.cat([gradient, torch.stack([loss.detach(), torch.tensor(finish, dtype=torch.float64)])])
        dist.all_reduce(total)
        with torch.no_grad():
            speed = MOMENTUM * speed + total[:FEATURES]
            weights -= RATE * speed
        last = bool(total[-1])
        journal.write("step", step=step, loss=total[-2].item(), begin=begin, end=time.monotonic())
        if last or step % SAVE_EVERY == 0:
            save()
        if last:
            journal.write("finished", step=step)
            dist.destroy_process_group()
            return
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
