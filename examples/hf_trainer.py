"""Train with the Trainer of Hugging Face on all nodes together, through the loss of any of them.

    avahi-gpu launch --nnodes 1:2 examples/hf_trainer.py --data notes.txt --steps 200

The Trainer finds all it needs in the environment. What this script adds is that every node saves checkpoints,
and that all begin with the furthest one of any node. Here a small Llama learns to write bytes; put your own
model and data in its place.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, default_data_collator

BYTES, BLOCK = 256, 128
COMPLETE = "trainer_state.json"  # written last into a checkpoint


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", required=True, type=Path, help="a text file, the same on every node")
    parser.add_argument("--steps", type=int, default=200, help="steps of training in all")
    parser.add_argument("--save-every", type=int, default=20, metavar="STEPS")
    parser.add_argument("--output", type=Path, default=Path("trained"), help="this node's own folder")
    return parser.parse_args()


def find_checkpoint(folder: Path) -> tuple[int, Path | None]:
    """Return the step and the folder of this node's last whole checkpoint; 0 and None without any."""
    saved = [file.parent for file in folder.glob(f"checkpoint-*/{COMPLETE}")]
    whole = [(int(each.name.split("-")[1]), each) for each in saved if list(each.glob("*.safetensors"))]
    return max(whole, default=(0, None))


def share_checkpoint(folder: Path) -> str | None:
    """Bring the furthest checkpoint of any node to all; return where it is here, None where there is none."""
    step, found = find_checkpoint(folder)
    steps: list[int] = [0] * dist.get_world_size()
    dist.all_gather_object(steps, step)
    furthest = max(steps)
    if furthest == 0:
        return None
    target = folder / f"checkpoint-{furthest}"
    source = steps.index(furthest)
    if min(steps) < furthest:
        content = [{}]
        if dist.get_rank() == source and found is not None:
            content = [{file.name: file.read_bytes() for file in found.iterdir()}]
        dist.broadcast_object_list(content, src=source)
        if step < furthest and os.environ["LOCAL_RANK"] == "0":
            draft = folder / f"draft-{os.getpid()}"
            draft.mkdir(parents=True)
            for name, data in content[0].items():
                (draft / name).write_bytes(data)
            shutil.rmtree(target, ignore_errors=True)  # one that is torn
            draft.rename(target)
        dist.barrier()  # the other processes of this node read what the first one writes
    return str(target)


def main() -> int:
    """Train to the last step; return 0."""
    options = parse_arguments()
    gpu = torch.cuda.is_available()
    if gpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl" if gpu else "gloo")  # the Trainer takes it as it is

    text = torch.tensor(list(options.data.read_bytes()))
    blocks = text[: len(text) // BLOCK * BLOCK].view(-1, BLOCK)
    data = [{"input_ids": block, "labels": block} for block in blocks]
    size = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    torch.manual_seed(1)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=BYTES, bos_token_id=None, eos_token_id=None, **size))
    # or transformers 5 leaves the weights out everywhere but on rank 0, whatever save_on_each_node says
    model.should_save_on_this_rank = lambda is_main_process: is_main_process

    arguments = TrainingArguments(
        output_dir=str(options.output),
        max_steps=options.steps,
        per_device_train_batch_size=8,
        learning_rate=5e-3,
        logging_steps=10,
        save_steps=options.save_every,
        save_total_limit=2,
        save_on_each_node=True,  # any of them may be the one that is lost
        ddp_find_unused_parameters=False,
        use_cpu=not gpu,
        disable_tqdm=True,
        report_to="none",
    )
    checkpoint = share_checkpoint(options.output)
    if dist.get_rank() == 0:
        begin = f"resumes from {checkpoint}" if checkpoint else "starts"
        print(f"training {begin} with {dist.get_world_size()} processes on {platform.node()}", flush=True)
    trainer = Trainer(model=model, args=arguments, train_dataset=data, data_collator=default_data_collator)
    trainer.train(resume_from_checkpoint=checkpoint)
    trainer.save_model()
    dist.barrier()  # nobody leaves while another one still needs the store on rank 0
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
