"""What is told of ``avahi-gpu bench``."""

from __future__ import annotations

from avahi_gpu.cli.pages.program import EXITS, VARIABLES
from avahi_gpu.render.manual import Example, Page

_SETTINGS = ("CLUSTER", "PRIORITY", "INTERFACE", "INTERFACES", "PEERS", "KEY_FILE", "LOG")

PAGE = Page(
    summary="measure the network between the nodes",
    examples=(
        Example("avahi-gpu bench --nnodes 3", "TCP between every two of three nodes, then the all-reduce"),
        Example("avahi-gpu bench --nnodes 3 --quick", "less exact, in a few seconds"),
        Example("avahi-gpu bench --nnodes 3 --model 7B", "what one exchange of its gradients takes"),
        Example("avahi-gpu bench --nnodes 3 --svg network.svg", "also draw it"),
        Example("avahi-gpu bench --nnodes 2 --tcp --json", "without torch, and for a script"),
    ),
    groups={
        "What is measured": ("--nnodes", "--nproc-per-node", "--tcp", "--quick"),
        "What is told": ("--model", "--dtype", "--svg", "--json"),
        "The nodes": ("--job", "--master", "--cluster", "--key-file"),
        "The network": ("--interface", "--peers"),
        "Waiting and losing": ("--join-timeout", "--lost-after"),
    },
    offers={
        "--master": "@nodes",
        "--peers": "@node-list",
        "--interface": "@interfaces",
        "--dtype": "bf16 fp16 fp32",
        "--nproc-per-node": "auto gpu cpu",
    },
    exits={
        "0": "all was measured, whatever it is",
        "1": "it was broken off, as a node was lost or left, or it failed: no port, no network, no agreement",
        "2": "wrong usage, a mistake in `/etc/avahi-gpu/config.toml` or a variable, or an unusable key file",
        "3": "fewer nodes than expected in time (`--join-timeout`)",
        "130": EXITS["130"],
    },
    variables={f"AVAHI_GPU_{name}": VARIABLES[f"AVAHI_GPU_{name}"] for name in _SETTINGS},
    more={
        "Figures": (
            "Rates are of payload, of one TCP stream from one node to another, one pair at a time, as the "
            "receiver counts it; round trips are of 64 bytes on an idle connection. Of the all-reduce, "
            "algbw and busbw are those of nccl-tests: algbw = size / time, busbw = algbw × 2(n-1)/n for n "
            "ranks.",
            "The time to exchange gradients is that of one all-reduce of all of them, without overlap with "
            "computing and without compression.",
        ),
    },
    see=("avahi-gpu-launch(1)", "avahi-gpu-peers(1)", "avahi-gpu-doctor(1)", "iperf3(1)"),
)
