"""What is told of ``avahi-gpu undo``."""

from __future__ import annotations

from avahi_gpu.cli.pages.program import AS_ROOT, EXITS, FILES
from avahi_gpu.render.manual import Example, Page

PAGE = Page(
    summary="take back what setup and doctor --fix changed",
    examples=(
        Example(AS_ROOT + " undo --check", "only tell what would be taken back"),
        Example(AS_ROOT + " undo --last", "what the last run changed, and nothing before it"),
        Example(AS_ROOT + " undo", "everything"),
    ),
    groups={
        "How it goes": ("--check", "--yes"),
        "What is taken back": ("--last", "--root"),
        "Output": ("--json",),
    },
    exits={
        **{code: EXITS[code] for code in ("0", "2", "4", "130")},
        "1": "something could not be taken back",
        "5": "`--check`: there is something to take back",
    },
    files={path: FILES[path] for path in ("/var/lib/avahi-gpu/journal",)},
    see=("avahi-gpu-setup(1)", "avahi-gpu-doctor(1)"),
)
