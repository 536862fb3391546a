"""Fine-tune a causal language model of the Llama kind with LoRA, on all machines together.

    avahi-gpu launch --nnodes 1:2 examples/finetune_lora.py --model FOLDER_OR_ID --data notes.txt

The model stays as it is on every machine. A small adapter beside each of its layers learns, and only the
adapter's gradients travel. Every node keeps a checkpoint of its own below --checkpoint, since any of them may
be lost: whenever the job forms anew, all go on from the furthest one, whatever their number. In the end the
folder "adapter" there is what peft.PeftModel.from_pretrained(model, folder) takes.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import platform
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

try:
    from peft import LoraConfig, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging
except ImportError as missing:
    sys.exit(f"{missing}. On every node, where torch is: pip install transformers peft")

State = dict[str, Any]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", required=True, help="a folder, or an id on the Hugging Face Hub")
    parser.add_argument("--data", required=True, type=Path, help=".txt, or .jsonl with text or messages")
    parser.add_argument("--steps", type=int, default=200, help="steps of training in all")
    parser.add_argument("--batch-size", type=int, default=16, help="blocks per step of all nodes together")
    parser.add_argument("--block", type=int, default=512, help="tokens per block")
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--rank", type=int, default=8, help="the adapter's: a larger one learns more")
    parser.add_argument("--checkpoint", type=Path, default=Path("lora"), help="this node's own folder")
    parser.add_argument("--save-every", type=int, default=20, metavar="STEPS")
    here = parser.add_argument_group("may differ from node to node")
    here.add_argument("--share", type=float, default=1.0, help="2: take twice as much of a batch as others")
    here.add_argument("--at-once", type=int, default=1, help="blocks that fit into this GPU at once")
    here.add_argument("--recompute", action="store_true", help="need less memory and more time")
    return parser.parse_args()


def say(text: str) -> None:
    """Print one line in one write, so that lines of several processes do not mix."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def stop(why: str) -> NoReturn:
    """End with a sentence; without a goodbye, connections that break would abort the process meanwhile."""
    dist.destroy_process_group()
    sys.exit(why)


def choose_device() -> tuple[torch.device, torch.dtype]:
    """Return this process's own GPU where every process has one, else the CPU, and a type that all know."""
    local = int(os.environ["LOCAL_RANK"])
    has_gpu = torch.cuda.is_available() and local < torch.cuda.device_count()
    if has_gpu:
        torch.cuda.set_device(local)
    knows_bf16 = has_gpu and torch.cuda.is_bf16_supported(including_emulation=False)
    everywhere = torch.tensor([int(has_gpu), int(knows_bf16)])
    dist.all_reduce(everywhere, dist.ReduceOp.MIN)
    if not everywhere[0]:
        return torch.device("cpu"), torch.float32
    return torch.device("cuda", local), torch.bfloat16 if everywhere[1] else torch.float16


def load_model(options: argparse.Namespace, dtype: torch.dtype) -> tuple[Any, Any]:
    """Return this node's copy of the model and its tokenizer."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(options.model)
        return AutoModelForCausalLM.from_pretrained(options.model, dtype=dtype), tokenizer
    except OSError as error:
        stop(f"no model {options.model} on {platform.node()}: {str(error).splitlines()[0]}")


def make_blocks(path: Path, tokenizer: Any, length: int) -> torch.Tensor:
    """Return the data as blocks of ``length`` tokens, one text behind the other; a short rest is left out."""
    try:
        content = path.read_text(encoding="utf-8")
        lines = content.splitlines() if path.suffix == ".jsonl" else []
        records = [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        stop(f"--data {path} cannot be read on {platform.node()}: {error}")
    texts = [content]
    if path.suffix == ".jsonl":
        chat = tokenizer.apply_chat_template
        texts = [r["text"] if "text" in r else chat(r["messages"], tokenize=False) for r in records]
    tokens: list[int] = []
    for text in texts:
        tokens += [*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
    if len(tokens) < length:
        stop(f"{path} has {len(tokens)} tokens, less than one block: give more, or --block {len(tokens)}")
    return torch.tensor(tokens[: len(tokens) // length * length]).view(-1, length)


def demand_the_same(**things: str) -> None:
    """Stop where nodes have other data or another model than rank 0, which would train two things at once."""
    everyone: list[Any] = [None] * dist.get_world_size()
    digests = {name: hashlib.sha256(thing.encode()).hexdigest() for name, thing in things.items()}
    dist.all_gather_object(everyone, {"host": platform.node(), **digests})
    for name in things:
        others = sorted({node["host"] for node in everyone if node[name] != everyone[0][name]})
        if others:
            stop(f"{', '.join(others)}: other {name} than on {everyone[0]['host']}; copy it from there")


def take_share(seen: int, batch: int, total: int, shares: list[float]) -> torch.Tensor:
    """Return which blocks this process takes of the ``batch`` that follows the first ``seen`` of all epochs.

    The order of an epoch comes from its number, so a resumed run takes each block once, with any world size.
    """
    epochs = range(seen // total, (seen + batch - 1) // total + 1)
    orders = [torch.randperm(total, generator=torch.Generator().manual_seed(epoch)) for epoch in epochs]
    chosen = torch.cat(orders)[seen % total :][:batch]
    rank, whole = dist.get_rank(), sum(shares)
    return chosen[round(batch * sum(shares[:rank]) / whole) : round(batch * sum(shares[: rank + 1]) / whole)]


def save(path: Path, state: State) -> None:
    """Write a checkpoint, all or nothing: a node that dies while it writes keeps the one before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{platform.node()}.{os.getpid()}")
    with draft.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


