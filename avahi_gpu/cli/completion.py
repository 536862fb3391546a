"""``avahi-gpu completion``: the script by which a shell completes words of the command line."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from avahi_gpu.cli.outcome import guarded
from avahi_gpu.cli.shipped import folder_of
from avahi_gpu.errors import AvahiGpuError, Misuse

SHELLS = ("bash", "zsh", "fish")


def command(
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="The shell that you type in.")],
) -> None:
    """Print the script that completes commands, options, names of nodes and ids of findings by the tab key.

    The packages install it already: this is for an installation by pip.
    """
    with guarded("completion"):
        if shell not in SHELLS:
            raise Misuse(
                "there is no completion for that shell", f"use {', '.join(SHELLS[:-1])} or {SHELLS[-1]}"
            )
        folder = folder_of("completion")
        script = folder / f"avahi-gpu.{shell}" if folder is not None else None
        if script is None or not script.is_file():
            raise AvahiGpuError("the completion is not installed", "install avahi-gpu again")
        sys.stdout.write(script.read_text(encoding="utf-8"))
