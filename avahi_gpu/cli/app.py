"""The command line: one module a command, each with a function ``command``."""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperGroup

from avahi_gpu import __version__
from avahi_gpu.errors import ExitCode

# what each of them takes beside its own options; in the order in which people need them
COMMANDS: dict[str, dict[str, Any]] = {
    "setup": {},
    "undo": {},
    "doctor": {},
    "explain": {},
    "peers": {},
    # everything behind the script's name is the script's own
    "launch": {"allow_extra_args": True, "allow_interspersed_args": False},
}


class LateCommands(TyperGroup):
    """The commands, each imported when it is asked for: together they would cost every start 0.2 s."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of that name, None where there is none."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"avahi_gpu.cli.{cmd_name}")
        single = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        single.command(cmd_name, context_settings=COMMANDS[cmd_name])(module.command)
        return typer.main.get_command(single)


app = typer.Typer(
    name="avahi-gpu",
    cls=LateCommands,
    help="Machines with GPUs on one LAN become one PyTorch cluster, with no address typed anywhere.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def show_version(wanted: bool) -> None:
    """Print the version and end, where ``--version`` was given."""
    if wanted:
        typer.echo(f"avahi-gpu {__version__}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Options of the program itself."""


def main() -> None:
    """Entry point of ``avahi-gpu``."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - for the rest of our life
    try:
        app()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EBADF):
            raise
        sys.stderr.write(f"avahi-gpu: the output cannot be written: {error.strerror}\n")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still buffered goes nowhere
        sys.exit(int(ExitCode.FAILED))


if __name__ == "__main__":
    main()
