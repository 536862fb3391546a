"""What is told of ``avahi-gpu peers``."""

from __future__ import annotations

from avahi_gpu.cli.pages.program import EXITS
from avahi_gpu.render.manual import Example, Page

PAGE = Page(
    summary="list the nodes on the LAN",
    examples=(
        Example("avahi-gpu peers", "who is there, with GPUs, and who answers"),
        Example("avahi-gpu peers --expect 3", "wait for three nodes, ten seconds at most"),
        Example("avahi-gpu peers --watch", "a live table, sorted by keys; q ends it"),
        Example("avahi-gpu peers --watch --json", "an object for each event, for a program"),
        Example("avahi-gpu peers --format svg > lan.svg", "a picture of nodes, GPUs and jobs"),
        Example("avahi-gpu peers --json | jq -r '.data.peers[].address'", "their addresses, for a script"),
    ),
    groups={
        "Whom it looks for, and how long": ("--cluster", "--expect", "--timeout", "--watch"),
        "Output": ("--format", "--json"),
        "For Ansible": ("--list", "--host"),
    },
    offers={"--host": "@nodes"},
    exits={code: EXITS[code] for code in ("0", "1", "2", "3", "130")}
    | {"1": "avahi-daemon or the D-Bus system bus is not there"},
    see=("avahi-gpu-doctor(1)", "avahi-gpu-launch(1)", "avahi-browse(1)"),
)
