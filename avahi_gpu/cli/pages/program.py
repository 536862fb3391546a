"""The program as a whole, and what its commands have in common."""

from __future__ import annotations

from avahi_gpu.render.manual import Example, Page

# the order in which people need them; whoever adds a command adds it here, as hidden ones need no page
EXITS = {
    "0": "fine",
    "1": "the doctor found an error, or a change failed",
    "2": "wrong usage, or a mistake in `/etc/avahi-gpu/config.toml` or a variable",
    "3": "fewer nodes than expected in time",
    "4": "only root may do that",
    "5": "`--check`: changes are pending",
    "125": "`launch` failed before your script ran",
    "130": "interrupted",
}
FILES = {
    "/etc/avahi-gpu/config.toml": "the settings of this machine; it need not be there",
    "/etc/avahi-gpu/key": "the cluster key, of mode 0600",
    "~/.config/avahi-gpu/key": "the cluster key of a user who trains without being root",
    "/etc/avahi-gpu/templates/torch.service.j2": "a template that is used before the one of the package",
    "/etc/avahi/services/torch.service": "what avahi-daemon tells others of this machine",
    "/var/lib/avahi-gpu/journal": "the changes made, by which `avahi-gpu undo` takes them back",
}
VARIABLES = {
    "AVAHI_GPU_CLUSTER": "the cluster of this node",
    "AVAHI_GPU_PRIORITY": "the node with the highest one leads",
    "AVAHI_GPU_PORT": "the port that others are told of",
    "AVAHI_GPU_INTERFACE": "the network interface that jobs run on",
    "AVAHI_GPU_INTERFACES": "the interfaces that count, parted by commas",
    "AVAHI_GPU_PYTHON": "the full path of the Python whose torch this node trains with",
    "AVAHI_GPU_PEERS": "nodes to ask where multicast is blocked, parted by commas",
    "AVAHI_GPU_KEY_FILE": "the cluster key",
    "AVAHI_GPU_JOB": "the job's name, under torchrun and what it starts",
    "AVAHI_GPU_MASTER": "the host that leads, under torchrun and what it starts",
    "AVAHI_GPU_LOG": "`warning`, `info` or `debug`: how much a job tells of itself",
    "NO_COLOR": "where it is set, nothing is coloured",
}
AS_ROOT = 'sudo "$(command -v avahi-gpu)"'

PAGE = Page(
    summary="make one PyTorch cluster of machines with GPUs on one LAN",
    examples=(
        Example(f"{AS_ROOT} setup", "once on every machine: shows what it would change, and asks"),
        Example("avahi-gpu peers", "who is there"),
        Example(
            "avahi-gpu launch --nnodes 2 train.py", "train: the same line on every machine, in any order"
        ),
        Example("avahi-gpu doctor", "when something does not work: what is wrong, and what would mend it"),
    ),
    exits=EXITS,
    files=FILES,
    variables=VARIABLES,
    more={
        "Torchrun": (
            "Plain torchrun does without a command of ours, in an environment that has avahi-gpu beside "
            "torch: `torchrun --nnodes=2 --nproc-per-node=gpu --rdzv-backend=avahi --rdzv-id=llama train.py` "
            "is the same line on every node.",
        ),
        "Output for programs": (
            "Under `--json` a command prints one object and nothing else: "
            '`{"version": 1, "command", "status", "exit_code", "data", "errors"}`, whose shape stays.',
        ),
    },
    see=("avahi-gpu.toml(5)", "avahi-daemon(8)", "nsswitch.conf(5)", "torchrun"),
)
