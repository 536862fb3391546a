"""What is told of ``avahi-gpu completion``."""

from __future__ import annotations

from avahi_gpu.cli.pages.program import EXITS
from avahi_gpu.render.manual import Example, Page

PAGE = Page(
    summary="print what lets a shell complete words",
    examples=(
        Example('eval "$(avahi-gpu completion bash)"', "in ~/.bashrc"),
        Example('eval "$(avahi-gpu completion zsh)"', "in ~/.zshrc, behind compinit"),
        Example("avahi-gpu completion fish | source", "in ~/.config/fish/config.fish"),
    ),
    exits={"0": EXITS["0"], "1": "the script is not installed", "2": EXITS["2"]},
    more={
        "What is completed": (
            "Beside commands and options: names of the nodes that are seen now (looked for 0.4 s at most), "
            "jobs that run, ids and names of findings, areas, network interfaces and files. A node whose "
            "name is no host name is not offered.",
        ),
    },
)
