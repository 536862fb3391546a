"""What is told of ``avahi-gpu doctor``."""

from __future__ import annotations

from avahi_gpu.cli.pages.program import AS_ROOT, EXITS
from avahi_gpu.render.manual import Example, Page

PAGE = Page(
    summary="find out what keeps machines apart, and mend it",
    examples=(
        Example("avahi-gpu doctor", "this machine, and the nodes that it sees"),
        Example("avahi-gpu doctor gpu-node-2", "that one must be there; the way of its name is drawn"),
        Example(AS_ROOT + " doctor --fix", "mend what can be mended; it asks first"),
        Example("avahi-gpu doctor --serve 120", "on each other node, for the next line"),
        Example("avahi-gpu doctor --cluster", "who reaches whom, by which ports, with large packets"),
        Example("avahi-gpu doctor --format nagios", "one line for a monitoring system"),
    ),
    groups={
        "What is asked": ("--only", "--ignore", "--python", "--deepspeed-config", "--list"),
        "Mending": ("--fix", "--yes"),
        "All nodes together": ("--cluster", "--serve", "--wait", "--ssh", "--peers", "--picture"),
        "Output": ("--verbose", "--format", "--json", "--report", "--fail-on"),
    },
    offers={
        "NAME": "@nodes",
        "--only": "@findings names network host gpu service cluster",
        "--ignore": "@findings names network host gpu service cluster",
        "--peers": "@node-list",
    },
    exits={
        "0": "no error was found; with `--fail-on warn` no warning either",
        "1": "an error was found, or a change of `--fix` failed",
        "2": EXITS["2"],
        "3": "`--cluster`: no other node could be asked",
        "4": "`--fix` is root's to do",
        "130": EXITS["130"],
    },
    more={
        "What it says": (
            "One cause gives one error: what depends on it is not asked, and named as skipped. Each "
            "finding has an id, such as AG104, and a page: `avahi-gpu explain AG104`.",
            "`--format nagios` ends with the exit codes of monitoring plugins: 0 fine, 1 warning, "
            "2 critical, 3 unknown.",
        ),
    },
    see=("avahi-gpu-explain(1)", "avahi-gpu-setup(1)", "avahi-gpu-undo(1)"),
)
