"""The command line: one module a command, each with a function ``command``."""

from __future__ import annotations

from typing import Annotated

import typer

from avahi_gpu import __version__
from avahi_gpu.cli import doctor, explain, launch, peers, setup, undo

app = typer.Typer(
    name="avahi-gpu",
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


app.command("setup")(setup.command)
app.command("undo")(undo.command)
app.command("doctor")(doctor.command)
app.command("explain")(explain.command)
app.command("peers")(peers.command)
# everything behind the script's name is the script's own
app.command("launch", context_settings={"allow_extra_args": True, "allow_interspersed_args": False})(
    launch.command
)


def main() -> None:
    """Entry point of ``avahi-gpu``."""
    app()


if __name__ == "__main__":
    main()
