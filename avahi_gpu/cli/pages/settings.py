"""What is told of /etc/avahi-gpu/config.toml: avahi-gpu.toml(5)."""

from __future__ import annotations

from avahi_gpu.cli.pages.program import AS_ROOT, FILES
from avahi_gpu.render.manual import Example, Page

# setting -> what it is, and what counts without it; in the order in which they are told
SAYS = {
    "cluster": "Nodes of one cluster see each other's jobs; without it that of `setup`, else `default`",
    "priority": "The node with the highest one leads, then the first by host name; 0 without it",
    "port": "The port that others are told of; 29500 without it",
    "interfaces": "The network cards that count, for jobs and for the doctor; all of them without it",
    "interface": "The network card that jobs run on; without it the best that all nodes share",
    "python": "The environment whose torch is told to others",
    "peers": "Nodes to ask where multicast does not get through",
    "key_file": "The cluster key; without it `~/.config/avahi-gpu/key`, then `/etc/avahi-gpu/key`",
}
OPTIONS = {
    "cluster": "`--cluster` of `setup` and `launch`",
    "interface": "`--interface` of `launch`",
    "python": "`--python` of `setup` and `doctor`",
    "peers": "`--peers` of `launch` and of `doctor --cluster`",
    "key_file": "`--key-file` of `launch`, `--file` of `key`",
}

PAGE = Page(
    summary="the settings of a machine for avahi-gpu",
    examples=(
        Example("avahi-gpu setup --show-config", "which settings count, and where each comes from"),
        Example(AS_ROOT + " setup", "after a change, so that others are told of it"),
    ),
    files={path: FILES[path] for path in ("/etc/avahi-gpu/config.toml",)},
    more={
        "Description": (
            "`/etc/avahi-gpu/config.toml` is TOML, and need not be there. Each setting can also be said by a "
            "variable, and most by an option: an option goes before a variable, and that before the file.",
            "A wrong value in any of these places ends every command with exit code 2 before anything is "
            "done, and is named with file, line and key, or with its variable.",
        ),
    },
    see=("avahi-gpu-setup(1)", "avahi-gpu-launch(1)", "avahi-gpu-key(1)"),
)
