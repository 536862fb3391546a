"""What is told of ``avahi-gpu setup``."""

from __future__ import annotations

from avahi_gpu.cli.pages.program import AS_ROOT, EXITS, FILES
from avahi_gpu.render.manual import Example, Page

PAGE = Page(
    summary="make this machine a node",
    examples=(
        Example("avahi-gpu setup --check --diff", "only tell what would change; root is not needed"),
        Example(AS_ROOT + " setup", "do it; the environment that trains is the one that it runs in"),
        Example(AS_ROOT + " setup --yes --cluster lab", "without a question, as a node of the cluster lab"),
        Example("avahi-gpu setup --show-config", "which settings count, and where each comes from"),
    ),
    groups={
        "How it goes": ("--check", "--diff", "--yes"),
        "What is set up": ("--only", "--cluster", "--python", "--root"),
        "What is left alone unless you say so": ("--firewall", "--mdns-allow", "--resolved"),
        "Looking only": ("--show-config", "--config-folder", "--program"),
        "Output": ("--json",),
    },
    offers={"--only": "names network host service"},
    exits={
        **{code: EXITS[code] for code in ("0", "2", "4", "5", "130")},
        "1": "a change failed, or this machine is no node afterwards",
    },
    files=FILES,
    more={
        "What it changes": (
            "It installs avahi-daemon and libnss-mdns where they are missing, writes "
            "`/etc/avahi/services/torch.service`, mends the hosts line of `/etc/nsswitch.conf` and "
            "`/etc/avahi/avahi-daemon.conf` where they keep the node from being found, and installs a "
            "small unit that renders the service file anew at every boot. Then it looks whether it worked.",
            "Every file that it changes is kept: `avahi-gpu undo` puts it back byte for byte. It may be "
            "killed at any moment and run again.",
        ),
    },
    see=("avahi-gpu-undo(1)", "avahi-gpu-doctor(1)", "avahi-gpu.toml(5)"),
)
