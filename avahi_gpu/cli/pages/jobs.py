"""What is told of ``avahi-gpu jobs``."""

from __future__ import annotations

from avahi_gpu.cli.pages.program import EXITS
from avahi_gpu.render.manual import Example, Page

PAGE = Page(
    summary="list the jobs that run on the LAN",
    examples=(
        Example("avahi-gpu jobs", "who runs what since when, who leads, and which job waits for whom"),
        Example("avahi-gpu jobs --watch", "follow starts, regroupings and ends"),
        Example("avahi-gpu jobs --json | jq -r '.data.jobs[].name'", "their names, for a script"),
    ),
    exits={code: EXITS[code] for code in ("0", "1", "2", "130")}
    | {"1": "avahi-daemon or the D-Bus system bus is not there"},
    see=("avahi-gpu-launch(1)", "avahi-gpu-peers(1)"),
)