PARTS = {"step", "seen", "rank", "adapter", "optimizer"}


def load(path: Path) -> State:
    """Return this node's checkpoint; step 0 where there is none, or none that can be read."""
    try:
        state: State = torch.load(path, map_location="cpu", weights_only=True)
        return state if state.keys() >= PARTS else {"step": 0}
    except FileNotFoundError:
        return {"step": 0}
    except Exception as error:  # half a file of a full disk is no reason to lose the other nodes' work
        say(f"{platform.node()}: {path} is left aside: {error}")
        return {"step": 0}


def agree_on_checkpoint(own: State, fresh: State) -> State:
    """Return the furthest checkpoint of all nodes, or rank 0's fresh start: the same on every process."""
    steps: list[int] = [0] * dist.get_world_size()
    dist.all_gather_object(steps, own["step"])
    chosen = [own if own["step"] else fresh]
    dist.broadcast_object_list(chosen, src=steps.index(max(steps)))
    return chosen[0]


def main() -> int:
    """Train to the last step; return 0."""
    options = parse_arguments()
    logging.disable_progress_bar()
    warnings.simplefilter("ignore", FutureWarning)  # what libraries tell each other
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    device, dtype = choose_device()
    group = dist.new_group(backend="nccl") if device.type == "cuda" else None
    shares: list[float] = [1.0] * size
    dist.all_gather_object(shares, options.share)

    torch.manual_seed(1)
    base, tokenizer = load_model(options, dtype)
    base = base.to(device)
    if options.recompute:
        base.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    layers = {"r": options.rank, "lora_alpha": 2 * options.rank, "target_modules": "all-linear"}
    model = get_peft_model(base, LoraConfig(task_type="CAUSAL_LM", **layers))
    blocks = make_blocks(options.data, tokenizer, options.block)
    shapes = [(name, *parameter.shape) for name, parameter in model.named_parameters()]
    demand_the_same(data=str(blocks.tolist()), model=str(shapes))

    adapter = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(adapter, lr=options.lr, weight_decay=0.0)
    scaler = torch.amp.GradScaler(device.type, enabled=dtype == torch.float16)  # or small gradients are 0

    def collect(step: int, seen: int) -> State:
        parts = {"adapter": get_peft_model_state_dict(model), "optimizer": optimizer.state_dict()}
        return {"step": step, "seen": seen, "rank": options.rank, **parts}

    file = options.checkpoint / "checkpoint.pt"
    state = agree_on_checkpoint(load(file), collect(step=0, seen=0))
    if state["rank"] != options.rank:
        stop(f"the checkpoint has --rank {state['rank']}: give that one, or another --checkpoint")
    first, seen = state["step"], state["seen"]
    set_peft_model_state_dict(model, state["adapter"])
    optimizer.load_state_dict(state["optimizer"])
    if rank == 0:
        begin = f"resumes after step {first}" if first else "starts"
        say(f"training {begin} with {size} processes, rank 0 on {platform.node()} ({device}, {dtype})")
        few, all_of_them = (sum(p.numel() for p in some) for some in (adapter, model.parameters()))
        say(f"{few} of {all_of_them} parameters learn: {few * 4 / 1e6:.3f} MB of gradients per step")

    # DDP would begin by sending rank 0's whole model to everybody, who has it; the adapter has just come
    parallel = DistributedDataParallel(model, process_group=group, init_sync=False, broadcast_buffers=False)
    for step in range(first + 1, options.steps + 1):
        begun = time.monotonic()
        mine = take_share(seen, options.batch_size, len(blocks), shares)
        parts = mine.split(options.at_once) if len(mine) else [torch.tensor([0])]  # DDP waits for everybody
        here = torch.zeros((), device=device)
        for number, part in enumerate(parts, 1):
            tokens = blocks[part].to(device)
            weight = len(part) / options.batch_size if len(mine) else 0.0  # a block counts the same anywhere
            # gradients travel once, after the last part
            with contextlib.nullcontext() if number == len(parts) else parallel.no_sync():
                loss = parallel(input_ids=tokens, labels=tokens, use_cache=False).loss * weight
                scaler.scale(loss * size).backward()  # DDP divides by the number of processes
            here += loss.detach()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(adapter, 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        seen += options.batch_size
        dist.all_reduce(here, group=group)
        if rank == 0:
            say(f"step {step} loss {here.item():.4f} in {time.monotonic() - begun:.2f} s")
        # every node keeps a copy, one process of each writes it
        if os.environ["LOCAL_RANK"] == "0" and (step % options.save_every == 0 or step == options.steps):
            save(file, collect(step, seen))

    if os.environ["LOCAL_RANK"] == "0":
        model.save_pretrained(file.with_name("adapter"))
    dist.barrier()  # nobody leaves while another one still needs the store on rank 0
    if rank == 0:
        say(f"training ends after step {max(first, options.steps)}")
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
