"""What is told of ``avahi-gpu launch``."""

from __future__ import annotations

from avahi_gpu.cli.pages.program import EXITS, VARIABLES
from avahi_gpu.render.manual import Example, Page

_SETTINGS = ("CLUSTER", "PRIORITY", "INTERFACE", "INTERFACES", "PEERS", "KEY_FILE", "LOG")

PAGE = Page(
    summary="train on this node and all others that run the same line",
    examples=(
        Example("avahi-gpu launch --nnodes 3 train.py", "three nodes, one process a GPU"),
        Example("avahi-gpu launch --nnodes 2:3 train.py", "two are enough; the job survives the loss of one"),
        Example(
            "avahi-gpu launch --nnodes 2 -- --max-restarts 2 train.py --epochs 3", "with options of torchrun"
        ),
        Example(
            "avahi-gpu launch --nnodes 2 --dry-run train.py", "show environment and command, run nothing"
        ),
        Example(
            "avahi-gpu launch --nnodes 2 --peers 10.0.0.2,10.0.0.3 train.py", "where multicast is blocked"
        ),
    ),
    groups={
        "The job": ("--nnodes", "--job", "--nproc-per-node", "--master", "--cluster", "--key-file"),
        "The network": ("--interface", "--peers"),
        "Waiting and losing": ("--join-timeout", "--last-call", "--lost-after"),
        "Before it runs": ("--allow-skew", "--dry-run"),
    },
    offers={
        "--master": "@nodes",
        "--peers": "@node-list",
        "--interface": "@interfaces",
        "--job": "@jobs",
        "--nproc-per-node": "auto gpu cpu",
        "[-- TORCHRUN OPTIONS] SCRIPT [ARG]...": "@files",
    },
    exits={
        "0": "the script has ended well",
        "N": "the script's own code, where a worker of this node has failed; 128 + n where signal n ended it",
        "1": "the job ended after its workers had run, for a reason that is none of this node's",
        "2": "wrong usage, a mistake in `/etc/avahi-gpu/config.toml` or a variable, or an unusable key file",
        "125": "the job ended before its workers ran here: too few nodes in time, a refusal, no network",
        "130": EXITS["130"],
    },
    variables={f"AVAHI_GPU_{name}": VARIABLES[f"AVAHI_GPU_{name}"] for name in _SETTINGS},
    see=("avahi-gpu-peers(1)", "avahi-gpu-doctor(1)", "avahi-gpu.toml(5)"),
)
